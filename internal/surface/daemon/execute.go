package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/queue"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// How long a run waits that could not be executed, unless another one of its workspace
// ends before.
const (
	heldWait   = 5 * time.Second  // another run of its loop is live
	pausedWait = 15 * time.Second // a kill switch is set
	lockedWait = time.Minute      // what it may touch is held by another loop
	failedWait = time.Minute      // something else is wrong
)

// executeQueued takes runs from the queue until it is stopped.
func (d *Daemon) executeQueued(ctx, running context.Context) {
	for {
		run, err := d.Queue.Take(ctx)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, queue.ErrStopped) {
				return
			}
			d.tellWrong(ctx, "queue", "", fmt.Errorf("look for queued runs: %w", err))
			if !sleep(ctx, sweepGap) {
				return
			}
			continue
		}
		d.atWork.Add(1)
		workspace, again := d.execute(running, run)
		d.atWork.Add(-1)
		d.tellWrong(ctx, "queue", "", nil)
		d.Queue.Finish(run, workspace, again)
		set(d.look) // Events may wait for its end.
	}
}

// execute carries out a queued run. It returns after how long it is to be tried again;
// zero if it is queued no more.
func (d *Daemon) execute(ctx context.Context, run loop.Run) (workspace string, again time.Duration) {
	l, t, err := d.fleet.targetOf(ctx, run)
	workspace = l.WorkspaceID
	if err == nil {
		run, err = d.Engine.Execute(ctx, t, run.ID)
	}
	held, isHeld := errors.AsType[*loop.HeldError](err)
	locked, isLocked := errors.AsType[*loop.LockedError](err)
	fault, isFault := errors.AsType[*loop.Fault](err)
	switch {
	case err == nil:
		d.Tell(Happened{Loop: l.Name, Root: t.Workspace.Root, Ended: &run})
		return workspace, 0
	case errors.Is(err, loop.ErrLeaseLost): // Somebody else has it.
		return workspace, 0
	case isHeld:
		d.Log.DebugContext(ctx, "a run waits", slog.String("run", run.ID), slog.String("why", held.Error()))
		return workspace, heldWait
	case isLocked:
		d.Log.DebugContext(ctx, "a run waits", slog.String("run", run.ID), slog.String("why", locked.Error()))
		return workspace, lockedWait
	case errors.Is(err, loop.ErrPaused), isFault && fault.Exit == loop.ExitPaused:
		return workspace, pausedWait
	case isFault && fault.Exit == loop.ExitHeld:
		return workspace, heldWait
	}
	d.Tell(Happened{Loop: l.Name, Root: t.Workspace.Root, Wrong: err})
	return workspace, failedWait
}
