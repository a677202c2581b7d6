package engine_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// pinned is a protocol that works on its goal until a command passes.
type pinned struct{ boardSession }

func (pinned) Open(_ context.Context, v engine.View) (engine.Session, error) {
	return &pinned{boardSession{v: v}}, nil
}

func (p *pinned) Sources() []engine.Source {
	return []engine.Source{{Name: "until", Command: p.v.Definition.Sense, Quiet: engine.QuietOnPass}}
}

func (p *pinned) Candidates(engine.Sensed, time.Time) []plan.Candidate {
	return []plan.Candidate{{Step: p.row("goal", loop.StepWork)}}
}

func until(command, name string, scope []string) loop.Definition {
	return loop.Definition{Name: name, Tier: loop.TierAssisted, Scope: scope, Sense: command, Verify: command, AgentCommand: "x"}
}

func TestAFailingGateReachesTheNextIterationAndThenABranchIsProposed(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		def := until("grep -q three src/a.txt || { echo 'a.txt lacks three'; exit 7; }", "u", []string{"src/**"})
		var prompts []string
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			prompts = append(prompts, req.Prompt)
			text := "two\n"
			if strings.Contains(req.Prompt, "a.txt lacks three") && len(prompts) > 1 {
				text = "three\n"
			}
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), text)
			return says(t, req, `{"outcome":"done","summary":"put it right"}`)
		}
		status := gittest.Run(t, r.root, "status", "--porcelain")
		run := r.run(r.target("u", pinned{}, def), engine.Firing{})
		if run.Outcome != loop.OutcomeProposed || run.Branch != "pawl/u/1" || run.Commit == "" {
			t.Fatalf("run = %s %s %q %q, want proposed on pawl/u/1", run.Outcome, run.Reason, run.Detail, run.Branch)
		}
		its := r.iterations(run.ID)
		if len(its) != 2 || its[0].Verdict != loop.VerdictFail || its[1].Verdict != loop.VerdictPass || its[0].Gates[0].Exit != 7 {
			t.Fatalf("iterations = %+v, want a fail with exit 7 and a pass", its)
		}
		if got := gittest.Run(t, r.root, "show", "pawl/u/1:src/a.txt"); got != "three" {
			t.Errorf("proposed a.txt = %q, want three", got)
		}
		if got := gittest.Run(t, r.root, "log", "-1", "--format=%an|%P|%B", "pawl/u/1"); !strings.HasPrefix(got, "pawl|"+run.BaseCommit) ||
			!strings.Contains(got, "Pawl-Run: u#1 "+run.ID) || !strings.Contains(got, "Pawl-Tree: "+its[1].Tree) {
			t.Errorf("commit = %s", got)
		}
		if now := gittest.Run(t, r.root, "status", "--porcelain"); now != status {
			t.Errorf("checkout changed: %s", now)
		}
		if left := left(t, r.home); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if err := store.VerifyChain(r.chain("lp_u")); err != nil {
			t.Error(err)
		}
		var turns []loop.Turn
		r.view(func(rd *store.Reader) (err error) {
			turns, err = rd.Turns(t.Context(), run.ID)
			return err
		})
		if len(turns) != 2 || turns[1].Iteration != 2 || turns[1].Purpose != "act" || turns[1].Usage.Output != 10 {
			t.Errorf("turns = %+v, want two", turns)
		}
		if run.Usage.ChargedTokens() != 220 || run.Usage.Source != loop.UsageReported {
			t.Errorf("usage = %+v", run.Usage)
		}
	})
}

func TestAGoalThatIsMetAlreadyStartsNoAgent(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.agent = func(context.Context, agent.Request) (agent.Result, error) {
			t.Error("an agent was started")
			return agent.Result{}, nil
		}
		run := r.run(r.target("u", pinned{}, until("true", "u", []string{"src/**"})), engine.Firing{})
		if run.Outcome != loop.OutcomeQuiet || run.Reason != loop.ReasonSensedNothing || run.Usage.ChargedTokens() != 0 {
			t.Errorf("run = %s %s %+v, want quiet without a token", run.Outcome, run.Reason, run.Usage)
		}
	})
}

func TestABranchOfThatNameIsNeverMovedAndTheWorkIsKept(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		before := gittest.Run(t, r.root, "rev-parse", "main")
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			gittest.Run(t, r.root, "branch", "pawl/u/1") // Somebody is faster.
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "three\n")
			return says(t, req, `{"outcome":"done"}`)
		}
		run := r.run(r.target("u", pinned{}, until("grep -q three src/a.txt", "u", []string{"src/**"})), engine.Firing{})
		if run.Outcome != loop.OutcomeFailed || run.Reason != loop.ReasonEffectFailed || run.Branch != "" {
			t.Fatalf("run = %s %s branch %q, want failed by its effect", run.Outcome, run.Reason, run.Branch)
		}
		if now := gittest.Run(t, r.root, "rev-parse", "pawl/u/1"); now != before {
			t.Errorf("the branch moved to %s", now)
		}
		if got := gittest.Run(t, r.root, "show", run.Snapshot+":src/a.txt"); got != "three" {
			t.Errorf("kept a.txt = %q", got)
		}
	})
}

func TestNumbersGoOnAfterTheStoreWasLost(t *testing.T) {
	r := newRig(t, storetest.SQLite(t))
	gittest.Run(t, r.root, "branch", "pawl/u/7")
	gittest.Run(t, r.root, "update-ref", "refs/pawl/snapshots/u/9", "HEAD")
	if run := r.run(r.target("u", pinned{}, until("true", "u", []string{"src/**"})), engine.Firing{}); run.N != 10 {
		t.Errorf("run is #%d, want #10: branches and snapshots up to #9 are there", run.N)
	}
}
