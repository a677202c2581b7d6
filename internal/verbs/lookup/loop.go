package lookup

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/schedule"
)

// Loop is a loop with its newest run and what waits for an answer.
type Loop struct {
	catalog.Entry

	Last     *loop.Run     // nil if it has none
	Open     []string      // ids of open approvals, newest first
	Switches []loop.Switch // of the store and of the workspace, which are set
}

// Usable is the definition, or the zero Definition if the file cannot be run.
func (l Loop) Usable() loop.Definition {
	if l.File != "" && l.Problem != nil {
		return loop.Definition{}
	}
	return l.Definition
}

// Loop returns the loop that a person means by a name, with its definition.
func (w *Workspace) Loop(ctx context.Context, name string) (Loop, error) {
	e, err := w.Loops.Lookup(ctx, name)
	if err != nil {
		return Loop{}, err
	}
	list, err := w.WithRuns(ctx, []catalog.Entry{e})
	if err != nil {
		return Loop{}, err
	}
	return list[0], nil
}

// AllLoops returns the loops that files of the workspace define, and those that
// have runs.
func (w *Workspace) AllLoops(ctx context.Context) ([]Loop, error) {
	entries, err := w.Loops.List(ctx, catalog.Page{})
	if err != nil {
		return nil, err
	}
	return w.WithRuns(ctx, entries)
}

// WithRuns adds what the store knows of loops.
func (w *Workspace) WithRuns(ctx context.Context, entries []catalog.Entry) ([]Loop, error) {
	list := make([]Loop, len(entries))
	var ran []string
	for i, e := range entries {
		if list[i].Entry = e; e.Row.LastN > 0 {
			ran = append(ran, e.LoopID())
		}
	}
	if w.Store == nil {
		return list, nil
	}
	err := w.View(ctx, func(r *store.Reader) error {
		set, err := r.Switches(ctx, w.ID)
		for i := range list {
			list[i].Switches = set
		}
		if err != nil || len(ran) == 0 {
			return err
		}
		newest, err := r.NewestRuns(ctx, ran...)
		if err != nil {
			return err
		}
		of := make(map[string]*loop.Run, len(newest))
		for i := range newest {
			of[newest[i].LoopID] = &newest[i]
		}
		in := w.ID
		if len(ran) == 1 {
			in = ran[0]
		}
		approvals, err := w.openApprovals(ctx, r, in)
		open := map[string][]string{}
		for _, a := range approvals {
			open[a.LoopID] = append(open[a.LoopID], a.ID)
		}
		for i := range list {
			id := list[i].LoopID()
			list[i].Last, list[i].Open = of[id], open[id]
		}
		return err
	})
	return list, err
}

// OpenApprovals returns the approvals that wait in the loop of that name, newest
// first; none if there is no such loop.
func (w *Workspace) OpenApprovals(ctx context.Context, name string) (open []loop.Approval, err error) {
	e, err := w.Loops.Resolve(ctx, name)
	if err == nil {
		err = w.View(ctx, func(r *store.Reader) error {
			open, err = w.openApprovals(ctx, r, e.LoopID())
			return err
		})
	}
	if Absent(err) {
		return nil, nil
	}
	return open, err
}

// openApprovals lists the approvals that wait in a loop or a workspace, newest
// first, without those that have expired and are not closed yet.
func (w *Workspace) openApprovals(ctx context.Context, r *store.Reader, in string) (open []loop.Approval, err error) {
	list, err := r.Approvals(ctx, in, loop.ApprovalOpen)
	for _, a := range list {
		if w.Now().Before(a.Expires) {
			open = append(open, a)
		}
	}
	return open, err
}

// PausedBy is the kill switch that keeps a loop from running because a person said so, and
// the zero switch if none does. What stops all loops comes first.
func (w *Workspace) PausedBy(l Loop) loop.KillSwitch {
	sw := engine.Switch(w.Root, l.Name, l.Usable().SwitchPaths()...)
	switch {
	case len(l.Switches) > 0 && !sw.StopsAll():
		return l.Switches[0].KillSwitch()
	case sw.IsZero() && l.Row.Paused:
		return loop.KillSwitch{Scope: loop.SwitchLoop}
	}
	return sw
}

// queuedLong is after how long a run is late that nobody has taken up.
const queuedLong = 5 * time.Minute

// LateSince returns when a loop should have come that has stopped coming: two of its
// planned times are over since its newest run, or nobody has taken up that run. It is nil
// for one that comes, is paused, or cannot come. Until is set for a loop that waits because
// the clock was set back, and when it comes by itself: late is its next time by its cadence.
func (w *Workspace) LateSince(l Loop) (late, until *time.Time) {
	now, came := w.Now(), []time.Time{l.Row.Ticked}
	if l.Row.Created.IsZero() || l.Problem != nil || l.Row.Registered.Broken != "" || !w.PausedBy(l).IsZero() {
		return nil, nil
	}
	if run := l.Last; run != nil {
		switch state := w.Liveness(*run); {
		case state == Queued && now.Sub(run.Created) > queuedLong:
			return &run.Created, nil
		case state == Queued || state == Running:
			return nil, nil
		}
		came = append(came, run.Created)
	}
	if next, setBack := schedule.SetBack(l.Usable(), l.Row, now); setBack {
		return &next, &l.Row.Registered.Planned
	}
	if reg := l.Row.Registered; !reg.Planned.After(now) && reg.Due.After(now) {
		return nil, nil // It comes soon: its jitter puts it off.
	}
	planned, stopped := schedule.Late(l.Usable(), l.Row.Created, schedule.LastCame(l.Row.Created, now, came...), now)
	if !stopped {
		return nil, nil
	}
	return &planned, nil
}

// Paused is a kill switch that stops all loops of the workspace: its file, or what
// the store has. It is zero if none does.
func (w *Workspace) Paused(ctx context.Context) (loop.KillSwitch, error) {
	if sw := engine.Switch(w.Root, ""); !sw.IsZero() {
		return sw, nil
	}
	set, err := w.Switches(ctx)
	if err != nil || len(set) == 0 {
		return loop.KillSwitch{}, err
	}
	return set[0].KillSwitch(), nil
}

// Switches lists the kill switches in the store that stop all loops of the workspace.
func (w *Workspace) Switches(ctx context.Context) (set []loop.Switch, err error) {
	if w.Store == nil {
		return nil, nil
	}
	err = w.View(ctx, func(r *store.Reader) error {
		set, err = r.Switches(ctx, w.ID)
		return err
	})
	return set, err
}

// LoopOf returns the name and the protocol of a loop of the workspace by its id;
// both are empty for a loop of another workspace.
func (w *Workspace) LoopOf(ctx context.Context, r *store.Reader, id string) (name, protocol string, err error) {
	l, err := r.Loop(ctx, id)
	if Absent(err) || err == nil && l.WorkspaceID != w.ID {
		return "", "", nil
	}
	return l.Name, l.Protocol, err
}

// Family is where a loop comes from that an agent made inside of a run, and what its own runs have
// made. The zero Family is of a loop of people's that has made none.
type Family struct {
	Parent   string   `json:"parent,omitempty"`      // name of the loop whose run made it
	Depth    int      `json:"depth,omitempty"`       // 1 below a loop of people's
	MadeBy   string   `json:"made_by_run,omitempty"` // id of that run
	Children []string `json:"children,omitempty"`    // names of the loops that its runs have made, the oldest first
}

// FamilyOf returns the family of a loop.
func FamilyOf(ctx context.Context, r *store.Reader, loopID string) (f Family, err error) {
	l, err := r.Loop(ctx, loopID)
	if Absent(err) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	f.Depth, f.MadeBy = l.Depth, l.MadeBy
	if l.Parent != "" {
		parent, err := r.Loop(ctx, l.Parent)
		if err != nil {
			return f, err
		}
		f.Parent = parent.Name
	}
	below, err := r.Children(ctx, loopID)
	for _, c := range below {
		f.Children = append(f.Children, c.Name)
	}
	return f, err
}
