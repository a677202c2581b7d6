// Package gatecheck runs the gates of a definition on the tip of its base, as a
// run would, so that people see their results before any agent works.
//
// A try is not a run. It has no number and no lease, does not check the kill
// switch, writes to no store and no checkout, and judges nobody's work. Any
// number of tries and runs may be active at once. If the process of a try dies,
// Sweep removes what it left behind.
package gatecheck

import (
	"cmp"
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
	"time"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/confine/workspace/filled"
	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/flock"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Checker is what all tries on this machine share.
type Checker struct {
	runenv.Host
	NewID   func(prefix string) string
	Survive func(ctx context.Context, tag string) (int, error) // ends processes that survived the try's process, and counts them
}

// Subject is a loop whose gates are tried.
type Subject struct {
	Loop       string // name
	Root       string // of the checkout
	Repo       *git.Repo
	Definition loop.Definition
	Commit     string // that Gates judges; empty: the tip of the base
}

// Gates runs the gates of a definition on the tip of its base, or on another commit, as a
// run would on an agent's work, and returns all results; the guard runs even if verify failed.
// Reviewers are not asked: there is no work. Out gets what the gates print, as they
// print it; nil discards it. A definition without gates has no results.
//
// It blocks until the gates have ended. If ctx ends, it returns the results so
// far and the cause. If the base does not exist, the error is the *loop.Fault
// that a run would get.
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
	outputs := map[string]string{}
	s.Work = gate.Work{Outputs: outputs, BaseOutputs: outputs}
	err = s.Judge(ctx, cmp.Or(of.Commit, base.Commit), true, func(g runenv.Gate, place func() (runenv.Place, error)) (more bool, err error) {
		if g.Check().Kind == loop.GateReviewer {
			return true, nil
		}
		at, err := place()
		if err != nil {
			return false, err
		}
		res, err := s.RunGate(ctx, g, at, nil, out)
		if err == nil {
			err = context.Cause(ctx) // The result of a gate that was stopped is not a verdict.
		}
		if err != nil {
			return false, err
		}
		results = append(results, res)
		outputs[res.Name] = res.Evidence
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

// The bounds of a command that is asked.
const (
	askTimeout = 2 * time.Minute
	askHead    = 12 << 10 // bytes kept of its output: its beginning
	askTail    = 4 << 10  // and its end
)

// Answer is what a command said that was asked.
type Answer struct {
	Text string // what it printed
	Exit int
}

// Ask is Program for a line for the shell on the tip of the base of the definition. It blocks
// until the command has ended, for two minutes at most. A command that takes longer is an
// error.
func (t Checker) Ask(ctx context.Context, of Subject, command string) (a Answer, err error) {
	base, err := of.Repo.Base(ctx, of.Definition.Base)
	if err != nil {
		return a, err
	}
	said := proc.NewRing(askHead, askTail)
	res, err := t.runProgram(ctx, of, base.Commit, proc.Spec{
		Argv: []string{"/bin/sh", "-c", command}, Stdout: said, Stderr: said, Timeout: askTimeout,
	})
	switch {
	case err != nil:
		return a, fmt.Errorf("run %q: %w", command, err)
	case ctx.Err() != nil:
		return a, context.Cause(ctx)
	case res.Ended == proc.TimedOut:
		return a, fmt.Errorf("%q did not end within %s", command, askTimeout)
	}
	return Answer{strings.TrimSpace(said.String()), res.Exit}, nil
}

// Program runs a program on a copy of a commit, where and as confined as the gates of the
// definition run, and returns its exit status. What it writes is thrown away with the
// copy. The environment of the gates is added to that of p; the directory is the copy.
func (t Checker) Program(ctx context.Context, of Subject, commit string, p proc.Spec) (exit int, err error) {
	res, err := t.runProgram(ctx, of, commit, p)
	return res.Exit, err
}

func (t Checker) runProgram(ctx context.Context, of Subject, commit string, p proc.Spec) (res proc.Result, err error) {
	c, err := t.claimNew()
	if err != nil {
		return res, projection.DiskFault(err)
	}
	defer t.removeOrLog(context.WithoutCancel(ctx), of.Repo, c)
	def := of.Definition.WithDefaults()
	s := runenv.Env{
		Host: t.Host, ID: c.id, Loop: of.Loop, Root: of.Root, Repo: of.Repo, Definition: def, Base: commit, Started: t.Now(),
		Agent: commandLines(def), Tools: &runenv.Tools{}, Say: func(string) {},
	}
	k, err := s.Copy(ctx, runenv.ForAct, commit)
	if err != nil {
		return res, projection.DiskFault(err)
	}
	defer func() { err = errors.Join(err, k.Remove(context.WithoutCancel(ctx))) }()
	at, err := s.GatePlace(ctx, k, false)
	if err != nil {
		return res, err
	}
	defer at.Done()
	p.Dir, p.Env, p.Tag = at.Dir, append(s.ProgramEnv(), p.Env...), runenv.Tag(c.id)
	return at.Run(ctx, p)
}

// commandLines returns the command line of a definition's own agent, if it has
// one.
func commandLines(d loop.Definition) []string {
	if d.AgentCommand == "" {
		return nil
	}
	return []string{d.AgentCommand}
}

// No row says whether a try is alive, but its lock does: the system releases it when
// the process ends, for whatever reason.

const (
	kind       = "try" // prefix of IDs
	lockSuffix = ".lock"
)

func isTry(id string) bool { return strings.HasPrefix(id, kind+"_") }

// claim is a locked try, which this process runs or cleans up.
type claim struct {
	id   string
	lock *os.File
}

// claimNew takes a new ID, and locks it before anything else uses it.
func (t Checker) claimNew() (claim, error) {
	for {
		c, err := t.lockTry(t.NewID(kind))
		if err != nil || c.lock != nil {
			return c, err
		}
	}
}

// lockTry locks a try, even if its lock file does not exist yet. The lock is nil
// if another process holds it.
func (t Checker) lockTry(id string) (claim, error) {
	lock, err := flock.Try(t.RunDir(id) + lockSuffix)
	if errors.Is(err, flock.ErrHeld) {
		err = nil
	}
	return claim{id, lock}, err
}

// removeOrLog removes everything that has the ID. Sweep removes later what cannot
// be removed now.
func (t Checker) removeOrLog(ctx context.Context, repo *git.Repo, c claim) {
	if err := t.removeTry(ctx, repo, c); err != nil {
		t.Log.WarnContext(ctx, "files of a try stay behind", slog.String("try", c.id), slog.String("error", err.Error()))
	}
}

// removeTry releases the lock last, so that no other process cleans up at the
// same time.
func (t Checker) removeTry(ctx context.Context, repo *git.Repo, c claim) error {
	return errors.Join(
		t.Drop(ctx, repo, sandbox.None, c.id), sandbox.RemoveTree(t.RunDir(c.id)), os.Remove(c.lock.Name()), c.lock.Close(),
	)
}

// Sweep removes what tries left behind whose process died, and ends processes
// that survived.
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

// leftIDs returns the IDs of all tries that left anything, including live ones.
// After a power cut there may be a copy without its lock.
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
