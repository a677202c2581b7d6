package runs_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/loops"
	"github.com/pawl-run/pawl/internal/runs"
	"github.com/pawl-run/pawl/internal/test/verbtest"
)

// TestAnAgentRunsWhatAPersonHasAccepted tries each way in which a person accepts a
// definition, and that a change of the file ends it.
func TestAnAgentRunsWhatAPersonHasAccepted(t *testing.T) {
	r := verbtest.New(t)
	agent := loop.Actor{Who: "bot", Role: loop.RoleAgent, From: "mcp"}
	person := loop.Actor{Who: "ann", Role: loop.RoleHuman, From: "cli"}
	prepare := func(by loop.Actor) error {
		_, err := r.Runs.Prepare(t.Context(), runs.StartRequest{Loop: "x", By: by})
		return err
	}
	goals := 0
	seen := func() []loops.Seen {
		e, err := r.Workspace.Loops.Lookup(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		return []loops.Seen{{Loop: "x", Digest: e.Definition.WithDefaults().Digest()}}
	}
	for name, accept := range map[string]func(context.Context) error{
		"it is checked": func(ctx context.Context) error {
			_, err := r.Loops.Accept(ctx, person, seen())
			return err
		},
		"all are registered": func(ctx context.Context) error {
			if _, err := r.Loops.Register(ctx); err != nil {
				return err
			}
			return r.Loops.AcceptRegistered(ctx, person)
		},
		"a run is fired": func(ctx context.Context) error {
			p, err := r.Runs.Prepare(ctx, runs.StartRequest{Loop: "x", By: person})
			if err == nil {
				_, err = r.Runs.Fire(ctx, p)
			}
			return err
		},
	} {
		goals++
		r.DefineLoop("x", "true", "sandbox", "external", "goal", "keep things right in "+name)
		err := prepare(agent)
		if verbtest.WantFault(t, err, loop.ExitRefused, "bot may not run x", "no person has accepted its definition", "pawl check x"); !errors.Is(err, loop.ErrUnaccepted) {
			t.Errorf("%s: %v, want ErrUnaccepted", name, err)
		}
		if err := prepare(person); err != nil {
			t.Errorf("a person is refused: %v", err)
		}
		if err := accept(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := prepare(agent); err != nil {
			t.Errorf("after %s an agent is refused: %v", name, err)
		}
		before := seen()
		r.DefineLoop("x", "true", "sandbox", "external", "goal", "something else")
		if err := prepare(agent); !errors.Is(err, loop.ErrUnaccepted) {
			t.Errorf("after %s the file was changed: %v, want ErrUnaccepted", name, err)
		}
		if done, err := r.Loops.Accept(t.Context(), person, before); err != nil || len(done.Loops) > 0 {
			t.Errorf("what a person has seen is not there any more, and is accepted: %v, %v", done, err)
		}
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
