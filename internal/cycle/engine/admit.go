package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/record/accepted"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Admit refuses what only rows ask this machine to do: a definition, with the overrides of a
// run, that gets more than a confined copy of the tree counts if a person said it here, if a
// file of the checkout says it, or if it was accepted here before. What is admitted is
// accepted from then on. The error is a *loop.Fault with loop.ErrNotAcceptedHere. No store may be
// locked by the caller: files are read.
func (e *Engine) Admit(t Target, o loop.Overrides) error {
	return e.admit(t, o.Apply(t.Definition).WithDefaults(), o)
}

// admit is Admit for a definition in which the overrides are in place.
func (e *Engine) admit(t Target, d loop.Definition, o loop.Overrides) error {
	item, asks := accepted.Definition(d)
	if e.Accepted == nil || !asks {
		return nil
	}
	if t.Said || e.saysFile(t, d, o) {
		return e.Accepted.Accept(item)
	}
	err := e.Accepted.Check(item)
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		f.Why += "; no file of " + t.Workspace.Root + " says the same"
	}
	return err
}

// saysFile reports whether a file of the checkout says what a definition does. Overrides that
// name a program or a sandbox were said by a command, and by no file.
func (e *Engine) saysFile(t Target, d loop.Definition, o loop.Overrides) bool {
	if t.OfFile == nil || o.AgentCommand != "" || o.Sandbox != "" {
		return false
	}
	own, ok := t.OfFile()
	return ok && o.Apply(own).WithDefaults().Digest() == d.Digest()
}

// admitQueued admits what a queued run does, by its row, and returns the digest of that
// definition; empty if all is accepted.
func (e *Engine) admitQueued(ctx context.Context, t Target, id string) (digest string, err error) {
	if e.Accepted == nil {
		return "", nil
	}
	var asks store.Asking
	var run loop.Run
	err = e.Store.View(ctx, func(r *store.Reader) (err error) {
		if asks, err = r.Asking(ctx, id); err == nil {
			run, err = r.Run(ctx, id)
		}
		return err
	})
	if err == nil {
		err = checkNames(run.ID, run.LoopID)
	}
	if err != nil {
		return "", err
	}
	return asks.Definition.Digest(), e.admit(t, asks.Definition, run.Overrides)
}

// checkAdmitted refuses a definition that is not the one that was admitted: somebody has
// changed the row since.
func (e *Engine) checkAdmitted(id, digest string, d loop.Definition) error {
	if e.Accepted != nil && d.Digest() != digest {
		return fmt.Errorf("run %s: its definition was changed before it began: %w", id, loop.ErrRowChanged)
	}
	return nil
}

// admitCommand admits a command by which an event is looked for: it has to be one of the
// definition, and not of the row that says what a loop listens to.
func (e *Engine) admitCommand(t Target, command string) error {
	if err := e.Admit(t, loop.Overrides{}); err != nil || e.Accepted == nil {
		return err
	}
	asks := func(text string) bool {
		on, err := loop.ParseEventSource(text)
		return err == nil && on.Kind == loop.OnCommand && on.What == command
	}
	if slices.ContainsFunc(t.Definition.On, asks) {
		return nil
	}
	return &loop.Fault{
		Exit: loop.ExitRefused, What: "the command " + command + " is not run for " + t.Loop.Name, Err: loop.ErrNotAcceptedHere,
		Why: "a row says that the loop listens to it, and its definition does not", Fix: "read the definitions again: {1}", Actions: []loop.Command{loop.PawlCommand("reload")},
	}
}

// admitAgent refuses an entry of the roster whose program or address nobody has accepted here.
func (e *Engine) admitAgent(a loop.Agent) error {
	if err := checkNames(a.Handle); err != nil {
		return err
	}
	item, asks := accepted.Agent(a)
	if !asks {
		return nil
	}
	return e.Accepted.Check(item)
}

// admitAnswer refuses a yes that nobody has given on this machine.
func (e *Engine) admitAnswer(a loop.Approval) error { return e.Accepted.Check(accepted.Answer(a)) }

// notGiven is how a run ends that was fired by a yes which nobody has given here.
func notGiven(err error) (*ending, error) {
	f, ok := errors.AsType[*loop.Fault](err)
	if !ok {
		return nil, err
	}
	return &ending{outcome: loop.OutcomeRefused, reason: loop.ReasonApproval, detail: f.What + ": " + f.Why + "; " + f.Advice().String()}, nil
}

// checkNames refuses names of rows that lead out of the folder in which they name a file or a
// folder.
func checkNames(names ...string) error {
	for _, name := range names {
		if !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) || name == "." {
			return fmt.Errorf("%q is not a name that a row may have", name)
		}
	}
	return nil
}
