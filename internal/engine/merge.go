package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// merge brings ours into theirs, both made from base, line by line. Where both
// changed the same lines, theirs stays: a person's hand wins over the loop's.
func merge(base, ours, theirs string) string {
	if base == theirs {
		return ours
	}
	if ours == theirs || base == ours {
		return theirs
	}
	mine, other := udiff.Lines(base, ours), udiff.Lines(base, theirs)
	all := slices.Clone(other)
	for _, e := range mine {
		if !slices.ContainsFunc(other, func(o udiff.Edit) bool { return touches(e, o) }) {
			all = append(all, e)
		}
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

// touches reports whether two edits of one text change the same lines. Two
// insertions at one place do; an insertion at the edge of a change does too.
func touches(a, b udiff.Edit) bool {
	return a.Start <= b.End && b.Start <= a.End
}
