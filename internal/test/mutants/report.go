package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// enough is the share in percent that must be caught of each package.
const enough = 90

// tally counts the verdicts on one package.
type tally struct{ planted, caught, unreached, survived, equivalent int }

// share is what was caught, in percent; what is equivalent does not count.
func (t tally) share() float64 {
	if t.planted == t.equivalent {
		return 100
	}
	return 100 * float64(t.caught) / float64(t.planted-t.equivalent)
}

// report prints what became of the mutants, and returns the packages of which
// too few were caught.
func report(w io.Writer, groups []string, verdicts []verdict) []string {
	tallies := map[string]*tally{}
	for _, group := range groups {
		tallies[group] = &tally{}
	}
	missed := slices.Clone(verdicts)
	slices.SortFunc(missed, func(a, b verdict) int { return a.ID - b.ID })
	for _, v := range missed {
		t := tallies[v.Group]
		t.planted++
		switch v.State {
		case caught:
			t.caught++
			continue
		case equivalent:
			t.equivalent++
			continue
		case unreached:
			t.unreached++
		default:
			t.survived++
		}
		v.print(w)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "package\tplanted\tcaught\tnot reached\tsurvived\tequivalent\tshare\t")
	var poor []string
	for _, group := range groups {
		t := tallies[group]
		if t.planted == 0 {
			continue
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%.0f %%\t\n", group, t.planted, t.caught, t.unreached, t.survived, t.equivalent, t.share())
		if t.share() < enough {
			poor = append(poor, group)
		}
	}
	_ = table.Flush() // it fails as w does
	return poor
}

// print says what was not caught, and which tests could have.
func (v verdict) print(w io.Writer) {
	fmt.Fprintf(w, "%s:%d %s\n\t%s, %s (mutant %d)\n\t- %s\n\t+ %s\n", v.File, v.Line, v.Func, v.State, v.Op, v.ID, v.Before, v.After)
	if len(v.Reached) > 0 {
		shown := v.Reached[:min(len(v.Reached), 8)]
		more := ""
		if len(v.Reached) > len(shown) {
			more = fmt.Sprintf(" and %d more", len(v.Reached)-len(shown))
		}
		fmt.Fprintf(w, "\treached by %s%s; %d run\n", strings.Join(shown, " "), more, v.Ran)
	}
	fmt.Fprintln(w)
}
