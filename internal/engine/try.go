package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/flock"
	"github.com/pawl-run/pawl/internal/gate"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/projection"
	"github.com/pawl-run/pawl/internal/sandbox"
	"github.com/pawl-run/pawl/internal/site"
	"github.com/pawl-run/pawl/internal/workspace"
)

// TryGates runs the gates of the target's definition as a run would, on the
// tip of its base instead of an agent's work, and returns what each of them
// said: also the guard when verify failed. Out gets what they print, as they
// print it; nil discards it. A definition without gates has no results.
//
// It is no run. It takes no number and no lease, asks no kill switch, and
// writes to no store and no checkout: Deps.Store may be nil. Any number of
// tries and runs may go on at once.
//
// It blocks until the gates have ended; when ctx ends, the results so far come
// beside its cause. A base that does not exist is the *loop.Fault that a run
// would get.
func (e *Engine) TryGates(ctx context.Context, t Target, out io.Writer) ([]loop.GateResult, error) {
	def := t.Definition.WithDefaults()
	base, err := t.Repo.Base(ctx, def.Base)
	if err != nil {
		return nil, err
	}
	claim, err := e.claimTry()
	if err != nil {
		return nil, fmt.Errorf("try the gates of %s: %w", t.Loop.Name, projection.DiskFault(err))
	}
	defer e.endTry(context.WithoutCancel(ctx), t.Repo, claim)
	s := site.Site{
		Host: e.host(), ID: claim.id, Loop: t.Loop.Name, Root: t.Workspace.Root, Repo: t.Repo, Definition: def, Started: e.Now(),
		Agent: commandLines(def), Tools: &site.Tools{}, Say: func(string) {}, Iteration: 1, Step: "try the gates",
	}
	var results []loop.GateResult
	err = s.Judge(ctx, base.Commit, true, func(g gate.Check, at site.Place) (more bool, err error) {
		res, err := s.RunGate(ctx, g, at, nil, out)
		if err == nil {
			err = context.Cause(ctx) // What a gate says that was stopped is no verdict.
		}
		if err != nil {
			return false, err
		}
		results = append(results, res)
		return true, nil
	})
	if err != nil {
		return results, fmt.Errorf("try the gates of %s: %w", t.Loop.Name, projection.DiskFault(err))
	}
	return results, nil
}

// commandLines are the lines of a definition's own agent, for whoever tries its
// gates without one.
func commandLines(d loop.Definition) []string {
	if d.AgentCommand == "" {
		return nil
	}
	return []string{d.AgentCommand}
}

// A try has no row that tells whether somebody carries it on. Its lock does:
// the system drops it when the process ends, however that happens.

const (
	tryKind    = "try"
	lockSuffix = ".lock"
)

func isTry(id string) bool { return strings.HasPrefix(id, tryKind+"_") }

// tryClaim is a try that this process carries on, or cleans up.
type tryClaim struct {
	id   string
	lock *os.File
}

// claimTry takes a new id, and locks it before anything else bears it.
func (e *Engine) claimTry() (tryClaim, error) {
	for {
		c, err := e.lockTry(e.NewID(tryKind))
		if err != nil || c.lock != nil {
			return c, err
		}
	}
}

// lockTry locks a try, also one without a file. The lock is nil if another
// process has it.
func (e *Engine) lockTry(id string) (tryClaim, error) {
	lock, err := flock.Try(e.runDir(id) + lockSuffix)
	if errors.Is(err, flock.ErrHeld) {
		err = nil
	}
	return tryClaim{id, lock}, err
}

// endTry removes what bears the id. What cannot be removed is left to Sweep.
func (e *Engine) endTry(ctx context.Context, repo *git.Repo, c tryClaim) {
	if err := e.dropTry(ctx, repo, c); err != nil {
		e.Log.WarnContext(ctx, "files of a try stay behind", slog.String("try", c.id), slog.String("error", err.Error()))
	}
}

// dropTry lets go of the lock last, so that nobody else clears up meanwhile.
func (e *Engine) dropTry(ctx context.Context, repo *git.Repo, c tryClaim) error {
	return errors.Join(
		e.host().Drop(ctx, repo, sandbox.None, c.id), sandbox.Discard(e.runDir(c.id)), os.Remove(c.lock.Name()), c.lock.Close(),
	)
}

// sweepTries removes what tries left whose process died, and ends what
// survived it.
func (e *Engine) sweepTries(ctx context.Context, repo *git.Repo) error {
	trees := e.host().Trees(repo, sandbox.None)
	ids, err := e.tries(trees)
	if err != nil {
		return err
	}
	for _, id := range ids {
		c, err := e.lockTry(id)
		if err != nil {
			return err
		}
		if c.lock == nil {
			continue // It is carried on, or another process sweeps it.
		}
		if _, err := e.Survive(ctx, site.Tag(id)); err != nil {
			return errors.Join(err, c.lock.Close())
		}
		if err := e.dropTry(ctx, repo, c); err != nil {
			return err
		}
	}
	return nil
}

// tries lists the ids of all tries that have left anything, live ones
// included. A power cut may have kept a copy and lost its lock.
func (e *Engine) tries(trees *workspace.Trees) ([]string, error) {
	names, err := trees.Left()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(e.Home, "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), lockSuffix))
	}
	var ids []string
	for _, name := range names {
		if id, _, _ := strings.Cut(name, "-"); isTry(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
