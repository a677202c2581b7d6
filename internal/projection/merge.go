package projection

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// merge brings ours into theirs, both made from base, line by line. Where both
// changed the same lines, theirs stays: a person's hand wins over the loop's. A
// line that moves does so whole or not at all; left are the lines of ours that were
// not brought in, or not taken out. What theirs holds of ours already is not brought
// in again, so a merge can be repeated after a crash.
func merge(base, ours, theirs string) (merged string, left []string) {
	switch {
	case base == theirs:
		return ours, nil
	case ours == theirs, base == ours, base == "":
		return theirs, nil
	}
	// Theirs without ours, and ours brought in again: if that is theirs, it was
	// made from ours.
	without, _ := combine(ours, base, theirs)
	if again, left := combine(base, ours, without); again == theirs {
		return theirs, left
	}
	return combine(base, ours, theirs)
}

func combine(base, ours, theirs string) (merged string, left []string) {
	all := udiff.Lines(base, theirs)
	kept, dropped := fitting(base, udiff.Lines(base, ours), all)
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

// fitting parts our edits into those that can be brought in and the others, which
// change lines that theirs changed, or are the other end of a line's move.
func fitting(base string, mine, theirs []udiff.Edit) (kept, dropped []udiff.Edit) {
	var put strings.Builder
	for _, o := range theirs {
		put.WriteString(o.New)
	}
	for _, e := range mine {
		if slices.ContainsFunc(theirs, func(o udiff.Edit) bool {
			return touches(e, o, share(o.New, base) || share(base[o.Start:o.End], put.String()))
		}) {
			dropped = append(dropped, e)
			continue
		}
		kept = append(kept, e)
	}
	for i := 0; i < len(dropped); i++ {
		other := dropped[i]
		kept = slices.DeleteFunc(kept, func(e udiff.Edit) bool {
			moves := share(other.New, base[e.Start:e.End]) || share(e.New, base[other.Start:other.End])
			if moves {
				dropped = append(dropped, e)
			}
			return moves
		})
	}
	return kept, dropped
}

// touches reports whether an edit of ours changes the same lines of a text as one of
// theirs. What is beside a line that they moved counts as the same: a merge of the
// merge would see it otherwise.
func touches(ours, theirs udiff.Edit, moves bool) bool {
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
	return moves || ours.New == theirs.New || share(ours.New, theirs.New) || !strings.HasSuffix(ours.New, "\n") || !strings.HasSuffix(theirs.New, "\n")
}

// share reports whether two texts have a line in common that is not blank.
func share(a, b string) bool {
	for line := range strings.Lines(a) {
		if strings.TrimSpace(line) != "" && strings.Contains("\n"+b, "\n"+line) {
			return true
		}
	}
	return false
}
