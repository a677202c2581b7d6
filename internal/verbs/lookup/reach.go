package lookup

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// RunByID returns a run of the workspace. One store serves several workspaces: the run of
// another one does not exist here, and the error is loop.ErrNotFound.
func (w *Workspace) RunByID(ctx context.Context, r *store.Reader, id string) (loop.Run, error) {
	run, err := r.Run(ctx, id)
	if err != nil {
		return loop.Run{}, err
	}
	if err := w.checkOwn(ctx, r, run.LoopID); err != nil {
		return loop.Run{}, fmt.Errorf("run %s: %w", id, err)
	}
	return run, nil
}

// ApprovalByID is RunByID for a question to a person.
func (w *Workspace) ApprovalByID(ctx context.Context, r *store.Reader, id string) (loop.Approval, error) {
	a, err := r.Approval(ctx, id)
	if err != nil {
		return loop.Approval{}, err
	}
	if err := w.checkOwn(ctx, r, a.LoopID); err != nil {
		return loop.Approval{}, fmt.Errorf("approval %s: %w", id, err)
	}
	return a, nil
}

// checkOwn is loop.ErrNotFound for a loop of another workspace.
func (w *Workspace) checkOwn(ctx context.Context, r *store.Reader, loopID string) error {
	l, err := r.Loop(ctx, loopID)
	if err == nil && l.WorkspaceID != w.ID {
		err = loop.ErrNotFound
	}
	return err
}

// OrNoRun is the fault for a run that does not exist in the workspace, if that is what err
// says, and err otherwise.
func OrNoRun(err error, ref string) error {
	if !Absent(err) {
		return err
	}
	f := &loop.Fault{Exit: loop.ExitNotFound, What: "there is no run " + ref, Fix: "{1} lists them", Actions: []loop.Command{loop.PawlCommand("runs")}, Err: err}
	if isRunID(ref) {
		f.Why = "no run of this repository has the id; one of another repository is found there"
	}
	return f
}

// isRunID reports whether a RUN is an id. No loop has such a name.
func isRunID(ref string) bool { return strings.HasPrefix(ref, "run_") }
