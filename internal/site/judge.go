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

// Judge calls run for each gate of the definition, for as long as run asks for
// more. Each gate gets a clean copy of the commit with a home, temporary files
// and caches of its own: nothing that one gate leaves anywhere is seen by the
// next. No copy is left behind. Vouched says that a human stands for the commit.
func (s Site) Judge(ctx context.Context, commit string, vouched bool, run func(g gate.Check, at Place) (more bool, err error)) error {
	for _, g := range gate.Checks(s.Definition) {
		if more, err := s.judge(ctx, g, commit, vouched, run); err != nil || !more {
			return err
		}
	}
	return nil
}

func (s Site) judge(ctx context.Context, g gate.Check, commit string, vouched bool, run func(g gate.Check, at Place) (more bool, err error)) (bool, error) {
	k, err := s.Copy(ctx, ForGate, commit)
	if err != nil {
		return false, err
	}
	defer func() {
		if err := k.Remove(context.WithoutCancel(ctx)); err != nil {
			s.Log.WarnContext(ctx, "gate tree stays behind", slog.String("run", s.ID), slog.String("error", err.Error()))
		}
	}()
	at, err := s.GatePlace(ctx, k, vouched)
	if err != nil {
		return false, err
	}
	defer at.Done()
	return run(g, at)
}

// GatePlace is where a gate works on a copy. The folder of the turn is made anew
// for it, with an empty prompt: it stands where the agent's stood, so that the
// environment is the same, and holds neither what the agent was told and
// reported nor what another gate left.
func (s Site) GatePlace(ctx context.Context, k *Copy, vouched bool) (Place, error) {
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
