package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

func TestARunThatUsesTwentyTimesAsMuchAsThoseBeforeItSaysSo(t *testing.T) {
	r := newRig(t, storetest.SQLite(t))
	tokens := int64(2000)
	r.agent = func(context.Context, agent.Request) (agent.Result, error) {
		return agent.Result{
			Ended: proc.Exited, Claims: true, Message: "nothing to do", Usage: loop.Usage{Input: tokens, Output: 1, Source: loop.UsageReported},
		}, nil
	}
	def := until("grep -q two src/a.txt", "u", []string{"src/**"})
	def.MaxIterations, def.GiveUpAfter = 1, 100
	for n := range 7 {
		if n == 6 {
			tokens = 40_000
		}
		before := len(r.events)
		r.run(r.target("u", pinned{}, def), engine.Firing{})
		said := false
		for _, e := range r.events[before:] {
			said = said || e.Kind == loop.EventNote && strings.HasPrefix(e.Text, "drift: ")
		}
		if said != (n == 6) {
			t.Errorf("run %d of %d tokens: it says that it drifts: %t", n+1, tokens, said)
		}
	}
}
