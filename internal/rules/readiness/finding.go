// Package readiness judges a loop before it runs: whether its definition is
// complete, whether it would run, and what it would cost.
//
// It does no I/O and reads no clock: callers pass the values of a definition as
// written, prices, and how often the loop fires.
package readiness

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/rules/loop"
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
	SeverityWarning = "warning" // it can run, but something is missing or has no effect
)

// Kind says what a finding means for the readiness of a loop.
type Kind int

// Kinds of a Finding.
const (
	KindCheck   Kind = iota // of Check, counted by its Verdict
	KindOwn                 // an error outside of the score, like one in pawl's own keys: the loop is not ready
	KindUnknown             // an unknown key: with --strict the loop is not ready
	KindNote                // does not change readiness, but a run refuses the loop if it is an error
)

// Blocks reports whether a finding of this kind makes a loop not ready whose Verdict
// is ready.
func (k Kind) Blocks(strict bool) bool {
	return k == KindOwn || k == KindUnknown && strict
}

// Finding is one fault of a definition. Message is one line: the key, what is wrong,
// and the fix. Line and Column count from 1; a missing key is reported at the start of
// the file.
type Finding struct {
	Kind     Kind
	Severity string
	Key      string
	Message  string
	Line     int
	Column   int
	File     string // that it is in; empty: the definition's own

	Meant  string      // the key of which Key is a misspelling; empty: it is none
	Reason loop.Reason // the class of an error that a run would end with; empty: it has none
}

// excerptWidth is how many characters of a long source line are shown.
const excerptWidth = 120

// Render is "path:line:column: message", and below it the line of the source
// with a caret under the place. Control characters of the source are shown as
// a replacement character. Of a finding in another file, its path and no line is shown.
// There is no newline at the end.
func (f Finding) Render(path string, source []byte) string {
	if f.File != "" {
		path, source = f.File, nil
	}
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

// sourceLine returns a line of a file without byte-order mark and carriage returns.
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

// caretIndent is white space that is as wide as the text, tabs included.
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

// Printable replaces each character that a terminal might interpret by one other.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return '\ufffd'
	}, text)
}

// FirstLine returns the first line of a text that is not blank.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// Quote quotes a value of a file for a message: on one line, and cut if it is long.
func Quote(text string) string {
	const most = 60
	text = strings.ReplaceAll(Printable(text), "\t", " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return "'" + text + "'"
}

// HasPlaceholder reports whether a value contains a placeholder like <fill: …>: an
// angle bracket directly before a letter, and a closing one later. A comparison such
// as p95 < 3 ms is not a placeholder.
func HasPlaceholder(text string) bool {
	// Most values have no bracket, and IndexAny is slower than Contains.
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

// IsFilled reports whether a value has text and no placeholder. White space does not
// count: as a gate it would be a command that always passes.
func IsFilled(text string) bool {
	return strings.TrimSpace(text) != "" && !HasPlaceholder(text)
}
