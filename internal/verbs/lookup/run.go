package lookup

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Run finds a RUN of the workspace: a run id, LOOP#N, or LOOP for its newest. A run that does
// not exist, or is another workspace's, is a *loop.Fault that is loop.ErrNotFound.
func (w *Workspace) Run(ctx context.Context, ref string) (loop.Run, error) {
	var run loop.Run
	read := func(fn func(*store.Reader) (loop.Run, error)) error {
		err := w.View(ctx, func(r *store.Reader) (err error) {
			run, err = fn(r)
			return err
		})
		return OrNoRun(err, ref)
	}
	if isRunID(ref) {
		err := read(func(r *store.Reader) (loop.Run, error) { return w.RunByID(ctx, r, ref) })
		return run, err
	}
	name, number, numbered := strings.Cut(ref, "#")
	e, err := w.Loops.Resolve(ctx, name)
	if err != nil {
		return run, err
	}
	if numbered {
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return run, &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("%q is not a run", ref), Fix: "write LOOP#NUMBER, for example " + name + "#3"}
		}
		err = read(func(r *store.Reader) (loop.Run, error) { return r.RunNumber(ctx, e.LoopID(), n) })
		return run, err
	}
	var newest []loop.Run
	err = w.View(ctx, func(r *store.Reader) (err error) {
		newest, err = r.Runs(ctx, e.LoopID(), 1)
		return err
	})
	if err != nil && !Absent(err) {
		return run, err
	}
	if len(newest) == 0 {
		f := &loop.Fault{
			Exit: loop.ExitNotFound, What: "loop " + name + " has no runs yet", Err: loop.ErrNotFound,
			Fix: "start one: {1}", Actions: []loop.Command{loop.PawlCommand("run", name)},
		}
		if e.Row.Registered.Broken != "" {
			f.Why = "it does not fire: " + e.Row.Registered.Broken
			f.Fix, f.Actions = "correct it: {1} says what is wrong", []loop.Command{loop.PawlCommand("check", name)}
		}
		return run, f
	}
	return newest[0], nil
}

// ChangingRun finds a run whose change is asked for. A quiet run has none: if it
// was found by the name of its loop, the run is meant that asked the newest open
// question.
func (w *Workspace) ChangingRun(ctx context.Context, ref string) (loop.Run, error) {
	run, err := w.Run(ctx, ref)
	if err != nil || run.Outcome != loop.OutcomeQuiet {
		return run, err
	}
	open, err := w.OpenApprovals(ctx, ref)
	if err != nil || len(open) == 0 {
		return run, err
	}
	err = w.View(ctx, func(r *store.Reader) (err error) {
		run, err = w.RunByID(ctx, r, open[0].RunID)
		return err
	})
	return run, err
}

// RunName returns LOOP#N, or the id of a run whose loop cannot be read.
func (w *Workspace) RunName(ctx context.Context, run loop.Run) string {
	var l loop.Loop
	err := w.View(ctx, func(r *store.Reader) (err error) {
		l, err = r.Loop(ctx, run.LoopID)
		return err
	})
	if err != nil {
		return run.ID
	}
	return fmt.Sprintf("%s#%d", l.Name, run.N)
}

// What Liveness says of a run.
const (
	Idle    = "idle"   // it has ended
	Queued  = "queued" // nobody has claimed it yet
	Running = "running"
	Dead    = "dead" // the process that held it is gone
	Lost    = "lost" // its holder is elsewhere and has not extended its lease
)

// Liveness tells a run that somebody carries on from one that nobody does.
func (w *Workspace) Liveness(run loop.Run) string {
	return Liveness(run, w.HolderState(run.Holder), w.Now())
}

// Liveness is Workspace.Liveness for a holder whose state is known. Now is the time of
// the database: no other clock decides about a lease.
func Liveness(run loop.Run, holder loop.HolderState, now time.Time) string {
	switch {
	case run.State == loop.RunEnded:
		return Idle
	case run.State == loop.RunQueued:
		return Queued
	case holder == loop.HolderDead:
		return Dead
	case holder == loop.HolderElsewhere && now.After(run.LeaseUntil):
		return Lost
	}
	return Running
}

// IsLeft reports whether nobody carries on a run with that liveness, so that any
// command that writes concludes it.
func IsLeft(liveness string) bool { return liveness == Dead || liveness == Lost }

// Elsewhere returns the name of the node that has the work of a run, and the path of its
// clone there, if that is not this node; both are empty else.
func (w *Workspace) Elsewhere(ctx context.Context, run loop.Run) (node, path string, err error) {
	if run.Node == "" || run.Node == w.Node.ID {
		return "", "", nil
	}
	err = w.View(ctx, func(r *store.Reader) error {
		n, err := r.Node(ctx, run.Node)
		if Absent(err) {
			n.Name = run.Node + ", which was forgotten"
		} else if err != nil {
			return err
		}
		node = n.Name
		places, err := r.Placements(ctx, w.ID)
		for _, p := range places {
			if p.NodeID == run.Node {
				path = p.Path
			}
		}
		return err
	})
	return node, path, err
}

// ElsewhereFault is the error of a verb that needs the work of a run which is in the
// clone of another node, as Elsewhere returns it.
func ElsewhereFault(doing, run, node, path string) error {
	return &loop.Fault{
		Exit: loop.ExitHeld, What: doing, Why: strings.TrimSuffix(fmt.Sprintf("the work of %s is on node %s, in %s", run, node, path), ", in "),
		Fix: "enter the command there",
	}
}
