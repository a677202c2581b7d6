package verb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Subject is what of a workspace a request is about, for grants. At most one of the texts is set.
type Subject struct {
	Loop     string // a loop, as people name it
	Run      string // a run, as people name it
	Approval string // id of an approval
	All      bool   // without a loop it is about all of them, and the result is cut to those that are granted
}

// isOfAll reports whether nothing is named.
func (s Subject) isOfAll() bool { return s.Loop == "" && s.Run == "" && s.Approval == "" }

// loopOf is the id of the loop that a request is about.
func (p *Place) loopOf(ctx context.Context, s Subject) (id string, err error) {
	if s.Approval != "" {
		err = p.Lookup.View(ctx, func(r *store.Reader) error {
			a, err := p.Lookup.ApprovalByID(ctx, r, s.Approval)
			id = a.LoopID
			return err
		})
		return id, err
	}
	if s.Run != "" {
		run, err := p.Lookup.Run(ctx, s.Run)
		return run.LoopID, err
	}
	e, err := p.Lookup.Loops.Resolve(ctx, s.Loop)
	return e.LoopID(), err
}

// checkGrant refuses what is outside of the grant of a caller, in its workspace.
func (i Info) checkGrant(ctx context.Context, c *Call, in any) error {
	g := c.By.Grant
	if g == nil {
		return nil
	}
	if !i.InWorkspace {
		why := ""
		switch {
		case g.Inside != nil && (i.Writes || i.ReadRefusal == nil), g.Inside == nil && i.SubjectOf == nil:
			why = "it is about more than its grant"
		case g.Inside != nil:
			why = i.ReadRefusal(in)
		}
		if why != "" {
			return grantFault(i, c.By, why, in)
		}
		return nil
	}
	w, err := c.Workspace(ctx)
	if err != nil {
		return err
	}
	c.Workspace = func(context.Context) (Workspace, error) { return w, nil }
	var why string
	if g.Inside != nil {
		why, err = i.outsideOfRun(ctx, w, g.Inside, in)
	} else {
		why, err = i.outsideOfLoops(ctx, w.place(), g, in)
	}
	if err != nil {
		return err
	}
	if why != "" {
		return grantFault(i, c.By, why, in)
	}
	return nil
}

// outsideOfLoops says why a request is outside of a grant of loops; empty: it is not.
func (i Info) outsideOfLoops(ctx context.Context, p *Place, g *loop.Grant, in any) (string, error) {
	names := g.NamesIn(p.Lookup.ID)
	if len(names) == 0 {
		return "it reaches no loop of this workspace", nil
	}
	reaches := "it reaches the loops " + strings.Join(names, ", ")
	if i.SubjectOf == nil {
		return reaches + ", and this is about more", nil
	}
	s := i.SubjectOf(in)
	if s.isOfAll() {
		if s.All {
			return "", nil
		}
		return reaches + ", and this is about all", nil
	}
	id, err := p.loopOf(ctx, s)
	if err != nil {
		if errors.Is(err, loop.ErrNotFound) { // Nor does it learn which others there are.
			return reaches, nil
		}
		return "", err
	}
	granted, err := p.granted(ctx, g)
	if err != nil || slices.Contains(granted, id) {
		return "", err
	}
	return reaches, nil
}

// granted are the ids of the loops of a grant in this workspace. Those that are not there yet
// are left out.
func (p *Place) granted(ctx context.Context, g *loop.Grant) (ids []string, err error) {
	for _, name := range g.NamesIn(p.Lookup.ID) {
		e, err := p.Lookup.Loops.Resolve(ctx, name)
		if errors.Is(err, loop.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, e.LoopID())
	}
	return ids, nil
}

// cutToGrant leaves of a result what a grant of loops reaches, and of a list at most so many entries;
// 0: all.
func (i Info) cutToGrant(ctx context.Context, c Call, in, out any, most int) (any, error) {
	w, err := c.Workspace(ctx)
	if err != nil {
		return nil, err
	}
	p, names := w.place(), map[string]bool{}
	granted := c.By.Grant.NamesIn(p.Lookup.ID)
	for _, name := range granted {
		if e, err := p.Lookup.Loops.Resolve(ctx, name); err == nil {
			names[e.Name] = true
		}
	}
	out, left := i.cut(out, func(loop string) bool { return names[loop] }, most)
	if !left {
		return nil, grantFault(i, c.By, "it reaches the loops "+strings.Join(granted, ", "), in)
	}
	return out, nil
}

// Reached reports whether a grant reaches the loop with a name.
type Reached func(loop string) bool

// CutEntries cuts a list to the entries whose loops are reached, and of those to the first so many; 0: to all.
func CutEntries[Entry any](loopOf func(Entry) string) func([]Entry, Reached, int) ([]Entry, bool) {
	return func(list []Entry, reached Reached, most int) ([]Entry, bool) {
		list = slices.DeleteFunc(slices.Clone(list), func(e Entry) bool { return !reached(loopOf(e)) })
		if most > 0 && len(list) > most {
			list = list[:most]
		}
		return list, true
	}
}

// grantFault refuses what is outside of a grant.
func grantFault(i Info, by loop.Actor, why string, in any) error {
	f := &loop.Fault{Exit: loop.ExitRefused, What: fmt.Sprintf("%s may not %s", by.Who, i.Does), Why: why, Err: loop.ErrGrant, Fix: "stay within what is granted"}
	if c := i.PersonsCommand(in); c.Verb != "" {
		return f.WithAdvice(loop.Advise("let a person do it: {1}", c))
	}
	return f
}

// Reaches reports whether an actor with a grant may ask for the verb at all: what it may not is
// not offered to it.
func (i Info) Reaches(g *loop.Grant) bool {
	switch {
	case g == nil:
		return true
	case g.Inside == nil:
		return i.SubjectOf != nil
	case i.Writes:
		return i.PostRefusal != nil && g.Inside.Posts()
	}
	return i.ReadRefusal != nil
}
