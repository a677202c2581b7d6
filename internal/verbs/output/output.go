// Package output prints what a command found: lines and labelled fields,
// tables that fit their terminal, and JSON for programs.
//
// It knows nothing about loops and runs. Text that goes through a field, a
// quotation or JSON has lost whatever a terminal would act on; a caller of Line
// or Table passes text of others through Clean or CleanLine first.
package output

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Printer is where one command prints, and in which form. The zero Printer has
// no streams and cannot be used. It remembers the first error of a stream and
// writes nothing afterwards.
type Printer struct {
	Out, ErrOut io.Writer
	Terminal    bool             // Out is a terminal
	Width       func() int       // columns of the terminal
	Now         func() time.Time // relative times are relative to it
	Style       Style
	JSON        bool   // the reader is a program: only WriteJSON prints on Out
	JQ          string // filters the JSON; empty: no filter

	err error
}

// Err returns the first error of writing.
func (p *Printer) Err() error { return p.err }

// Line prints one line.
func (p *Printer) Line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.Out, format+"\n", args...)
	}
}

// Text prints a text as it is.
func (p *Printer) Text(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.Out, text)
	}
}

// Note prints a line on standard error, for people, whatever the form of the
// output. An error of that stream changes nothing and is dropped.
func (p *Printer) Note(format string, args ...any) {
	_, _ = fmt.Fprintf(p.ErrOut, format+"\n", args...)
}

// Field prints a label and a text, whose further lines are aligned with its
// first one. A blank text prints nothing.
func (p *Printer) Field(indent, label, text string) {
	if strings.TrimSpace(text) != "" {
		p.Line("%s%-9s %s", indent, label, Indent(text, indent+strings.Repeat(" ", 10)))
	}
}

// QuotedField is a field with the words of an agent or the output of a program.
// Like in the log, each line begins with a bar, so that none can pass for
// pawl's own.
func (p *Printer) QuotedField(indent, label, text string) {
	if strings.TrimSpace(text) != "" {
		p.Field(indent, label, Quote(text))
	}
}

// Quote puts a bar before each line of a text.
func Quote(text string) string { return "| " + QuoteBelow(text) }

// QuoteBelow puts a bar before each line but the first, which is pawl's own.
func QuoteBelow(text string) string { return Indent(text, "| ") }

// Indent cleans a text and puts the indent before every line but the first.
func Indent(text, indent string) string {
	return strings.ReplaceAll(strings.TrimRight(Clean(text), "\n"), "\n", "\n"+indent)
}

// Ago is a time relative to now: "5m ago".
func (p *Printer) Ago(at *time.Time) string {
	if at == nil || at.IsZero() {
		return "–"
	}
	d := p.Now().Sub(*at)
	if d < 0 {
		return at.UTC().Format(time.RFC3339)
	}
	return Span(d) + " ago"
}

// Span is a length of time in its largest unit: "5m".
func Span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Style decorates text. The zero Style leaves it as it is.
type Style struct{ Color bool }

// Bold decorates a text that stands out.
func (s Style) Bold(text string) string { return s.with("1", text) }

// Dim decorates a text that matters less.
func (s Style) Dim(text string) string { return s.with("2", text) }

// Red decorates what is wrong.
func (s Style) Red(text string) string { return s.with("31", text) }

// Green decorates what is right.
func (s Style) Green(text string) string { return s.with("32", text) }

// Yellow decorates what needs attention.
func (s Style) Yellow(text string) string { return s.with("33", text) }

func (s Style) with(code, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
