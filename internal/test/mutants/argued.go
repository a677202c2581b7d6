package main

import (
	_ "embed"
	"fmt"
	"strings"
)

// arguedText are the mutants that change nothing, each with its reason. An
// entry is five lines and an empty one:
//
//	file function, and #2 for the second of those that are alike
//	operator
//	the text of the line
//	what stands there instead
//	why it changes nothing
//
//go:embed argued.txt
var arguedText string

// argument says why a mutant changes nothing.
type argument struct {
	place, op, text, after, reason string
	line                           int // in the list
}

// readArguments reads the list. Lines that begin with # are comments.
func readArguments(text string) ([]argument, error) {
	var all []argument
	var lines []string
	flush := func(at int) error {
		switch {
		case len(lines) == 0:
			return nil
		case len(lines) != 5 || len(strings.Fields(lines[4])) < 4:
			return fmt.Errorf("argued.txt:%d: an entry is five lines: file and function, operator, text of the line, what stands there instead, and the reason in a sentence", at)
		}
		all = append(all, argument{place: lines[0], op: lines[1], text: lines[2], after: lines[3], reason: lines[4], line: at})
		lines = nil
		return nil
	}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "#"):
		case line == "":
			if err := flush(i); err != nil {
				return nil, err
			}
		default:
			lines = append(lines, line)
		}
	}
	return all, flush(strings.Count(text, "\n") + 1)
}

func (a argument) meets(m bug) bool {
	return a.place == m.place() && a.op == m.Op && a.text == m.Text && a.after == m.After
}

// argue returns the reasons by the ID of the mutant, or an error that names
// each entry which meets none: its line has changed, and so may its reason.
func argue(arguments []argument, all []bug) (map[int]string, error) {
	reasons := map[int]string{}
	var stale []string
	for _, a := range arguments {
		met := false
		for _, m := range all {
			if a.meets(m) {
				met, reasons[m.ID] = true, a.reason
			}
		}
		if !met {
			stale = append(stale, fmt.Sprintf("argued.txt:%d: no mutant is %q in %s with the line %q and %q instead: remove or renew the entry", a.line, a.op, a.place, a.text, a.after))
		}
	}
	if stale != nil {
		return nil, fmt.Errorf("%s", strings.Join(stale, "\n"))
	}
	return reasons, nil
}

// place is where a mutant is, whatever line that is. Of several that are alike
// in one function, the second has #2, and so on.
func (m bug) place() string {
	place := strings.TrimSpace(m.File + " " + m.Func)
	if m.Nth > 0 {
		place += fmt.Sprintf(" #%d", m.Nth+1)
	}
	return place
}

// entry is what to add to the list for a survivor that changes nothing.
func (m bug) entry() string {
	return fmt.Sprintf("%s\n%s\n%s\n%s\n", m.place(), m.Op, m.Text, m.After)
}
