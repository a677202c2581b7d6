package runenv

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Gate is one check by which the runtime decides about a tree.
type Gate = gate.Gate

// Gates are the gates of the definition, in the order in which they run.
func (s Env) Gates() []Gate {
	if s.GatesOf != nil {
		return s.GatesOf(s.Definition)
	}
	return gate.List(s.Definition)
}

// gateTimeout bounds one gate; a gate that is stopped by it has failed.
const gateTimeout = 10 * time.Minute

// Judge calls run for each gate of the definition, for as long as run asks for
// more. Place, which run calls at most once, makes the place where the gate works: each
// command gets a clean copy of the commit with a home, temporary files
// and caches of its own: nothing that one gate leaves anywhere is seen by the
// next. No copy is left behind. The other gates read the commit as git has it. Vouched means that a human answers for the commit.
//
// Where copies are layers, which no program in a sandbox can find, the copy for the
// next gate is made while a gate runs, and the last one is removed.
func (s Env) Judge(ctx context.Context, commit string, vouched bool, run func(g Gate, place func() (Place, error)) (more bool, err error)) error {
	var removing sync.WaitGroup
	defer removing.Wait()
	remove := func(k *Copy) {
		removing.Go(func() {
			err := k.Remove(context.WithoutCancel(ctx))
			if err != nil {
				s.Log.WarnContext(ctx, "gate tree stays behind", slog.String("run", s.ID), slog.String("error", err.Error()))
			}
		})
	}
	removeUnused := func(made func() (*Copy, error)) {
		if made == nil {
			return
		}
		if unused, err := made(); err == nil {
			remove(unused)
		}
	}
	gates := s.Gates()
	var ahead func() (*Copy, error) // waits for the copy of this gate; nil: none is being made
	for i, g := range gates {
		at := PlaceOf(commit)
		var k *Copy
		var next func() (*Copy, error) // as ahead, of the next gate
		place := func() (_ Place, err error) {
			if g.Check().Kind != loop.GateCommand {
				return at, nil
			}
			if ahead != nil {
				k, err = ahead()
				ahead = nil
			} else {
				removing.Wait()
				k, err = s.Copy(ctx, gatePurpose(i), commit)
			}
			if err != nil {
				return Place{}, err
			}
			if s.usesLayers() && needsCopy(gates, i+1) {
				removing.Wait() // The copy of the gate before this one has the same purpose.
				next = s.copyAhead(ctx, gatePurpose(i+1), commit)
			}
			made, err := s.GatePlace(ctx, k, vouched)
			if err == nil {
				at = made
			}
			return made, err
		}
		more, err := run(g, place)
		at.Done()
		if k != nil {
			remove(k)
		}
		removeUnused(ahead)
		if err != nil || !more {
			removeUnused(next)
			return err
		}
		ahead = next
	}
	return nil
}

// needsCopy reports whether the gate with an index, if there is one, is a command that
// no gate before it has run. If one has, what the command says is known already, unless it
// failed.
func needsCopy(gates []Gate, i int) bool {
	if i >= len(gates) || gates[i].Check().Kind != loop.GateCommand {
		return false
	}
	id := gates[i].Check().ID()
	return !slices.ContainsFunc(gates[:i], func(g Gate) bool { return g.Check().ID() == id })
}

// PlaceOf is the place of gates that run nothing: the commit as git has it.
func PlaceOf(commit string) Place { return Place{tree: commit, Done: func() {}} }

// gatePurpose is that of the copy for the gate with an index. The copies of two gates in
// a row may be there at the same time.
func gatePurpose(i int) Purpose { return [2]Purpose{ForGate, forGuard}[i%2] }

// usesLayers reports whether copies are layers, which no folder of the host shows as a
// whole.
func (s Env) usesLayers() bool { return s.Tier().HasOwnRoot() && sandbox.WhyNoLayers(s.Home) == nil }

// copyAhead starts to make a copy, and returns a function that waits for it. The caller
// must call it.
func (s Env) copyAhead(ctx context.Context, purpose Purpose, commit string) func() (*Copy, error) {
	var k *Copy
	var err error
	made := make(chan struct{})
	go func() {
		defer close(made)
		k, err = s.Copy(ctx, purpose, commit)
		s.Repo.Rest() // As before every gate: one may run for long.
	}()
	return func() (*Copy, error) {
		<-made
		return k, err
	}
}

// GatePlace is where a gate works on a copy. The folder of the turn is made anew
// for it, with an empty prompt, at the path that the agent's had: the environment is
// the same, but prompt and report of the agent and files of other gates are gone.
func (s Env) GatePlace(ctx context.Context, k *Copy, vouched bool) (Place, error) {
	n := max(1, s.Iteration)
	turn, err := s.FreshTurn(n)
	if err != nil {
		return Place{}, err
	}
	if err := s.WritePrompt(n, ""); err != nil {
		return Place{}, err
	}
	return s.Place(ctx, k, Use{Turn: turn, Vouched: vouched})
}

// RunGate runs one gate at a place, within the time limit of gates. Fresh returns the
// place for each further try of a gate that the definition calls flaky; if nil, all
// tries use the same. Out gets what the gate prints; it may be nil.
func (s Env) RunGate(ctx context.Context, g Gate, at Place, fresh func(context.Context) (Place, error), out io.Writer) (loop.GateResult, error) {
	rule, err := gate.ParseRule(s.Definition.Flaky)
	if err != nil {
		return loop.GateResult{}, fmt.Errorf("flaky: %w", err)
	}
	in := gate.Input{
		Place: at.forGate(), Env: s.StepEnv(), Tag: Tag(s.ID), Timeout: s.Within(gateTimeout), Output: out, Rule: rule, Ask: s.Ask, Work: s.Work,
	}
	in.Tree = treeAt(ctx, s.Repo, at.tree)
	if s.Base != "" {
		in.Base = treeAt(ctx, s.Repo, s.Base)
	}
	if in.Ask == nil {
		in.Ask = gate.NoModel
	}
	if fresh != nil {
		in.Fresh = func(ctx context.Context) (gate.Place, error) {
			at, err := fresh(ctx)
			return at.forGate(), err
		}
	}
	s.Repo.Rest()
	return g.Run(ctx, in)
}
