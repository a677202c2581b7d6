package projection

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// mergeLines merges ours into theirs, both made from base, line by line. Where both
// changed the same lines, theirs stays: a person wins over the loop. A line is moved
// completely or not at all. Left are the lines of ours that were not added, or not
// removed. Changes that theirs has already are not made twice, so a merge can be
// repeated after a crash.
func mergeLines(base, ours, theirs string) (merged string, left []string) {
	switch {
	case base == theirs:
		return ours, nil
	case ours == theirs, base == ours, base == "":
		return theirs, nil
	}
	// If taking ours out of theirs and merging it again gives theirs, then theirs was
	// made from ours.
	without, _ := combineEdits(ours, base, theirs)
	if again, left := combineEdits(base, ours, without); again == theirs {
		return theirs, left
	}
	return combineEdits(base, ours, theirs)
}

func combineEdits(base, ours, theirs string) (merged string, left []string) {
	all := udiff.Lines(base, theirs)
	kept, dropped := fittingEdits(base, udiff.Lines(base, ours), all)
	for _, e := range dropped {
		for line := range strings.Lines(cmp.Or(e.New, base[e.Start:e.End])) {
			if line = strings.TrimSpace(line); line != "" && !slices.Contains(left, line) {
				left = append(left, line)
			}
		}
	}
	all = append(all, kept...)
	slices.SortStableFunc(all, func(a, b udiff.Edit) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
	var out strings.Builder
	at := 0
	for _, e := range all {
		out.WriteString(base[at:e.Start])
		out.WriteString(e.New)
		at = e.End
	}
	out.WriteString(base[at:])
	return out.String(), left
}

// fittingEdits splits our edits into those that can be made and those that cannot,
// because they change lines that theirs changed, or are the other end of a line's
// move.
func fittingEdits(base string, mine, theirs []udiff.Edit) (kept, dropped []udiff.Edit) {
	var put strings.Builder
	for _, o := range theirs {
		put.WriteString(o.New)
	}
	for _, e := range mine {
		if slices.ContainsFunc(theirs, func(o udiff.Edit) bool {
			return editsTouch(e, o, shareLine(o.New, base) || shareLine(base[o.Start:o.End], put.String()))
		}) {
			dropped = append(dropped, e)
			continue
		}
		kept = append(kept, e)
	}
	for i := 0; i < len(dropped); i++ {
		other := dropped[i]
		kept = slices.DeleteFunc(kept, func(e udiff.Edit) bool {
			moves := shareLine(other.New, base[e.Start:e.End]) || shareLine(e.New, base[other.Start:other.End])
			if moves {
				dropped = append(dropped, e)
			}
			return moves
		})
	}
	return kept, dropped
}

// editsTouch reports whether an edit of ours changes the same lines of a text as one of
// theirs. If theirs moved a line, the lines beside it count too: merging the result
// again would otherwise end differently.
func editsTouch(ours, theirs udiff.Edit, moves bool) bool {
	switch {
	case ours.Start < theirs.End && theirs.Start < ours.End:
		return true
	case ours.Start > theirs.End || theirs.Start > ours.End:
		return false
	case ours.Start < ours.End:
		return moves
	case theirs.Start < theirs.End:
		return true
	}
	return moves || ours.New == theirs.New || shareLine(ours.New, theirs.New) || !strings.HasSuffix(ours.New, "\n") || !strings.HasSuffix(theirs.New, "\n")
}

// shareLine reports whether two texts have a common line that is not blank.
func shareLine(a, b string) bool {
	for line := range strings.Lines(a) {
		if strings.TrimSpace(line) != "" && strings.Contains("\n"+b, "\n"+line) {
			return true
		}
	}
	return false
}
