package verb

import (
	"context"
	"slices"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// refuseOthers refuses what is not about a loop that the agent's own has made, or about a run of
// one.
func refuseOthers(ctx context.Context, i Info, w Workspace, of *loop.Inside, in any) (string, error) {
	p := w.place()
	id, err := p.loopOf(ctx, i.SubjectOf(in))
	if err != nil {
		return "", err
	}
	var why string
	err = p.Lookup.View(ctx, func(r *store.Reader) error {
		above, err := r.Ancestors(ctx, id)
		if err != nil {
			return err
		}
		aboveOwn, err := r.Ancestors(ctx, of.LoopID)
		is := func(id string) func(loop.Loop) bool { return func(l loop.Loop) bool { return l.ID == id } }
		switch {
		case slices.ContainsFunc(above, is(of.LoopID)):
			why = ""
		case id == of.LoopID:
			why = "it is the loop of this run, which would wait for itself"
		case slices.ContainsFunc(aboveOwn, is(id)):
			why = "it is above the loop of this run, and waits for it"
		default:
			why = "it reaches loops that it has made itself, and what those have made"
		}
		return err
	})
	return why, err
}

// outsideOfRun says why a request is outside of the grant of an agent in its run; empty: it is
// not.
func (i Info) outsideOfRun(ctx context.Context, w Workspace, of *loop.Inside, in any) (string, error) {
	switch {
	case w.place().Lookup.ID != of.Workspace:
		return "it reaches the workspace of its run only", nil
	case !i.Writes && i.ReadRefusal == nil:
		return "inside of a run an agent does not see that", nil
	case !i.Writes:
		return i.ReadRefusal(in), nil
	case i.PostRefusal == nil:
		return "inside of a run an agent may not do that", nil
	case !of.Posts():
		return "the definition of its loop lets it read only (pawl_tools: read)", nil
	}
	return i.PostRefusal(ctx, i, w, of, in)
}
