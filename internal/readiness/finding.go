// Package readiness judges a loop before it runs: whether its definition is
// complete, whether it would run, and what it would cost.
//
// It does no I/O and reads no clock: it is given a definition's values as they
// were written, prices, and how often the loop fires.
package readiness

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Value is the text of a scalar or of a list item, exactly as written: null,
// yes and 1e3 are those letters. Line and Column count from 1, and columns
// count characters; they are 0 for a key that is absent.
type Value struct {
	Text   string
	Line   int
	Column int
}

// Severities of a Finding.
const (
	SeverityError   = "error"   // the loop cannot run
	SeverityWarning = "warning" // it can, and something is missing or without effect
)

// Kind says what a finding means for the readiness of a loop.
type Kind int

// Kinds of a Finding.
const (
	KindCheck   Kind = iota // made by Check, whose Verdict counts it
	KindOwn                 // an error outside of the score, like one in pawl's own keys: the loop is not ready
	KindUnknown             // a key that nobody reads: under --strict the loop is not ready
	KindNote                // no say in readiness; if it is an error, a run refuses the loop all the same
)

// Blocks reports whether such a finding makes a loop not ready that its Verdict
// holds for ready.
func (k Kind) Blocks(strict bool) bool {
	return k == KindOwn || k == KindUnknown && strict
}

// Finding is one thing that is wrong with a definition. Message is one line
// that begins with the key it is about, says what is wrong and the fix. Line
// and Column count from 1; a key that is missing is reported at the start of
// the file.
type Finding struct {
	Kind     Kind
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
	runes := []rune(Printable(line))
	at := min(max(f.Column-1, 0), len(runes))
	if from := at - excerptWidth/2; len(runes) > excerptWidth && from > 0 {
		runes = append([]rune("…"), runes[from:]...)
		at -= from - 1
	}
	if len(runes) > excerptWidth {
		runes = append(runes[:excerptWidth:excerptWidth], '…')
	}
	return head + "\n" + string(runes) + "\n" + caretIndent(runes[:at]) + "^"
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

// caretIndent is as wide as the text on a terminal that keeps its tabs.
func caretIndent(text []rune) string {
	var b strings.Builder
	for _, r := range text {
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Printable replaces what a terminal might obey, one character for one.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return '\ufffd'
	}, text)
}

// Quote shows a value from the file within a message: one line, bounded.
func Quote(text string) string {
	const most = 60
	text = strings.ReplaceAll(Printable(text), "\t", " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return "'" + text + "'"
}

// HasPlaceholder reports whether a value still has a <fill: …> in it: an angle
// bracket directly before a letter, and a closing one later. A comparison such
// as p95 < 3 ms is none.
func HasPlaceholder(text string) bool {
	// Most values have no bracket, and to look for one of several is slow.
	if !strings.Contains(text, "<") && !strings.Contains(text, "‹") {
		return false
	}
	for {
		at := strings.IndexAny(text, "<‹")
		if at < 0 {
			return false
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		text = text[at+size:]
		if r, _ := utf8.DecodeRuneInString(text); unicode.IsLetter(r) {
			return strings.ContainsAny(text, ">›")
		}
	}
}

// IsFilled reports whether a person has written something. White space alone is
// nothing: as a gate it would be a command that always passes.
func IsFilled(text string) bool {
	return strings.TrimSpace(text) != "" && !HasPlaceholder(text)
}
