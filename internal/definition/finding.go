package definition

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
)

// Severities of a Finding.
const (
	SeverityError   = "error"   // the loop cannot run
	SeverityWarning = "warning" // it can, and something is missing or without effect
)

// Finding is one thing that is wrong with a definition. Message is one line
// that begins with the key and a colon and says the fix. Line and Column count
// from 1; a key that is missing is reported at the start of the file.
type Finding struct {
	Severity string
	Key      string
	Message  string
	Line     int
	Column   int
}

// excerptWidth is how many characters of a long source line are shown.
const excerptWidth = 120

// Render is "path:line:column: message", and below it the line of the source
// with a caret under the place. Control characters of the source are shown as
// a replacement character. There is no newline at the end.
func (f Finding) Render(path string, source []byte) string {
	head := fmt.Sprintf("%s:%d:%d: %s", path, f.Line, f.Column, f.Message)
	line, ok := sourceLine(source, f.Line)
	if !ok {
		return head
	}
	runes := []rune(printable(line))
	at := min(max(f.Column-1, 0), len(runes))
	if from := at - excerptWidth/2; len(runes) > excerptWidth && from > 0 {
		runes = append([]rune("…"), runes[from:]...)
		at -= from - 1
	}
	if len(runes) > excerptWidth {
		runes = append(runes[:excerptWidth:excerptWidth], '…')
	}
	return head + "\n" + string(runes) + "\n" + indent(runes[:at]) + "^"
}

// sourceLine is a line of a file as the reader sees it: no byte-order mark, no
// carriage return.
func sourceLine(source []byte, number int) (string, bool) {
	source = bytes.TrimPrefix(source, []byte("\ufeff"))
	n := 1
	for line := range bytes.Lines(source) {
		if n == number {
			return strings.ReplaceAll(string(bytes.TrimSuffix(line, []byte("\n"))), "\r", ""), true
		}
		n++
	}
	return "", false
}

// indent is as wide as the text on a terminal that keeps its tabs.
func indent(text []rune) string {
	var b strings.Builder
	for _, r := range text {
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
	}
	return b.String()
}

// printable replaces what a terminal might obey, one character for one.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return '\ufffd'
	}, text)
}

// quote shows a value from the file within a message: one line, bounded.
func quote(text string) string {
	const most = 60
	text = strings.ReplaceAll(printable(text), "\t", " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return "'" + text + "'"
}
