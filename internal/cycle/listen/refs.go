package listen

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// lookAtRefs records refs that point to another commit than before.
func (n *Listener) lookAtRefs(ctx context.Context) {
	for _, s := range n.listens(loop.OnRef) {
		if ctx.Err() != nil {
			return
		}
		p, err := n.place(s.Loop)
		var tips map[string]string
		if err == nil {
			tips, err = p.Repo.Tips(ctx, s.on.What)
		}
		if err == nil {
			err = n.record(ctx, s, func(before string, known bool) seen { return movedRefs(before, known, tips) })
		}
		if ctx.Err() == nil {
			n.Tell(s.Loop, s.subject(), err)
		}
	}
}

// movedRefs compares refs with how they looked before. Those of a source that nobody has
// looked at have not moved.
func movedRefs(before string, known bool, tips map[string]string) seen {
	was := map[string]string{}
	for line := range strings.SplitSeq(before, "\n") {
		if ref, id, ok := strings.Cut(line, " "); ok {
			was[ref] = id
		}
	}
	s := seen{before: before, known: known, quiet: !known}
	var now, moved []string
	for _, ref := range slices.Sorted(maps.Keys(tips)) {
		now = append(now, ref+" "+tips[ref])
	}
	all := maps.Clone(was)
	maps.Copy(all, tips)
	for _, ref := range slices.Sorted(maps.Keys(all)) {
		switch from, to := was[ref], tips[ref]; {
		case from == to:
		case from == "":
			moved = append(moved, ref+" is new: "+to)
		case to == "":
			moved = append(moved, ref+" is gone; it was "+from)
		default:
			moved = append(moved, ref+" moved: "+from+".."+to)
		}
	}
	s.now, s.payload = strings.Join(now, "\n"), strings.Join(moved, "\n")
	return s
}
