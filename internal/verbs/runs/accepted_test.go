package runs_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// TestAnAgentRunsWhatAPersonHasAccepted tries each way in which a person accepts the definition
// of a file, and that a change of the file ends it.
func TestAnAgentRunsWhatAPersonHasAccepted(t *testing.T) {
	r := verbtest.New(t)
	agent := loop.Actor{Who: "bot", Role: loop.RoleAgent, From: "mcp"}
	person := loop.Actor{Who: "ann", Role: loop.RoleHuman, From: "cli"}
	clock := loop.Actor{Who: "clock", Role: loop.RoleTrigger}
	seen := func(name string) []loops.Seen {
		e, err := r.Workspace.Loops.Lookup(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return []loops.Seen{{Loop: name, Digest: e.Definition.WithDefaults().Digest()}}
	}
	for name, accept := range map[string]func(ctx context.Context, name string) error{
		"checked": func(ctx context.Context, name string) error {
			_, err := r.Loops.Accept(ctx, person, seen(name))
			return err
		},
		"registered": func(ctx context.Context, _ string) error {
			if _, err := r.Loops.Register(ctx); err != nil {
				return err
			}
			return r.Loops.AcceptRegistered(ctx, person)
		},
		"fired": func(ctx context.Context, name string) error {
			p, err := r.Runs.Prepare(ctx, runs.StartRequest{Loop: name, By: person})
			if err == nil {
				_, err = r.Runs.Fire(ctx, p)
			}
			return err
		},
		"approved": func(ctx context.Context, name string) error {
			v := r.RunLoop(runs.StartRequest{Loop: name, By: clock})
			_, err := r.Approvals.Approve(ctx, v.Approval, loop.Answer{By: "ann", From: "test"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			prepare := func(by loop.Actor) error {
				_, err := r.Runs.Prepare(t.Context(), runs.StartRequest{Loop: name, By: by})
				return err
			}
			r.DefineLoop(name, "echo "+name+" >src/"+name+".txt", "sandbox", "external")
			if err := r.Loops.RegisterOne(t.Context(), name); err != nil { // As pawl up does: it accepts nothing.
				t.Fatal(err)
			}
			err := prepare(agent)
			if verbtest.WantFault(t, err, loop.ExitRefused, "bot may not run "+name, "no person has accepted its definition", "pawl check "+name); !errors.Is(err, loop.ErrUnaccepted) {
				t.Errorf("%v, want ErrUnaccepted", err)
			}
			if err := errors.Join(prepare(person), prepare(clock)); err != nil {
				t.Errorf("others are refused: %v", err)
			}
			if err := accept(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			if err := prepare(agent); err != nil {
				t.Errorf("it was accepted, and an agent is refused: %v", err)
			}
			before := seen(name)
			r.DefineLoop(name, "true", "sandbox", "external")
			if err := prepare(agent); !errors.Is(err, loop.ErrUnaccepted) {
				t.Errorf("the file was changed: %v, want ErrUnaccepted", err)
			}
			if done, err := r.Loops.Accept(t.Context(), person, before); err != nil || len(done.Loops) > 0 {
				t.Errorf("what a person has seen is not there any more, and is accepted: %v, %v", done, err)
			}
		})
	}
}

// TestAnAgentRunsNothingThatIsNotConfined: also if a person has accepted it.
func TestAnAgentRunsNothingThatIsNotConfined(t *testing.T) {
	r := verbtest.New(t)
	person := loop.Actor{Who: "ann", Role: loop.RoleHuman, From: "cli"}
	for _, tier := range []string{"none", "external"} {
		r.DefineLoop("x", "true", "sandbox", tier)
		if _, err := r.Loops.Register(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.Loops.AcceptRegistered(t.Context(), person); err != nil {
			t.Fatal(err)
		}
		for _, by := range []loop.Actor{person, {Who: "bot", Role: loop.RoleAgent}, {Who: "clock", Role: loop.RoleTrigger}} {
			_, err := r.Runs.Prepare(t.Context(), runs.StartRequest{Loop: "x", By: by})
			if refused := errors.Is(err, loop.ErrUnconfined); refused != (tier == "none" && by.Role == loop.RoleAgent) || !refused && err != nil {
				t.Errorf("sandbox: %s, %s: %v", tier, by.Role, err)
			}
		}
	}
}
