package site

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/pawl-run/pawl/internal/gate"
	"github.com/pawl-run/pawl/internal/loop"
)

// gateTimeout bounds one gate; a gate that is stopped by it has failed.
const gateTimeout = 10 * time.Minute

// Judge calls run for each gate of the definition, with a clean copy of the
// commit, for as long as run asks for more. No copy is left behind. Vouched
// says that a human stands for the commit.
func (s Site) Judge(ctx context.Context, commit string, vouched bool, run func(g gate.Check, at Place) (more bool, err error)) error {
	var last *Copy
	defer func() {
		if last != nil {
			if err := last.Remove(context.WithoutCancel(ctx)); err != nil {
				s.Log.WarnContext(ctx, "gate tree stays behind", slog.String("run", s.ID), slog.String("error", err.Error()))
			}
		}
	}()
	for _, g := range gate.Checks(s.Definition) {
		var err error
		if last, err = s.gateTree(ctx, last, commit); err != nil {
			return err
		}
		at, err := s.GatePlace(ctx, last, vouched)
		if err != nil {
			return err
		}
		more, err := run(g, at)
		at.Done()
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// gateTree returns a clean copy of the commit: the one at hand, unless a gate
// wrote into it.
func (s Site) gateTree(ctx context.Context, had *Copy, commit string) (*Copy, error) {
	if had != nil {
		changes, problems, err := had.Changes(ctx)
		if err != nil {
			return had, err
		}
		if len(changes)+len(problems) == 0 {
			return had, nil
		}
		if err := had.Remove(ctx); err != nil {
			return had, err
		}
	}
	return s.Copy(ctx, ForGate, commit)
}

// GatePlace is where a gate works on a copy: it sees what its agent saw.
func (s Site) GatePlace(ctx context.Context, k *Copy, vouched bool) (Place, error) {
	turn, err := s.OpenTurn(max(1, s.Iteration))
	if err != nil {
		return Place{}, err
	}
	return s.Place(ctx, k, Use{Turn: turn, Vouched: vouched})
}

// RunGate runs one gate at a place, for no longer than gates may take. Fresh gives the
// place of each further try of a gate that the definition holds for flaky; nil
// uses the same for all of them. Out gets what the gate prints; it may be nil.
func (s Site) RunGate(ctx context.Context, g gate.Check, at Place, fresh func(context.Context) (Place, error), out io.Writer) (loop.GateResult, error) {
	rule, err := gate.ParseRule(s.Definition.Flaky)
	if err != nil {
		return loop.GateResult{}, fmt.Errorf("flaky: %w", err)
	}
	command := gate.Command{
		Name: g.Name, Line: g.Line, Place: at.gate(), Env: s.StepEnv(),
		Tag: Tag(s.ID), Timeout: s.Within(gateTimeout), Output: out, Rule: rule,
	}
	if fresh != nil {
		command.Fresh = func(ctx context.Context) (gate.Place, error) {
			at, err := fresh(ctx)
			return at.gate(), err
		}
	}
	s.Repo.Rest()
	return gate.Run(ctx, command)
}
