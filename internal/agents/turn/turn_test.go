package turn_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// able is a driver that is never given a turn.
type able string

func (d able) Profile() agent.Profile { return agent.Profile{Name: string(d), Program: string(d)} }

func (able) Turn(context.Context, agent.Request) (agent.Result, error) { panic("a turn") }

func TestARunRefusesAKeyThatTheDriverOfAnEntryLacks(t *testing.T) {
	drivers := map[string]turn.Driver{"goose": able("goose"), "claude": able("claude")}
	roster := func(_ context.Context, handle string) (loop.Agent, error) {
		return loop.Agent{Handle: handle, Driver: map[string]string{"maker": "goose", "thinker": "claude"}[handle]}, nil
	}
	d := loop.Definition{Name: "fix", Agent: "@maker", Effort: "high"}
	_, err := turn.ResolveActor(t.Context(), d, drivers, roster)
	fault, ok := errors.AsType[*loop.Fault](err)
	if !ok || fault.Exit != loop.ExitNotReady || !strings.Contains(fault.Why, "goose has no levels of effort") || !strings.Contains(fault.Advice().String(), "claude") {
		t.Errorf("resolve = %v, want a refusal that names the agents with levels", err)
	}
	d.Agent, d.MCP = "thinker", []string{"a=b"}
	if _, err := turn.ResolveActor(t.Context(), d, drivers, roster); err != nil {
		t.Errorf("an entry whose driver has both: %v", err)
	}
	d.Effort, d.Agent, d.MCP = "", "maker", []string{"a=b"}
	if _, err := turn.ResolveActor(t.Context(), d, drivers, roster); err != nil {
		t.Errorf("servers of a driver that takes them: %v", err)
	}
}
