package runs

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// Tree says which files of a run a program sees.
type Tree struct {
	Run    string // LOOP#N
	Commit string
	What   string // in words
}

// TreeOf returns the newest files of a run: those of its proposal, else of its snapshot,
// else of its base.
func (s *Service) TreeOf(ctx context.Context, ref string) (loop.Run, Tree, error) {
	run, err := s.ws.Run(ctx, ref)
	if err != nil {
		return run, Tree{}, err
	}
	t := Tree{Run: s.ws.RunName(ctx, run), Commit: run.Commit, What: "its proposal"}
	if node, path, err := s.ws.Elsewhere(ctx, run); err != nil || node != "" {
		return run, t, cmp.Or(err, lookup.ElsewhereFault("shell "+ref, t.Run, node, path))
	}
	if t.Commit == "" && run.Snapshot != "" {
		if t.Commit, _, err = s.ws.Repo.Ref(ctx, run.Snapshot); err != nil {
			return run, t, err
		}
		t.What = "its snapshot"
	}
	if t.Commit == "" {
		t.Commit, t.What = run.BaseCommit, "its base"
	}
	if t.Commit == "" {
		f := &loop.Fault{Exit: loop.ExitRefused, What: "shell " + ref, Why: fmt.Sprintf("%s never looked at a commit", t.Run)}
		return run, t, f.WithAdvice(loop.Advise("choose another one: {1}", loop.PawlCommand("runs")))
	}
	return run, t, nil
}

// Shell runs a program on a copy of a tree, in the sandbox of the definition that the run
// had, and returns its exit status. Nothing of what it writes is kept.
func (s *Service) Shell(ctx context.Context, run loop.Run, t Tree, p proc.Spec) (exit int, err error) {
	var def loop.Definition
	err = s.ws.View(ctx, func(r *store.Reader) (err error) {
		def, err = r.Definition(ctx, run.Definition)
		return err
	})
	if err != nil {
		return 0, err
	}
	return s.Engine.RunProgram(ctx, s.ws.Target(run.Overrides.Apply(def)), t.Commit, p)
}
