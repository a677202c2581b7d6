package loopspec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Finding is one fault of a spec, or a note about it.
type Finding struct {
	Path    string `json:"path"`             // of the field, like gates[1].check; empty: the whole document
	Offset  int    `json:"offset,omitempty"` // bytes of the field's text before the place that is meant
	Message string `json:"message"`          // one line: what is wrong, and the fix
	Note    bool   `json:"note,omitempty"`   // the spec is not refused for it
	Line    int    `json:"line,omitempty"`   // from 1; 0: the spec was not read from a document
	Column  int    `json:"column,omitempty"` // characters from 1
}

// messageOf is a message on one line, without what a terminal would act on.
func messageOf(format string, args ...any) string {
	return strings.ReplaceAll(readiness.Printable(fmt.Sprintf(format, args...)), "\t", " ")
}

// String is the finding with its place, on one line.
func (f Finding) String() string {
	text := f.Message
	if f.Path != "" {
		text = f.Path + ": " + text
	}
	if f.Line > 0 {
		text = fmt.Sprintf("%d:%d: %s", f.Line, f.Column, text)
	}
	return text
}

// Render is the finding below the name of its document, and the line of the source
// with a caret under the place.
func (f Finding) Render(name string, source []byte) string {
	message := f.Message
	if f.Path != "" {
		message = f.Path + ": " + message
	}
	return readiness.Finding{Message: message, Line: f.Line, Column: f.Column}.Render(name, source)
}

// Refused reports whether one of the findings refuses the spec.
func Refused(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return !f.Note })
}

// AsFault returns the error for a spec that is refused, with each finding that refuses
// it; nil if none does. It exits with loop.ExitUnreadable.
func AsFault(findings []Finding) *loop.Fault {
	var all []string
	for _, f := range findings {
		if !f.Note {
			all = append(all, f.String())
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &loop.Fault{
		Exit: loop.ExitUnreadable, What: "the spec is refused", Why: strings.Join(all, "\n"), Fix: "change what is named; nothing was created",
	}
}

// inOrder sorts findings by their place in the document, or keeps them as they are
// where they have none.
func inOrder(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return findings
}
