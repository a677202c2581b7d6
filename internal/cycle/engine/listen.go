package engine

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/record/transcript"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// shown makes what happens in a turn readable for people: what the agent says,
// as output; which tools it uses, as events of their own.
type shown struct {
	said *transcript.Transcript
	out  *transcript.Output
}

func (s *shown) showEvent(e agent.Event) {
	if e.Kind == agent.EventText {
		_, _ = fmt.Fprintln(s.out, strings.TrimRight(e.Text, "\n")) // It only becomes events, which never fail.
		return
	}
	if kind, text := turn.DescribeEvent(e); kind != "" {
		s.hideAndEmit(kind, text)
	}
}

func (s *shown) hideAndEmit(kind, text string) {
	text = s.said.Hide(strings.Join(printables([]string{text}), ""))
	s.said.Emit(kind, text)
}

// toolGuard is what the definition lets an agent do, for drivers that ask first. What
// it does all the same is held by the sandbox and by the list of changes.
func (a *agentSide) toolGuard(ctx context.Context, t assignment, at runenv.Place, turnDir string) (policy.Guard, error) {
	return a.guardOf(ctx, t.def, t.env, at, os.TempDir(), t.env.SeenTurn(turnDir))
}

// guardOf is what a definition allows at a place, with folders beside it that may be
// written, and without what a person said no to.
func (h *heldRun) guardOf(ctx context.Context, d loop.Definition, env runenv.Env, at runenv.Place, beside ...string) (policy.Guard, error) {
	scope, err := env.Scope(ctx)
	return policy.Guard{
		Scope: scope, Root: at.Dir, ReportOnly: d.Tier == loop.TierReport, Hosts: d.Network, Denies: d.Denies, Beside: beside, Rejected: h.rejected, Capabilities: d.Capabilities,
	}, err
}
