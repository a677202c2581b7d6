package projection

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// merge brings ours into theirs, both made from base, line by line. Where both
// changed the same lines, theirs stays: a person's hand wins over the loop's.
// What theirs holds of ours already is not brought in again, so a merge can be
// repeated after a crash.
func merge(base, ours, theirs string) string {
	switch {
	case base == theirs:
		return ours
	case ours == theirs, base == ours:
		return theirs
	}
	// Theirs without ours, and ours brought in again: if that is theirs, it was
	// made from ours.
	if combine(base, ours, combine(ours, base, theirs)) == theirs {
		return theirs
	}
	return combine(base, ours, theirs)
}

func combine(base, ours, theirs string) string {
	all := udiff.Lines(base, theirs)
	kept, dropped := fitting(udiff.Lines(base, ours), all)
	for _, e := range kept {
		if carries(dropped, base[e.Start:e.End]) {
			continue // A line that moves must not vanish because its new place is taken.
		}
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(a, b udiff.Edit) int { return cmp.Compare(a.Start, b.Start) })
	var out strings.Builder
	at := 0
	for _, e := range all {
		out.WriteString(base[at:e.Start])
		out.WriteString(e.New)
		at = e.End
	}
	out.WriteString(base[at:])
	return out.String()
}

// fitting parts our edits into those that touch none of theirs, and the others.
func fitting(mine, theirs []udiff.Edit) (kept, dropped []udiff.Edit) {
	for _, e := range mine {
		if slices.ContainsFunc(theirs, func(o udiff.Edit) bool { return touches(e, o) }) {
			dropped = append(dropped, e)
			continue
		}
		kept = append(kept, e)
	}
	return kept, dropped
}

// carries reports whether a dropped edit would have put back a line of the
// text.
func carries(dropped []udiff.Edit, text string) bool {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" && slices.ContainsFunc(dropped, func(d udiff.Edit) bool { return strings.Contains(d.New, line) }) {
			return true
		}
	}
	return false
}

// touches reports whether two edits of one text change the same lines. Two
// insertions at one place do; an insertion at the edge of a change does too.
func touches(a, b udiff.Edit) bool {
	return a.Start <= b.End && b.Start <= a.End
}
