// Package gatecheck runs the gates of a definition on the tip of its base, as a run
// would, so that people see what they say before any agent works.
//
// A try is not a run. It takes no number and no lease, asks no kill switch, writes
// to no store and no checkout, and judges nobody's work. Any number of tries and
// runs may work at once. If the process of a try dies, Sweep removes what it left.
package gatecheck

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
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/projection"
	"github.com/pawl-run/pawl/internal/runenv"
	"github.com/pawl-run/pawl/internal/sandbox"
	"github.com/pawl-run/pawl/internal/workspace/filled"
)

// Checker is what the tries on this machine have in common.
type Checker struct {
	runenv.Host
	NewID   func(prefix string) string
	Survive func(ctx context.Context, tag string) (int, error) // ends what survived its process, and counts it
}

// Subject is a loop whose gates are tried.
type Subject struct {
	Loop       string // name
	Root       string // of the checkout
	Repo       *git.Repo
	Definition loop.Definition
}

// Gates runs the gates of a definition as a run would, on the tip of its base
// instead of an agent's work, and returns what each of them said: also the guard
// when verify failed. Out gets what they print, as they print it; nil discards
// it. A definition without gates has no results.
//
// It blocks until the gates have ended; when ctx ends, the results so far come
// beside its cause. A base that does not exist is the *loop.Fault that a run
// would get.
func (t Checker) Gates(ctx context.Context, of Subject, out io.Writer) ([]loop.GateResult, error) {
	def := of.Definition.WithDefaults()
	base, err := of.Repo.Base(ctx, def.Base)
	if err != nil {
		return nil, err
	}
	c, err := t.claimNew()
	if err != nil {
		return nil, fmt.Errorf("try the gates of %s: %w", of.Loop, projection.DiskFault(err))
	}
	defer t.removeOrLog(context.WithoutCancel(ctx), of.Repo, c)
	s := runenv.Env{
		Host: t.Host, ID: c.id, Loop: of.Loop, Root: of.Root, Repo: of.Repo, Definition: def, Base: base.Commit, Started: t.Now(),
		Agent: commandLines(def), Tools: &runenv.Tools{}, Say: func(string) {}, Iteration: 1, Step: "try the gates",
	}
	var results []loop.GateResult
	err = s.Judge(ctx, base.Commit, true, func(g runenv.Gate, at runenv.Place) (more bool, err error) {
		res, err := s.RunGate(ctx, g, at, nil, out)
		if err == nil {
			err = context.Cause(ctx) // The result of a gate that was stopped is not a verdict.
		}
		if err != nil {
			return false, err
		}
		results = append(results, res)
		return true, nil
	})
	if missing, ok := errors.AsType[*filled.MissingError](err); ok {
		return results, &loop.Fault{Exit: loop.ExitNoSuccess, What: missing.Error(), Fix: missing.Fix(), Err: err}
	}
	if err != nil {
		return results, fmt.Errorf("try the gates of %s: %w", of.Loop, projection.DiskFault(err))
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

// A try has no row that says whether it is alive. Its lock does: the system releases
// it when the process ends, however that happens.

const (
	kind       = "try" // of ids
	lockSuffix = ".lock"
)

func isTry(id string) bool { return strings.HasPrefix(id, kind+"_") }

// claim is a try that this process carries on, or cleans up.
type claim struct {
	id   string
	lock *os.File
}

// claimNew takes a new id, and locks it before anything else bears it.
func (t Checker) claimNew() (claim, error) {
	for {
		c, err := t.lockTry(t.NewID(kind))
		if err != nil || c.lock != nil {
			return c, err
		}
	}
}

// lockTry locks a try, also one without a file. The lock is nil if another
// process has it.
func (t Checker) lockTry(id string) (claim, error) {
	lock, err := flock.Try(t.RunDir(id) + lockSuffix)
	if errors.Is(err, flock.ErrHeld) {
		err = nil
	}
	return claim{id, lock}, err
}

// removeOrLog removes what bears the id. What cannot be removed is left to Sweep.
func (t Checker) removeOrLog(ctx context.Context, repo *git.Repo, c claim) {
	if err := t.removeTry(ctx, repo, c); err != nil {
		t.Log.WarnContext(ctx, "files of a try stay behind", slog.String("try", c.id), slog.String("error", err.Error()))
	}
}

// removeTry lets go of the lock last, so that nobody else clears up meanwhile.
func (t Checker) removeTry(ctx context.Context, repo *git.Repo, c claim) error {
	return errors.Join(
		t.Drop(ctx, repo, sandbox.None, c.id), sandbox.RemoveTree(t.RunDir(c.id)), os.Remove(c.lock.Name()), c.lock.Close(),
	)
}

// Sweep removes what tries left whose process died, and ends what survived it.
func (t Checker) Sweep(ctx context.Context, repo *git.Repo) error {
	ids, err := t.leftIDs(repo)
	if err != nil {
		return err
	}
	for _, id := range ids {
		c, err := t.lockTry(id)
		if err != nil {
			return err
		}
		if c.lock == nil {
			continue // Its process is alive, or another process sweeps it.
		}
		if _, err := t.Survive(ctx, runenv.Tag(id)); err != nil {
			return errors.Join(err, c.lock.Close())
		}
		if err := t.removeTry(ctx, repo, c); err != nil {
			return err
		}
	}
	return nil
}

// leftIDs lists the ids of all tries that have left anything, live ones
// included. A power cut may have kept a copy and lost its lock.
func (t Checker) leftIDs(repo *git.Repo) ([]string, error) {
	names, err := t.Trees(repo, sandbox.None).TreeNames()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(t.Home, "runs"))
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
