// Package invariant decides whether an expression about a change is true, such
// as diff.files <= 3 or, to keep a number from getting worse,
//
//	json("cov.json").total >= base.json("cov.json").total
//
// Expressions are a part of the language of expr-lang, with the same grammar; a
// test compares both. They are read and evaluated here, because an evaluation has
// to end: every step is counted, also those within one call, and the caller's
// context is asked in between. Only names and functions of the table of Names
// exist; none of them knows the time, keeps anything or reads more than files of
// the two trees.
//
// The package runs no command and writes nothing.
package invariant

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/unprintable"
	"github.com/pawl-run/pawl/internal/rules/judging"
)

// Bounds of an expression and its evaluation. What people write stays far below.
const (
	maxText    = 2000       // bytes of an expression
	maxNodes   = 400        // parts of an expression
	maxSteps   = 10_000_000 // less than a second
	maxCells   = 2_000_000  // values in lists and bytes of text that an evaluation makes
	maxFeed    = 2 << 10    // bytes of the words about a false expression
	maxPattern = 200        // bytes of a regular expression
)

// Inputs is what an expression is about.
type Inputs struct {
	Tree judging.Tree // the candidate
	Base judging.Tree // what it is compared with; nil if it is not known
	Diff Diff

	// Outputs are what the command gates have printed in this iteration, by their
	// names, and BaseOutputs what they print on the base.
	Outputs, BaseOutputs map[string]string

	Iteration int   // 1 is the first
	Tokens    int64 // used so far
}

// Diff is the size of a change.
type Diff struct {
	Files, Added, Removed int // changed files, added lines, removed lines
	Paths                 []string
}

// Program is an expression that may be evaluated any number of times, also at once.
type Program struct {
	text string
	root node
}

// String returns the expression.
func (p *Program) String() string { return p.text }

// Error says what is wrong in an expression, and where.
type Error struct {
	Text         string // the expression
	Line, Column int    // from 1; 0 if the place is not known
	Offset       int    // of the place, in bytes
	What         string
	Fix          string // empty if What says it
}

func (e *Error) Error() string {
	at, fix := "", ""
	if e.Line > 0 {
		at = fmt.Sprintf("line %d, column %d: ", e.Line, e.Column)
	}
	if e.Fix != "" {
		fix = "; " + e.Fix
	}
	return at + e.What + fix
}

// Pointer returns the line of the expression with a caret below the place; empty if
// the place is not known.
func (e *Error) Pointer() string {
	lines := strings.Split(e.Text, "\n")
	if e.Line < 1 || e.Line > len(lines) {
		return ""
	}
	line := []rune(strings.ReplaceAll(lines[e.Line-1], "\t", " "))
	before := unprintable.Show(string(line[:min(e.Column-1, len(line))]))
	return unprintable.Show(string(line)) + "\n" + strings.Repeat(" ", len([]rune(before))) + "^"
}

// errorAt makes an error that points to a byte of an expression.
func errorAt(text string, offset int, what, fix string) *Error {
	e := &Error{Text: text, Line: 1, Column: 1, Offset: offset, What: what, Fix: fix}
	for i, r := range text {
		if i >= offset {
			break
		}
		e.Column++
		if r == '\n' {
			e.Line, e.Column = e.Line+1, 1
		}
	}
	return e
}

// inBackticks returns what is in the backticks of a check; found is false, and inside all
// of it, if there are none.
func inBackticks(check string) (inside string, found bool) {
	_, rest, _ := strings.Cut(check, "`")
	inside, _, found = strings.Cut(rest, "`")
	if inside = strings.TrimSpace(inside); !found || inside == "" {
		return strings.TrimSpace(check), false
	}
	return inside, true
}

// Compile reads the expression of a check: the text in its backticks, or all of it. The error is an *Error.
func Compile(check string) (*Program, error) {
	text, _ := inBackticks(check)
	switch {
	case text == "":
		return nil, &Error{What: "there is no expression", Fix: "write a condition such as diff.files <= 3"}
	case len(text) > maxText:
		return nil, &Error{Text: text, What: fmt.Sprintf("the expression is longer than %d bytes", maxText), Fix: "split it into several gates"}
	}
	root, err := parse(text)
	if err != nil {
		return nil, asError(text, err)
	}
	c := checker{}
	if err := c.mustBeBool(root, "an invariant", "compare it, as in diff.files <= 3"); err != nil {
		return nil, asError(text, err)
	}
	return &Program{text, root}, nil
}

// placed is an error at a part of an expression.
type placed struct {
	at        int // in bytes
	what, fix string
}

func (e *placed) Error() string { return e.what }

// seeNames is the advice where a name is wrong.
const seeNames = "pawl explain invariant lists the names and functions that there are"

// asError turns what went wrong into an Error.
func asError(text string, err error) *Error {
	if e, ok := errors.AsType[*placed](err); ok {
		return errorAt(text, e.at, unprintable.Show(e.what), e.fix)
	}
	return &Error{Text: text, What: err.Error(), Fix: seeNames}
}

// Eval evaluates the expression. Why says, if it is false, what was compared. The error
// is an *Error, or that of the context.
func (p *Program) Eval(ctx context.Context, in Inputs) (holds bool, why string, err error) {
	e := &evaluation{ctx: ctx, in: in, program: p, steps: maxSteps, cells: maxCells, known: map[source]any{}}
	holds, err = e.truth(p.root)
	if err == nil && !holds {
		why, err = e.why(p.root)
		why = shorten(unprintable.Show(why), maxFeed)
	}
	switch {
	case ctx.Err() != nil:
		return false, "", context.Cause(ctx)
	case err != nil:
		return false, "", asError(p.text, err)
	}
	return holds, why, nil
}

// shorten cuts a text to about most bytes.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
