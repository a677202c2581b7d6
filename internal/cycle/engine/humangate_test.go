package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// nobody is a reviewer's gate without anybody to ask.
type nobody struct{}

func (nobody) Check() gate.Check {
	return gate.Check{Name: "review", Kind: loop.GateReviewer, Line: "it is good", Fail: loop.ReasonGateFailed}
}

func (nobody) Run(context.Context, gate.Input) (loop.GateResult, error) {
	return loop.GateResult{Name: "review", Kind: loop.GateReviewer, Pending: true, Note: "there is no critic"}, nil
}

// decides makes a loop whose agent writes each text in turn, and whose results wait for a
// human. Without a critic its gate decides nothing.
func (r *rig) decides(h loop.HumanGate, critic bool, texts ...string) (target engine.Target, prompts *[]string) {
	r.t.Helper()
	r.deps.Effects = func(repo *git.Repo) map[string]engine.Effect {
		return map[string]engine.Effect{effect.KindPropose: effect.NewPropose(repo), effect.KindLand: effect.NewLand(repo)}
	}
	r.deps.Gates = func(d loop.Definition) []runenv.Gate {
		gates := []runenv.Gate{gate.Commands(d)[0]}
		if !critic {
			gates = append(gates, nobody{})
		}
		return gates
	}
	r.engine = engine.New(r.deps)
	prompts = new([]string)
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		text := texts[min(len(*prompts), len(texts)-1)]
		*prompts = append(*prompts, req.Prompt)
		gittest.WriteFile(r.t, filepath.Join(req.Dir, "src/"+text+".txt"), text+"\n")
		return says(r.t, req, `{"outcome":"done","summary":"wrote `+text+`"}`)
	}
	return r.target("fix", pinned{}, loop.Definition{
		Name: "fix", Tier: loop.TierAssisted, Scope: []string{"src/**"}, Sense: "false", Verify: "true", AgentCommand: "x", HumanGate: h,
	}), prompts
}

// goal is the one step of the loop of decides.
func (r *rig) goal(target engine.Target) (s loop.Step) {
	r.t.Helper()
	r.view(func(rd *store.Reader) error {
		steps, err := rd.Steps(r.t.Context(), target.Loop.ID)
		if len(steps) == 1 {
			s = steps[0]
		}
		return err
	})
	return s
}

// waits runs the target to a result that waits for a human.
func (r *rig) waits(target engine.Target, reason loop.Reason, kind string) loop.Approval {
	r.t.Helper()
	run := r.run(target, engine.Firing{})
	if run.Outcome != loop.OutcomeWaiting || run.Reason != reason || run.Approval == "" {
		r.t.Fatalf("run = %s %s %q, approval %q; want it to wait: %s", run.Outcome, run.Reason, run.Detail, run.Approval, reason)
	}
	a, s := r.approval(run.Approval), r.goal(target)
	if a.Action.Kind != kind || a.State != loop.ApprovalOpen || a.StepID != s.ID || a.Tree == "" {
		r.t.Fatalf("approval = %+v, want an open one to %s", a, kind)
	}
	if s.State != loop.StepWaiting || s.WaitsFor != a.ID {
		r.t.Fatalf("step = %s, waits for %q; want it to wait for %s", s.State, s.WaitsFor, a.ID)
	}
	return a
}

var ada = loop.Answer{By: "Ada", From: "test"}

func TestAResultThatPassedWaitsForAHumanWhoSaysWhatBecomesOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		gate    loop.HumanGate
		kind    string
		outcome loop.Outcome
		moves   bool
	}{
		"accept": {loop.HumanGateAccept, loop.ActionAccept, loop.OutcomeDone, false},
		"keep":   {loop.HumanGateKeep, loop.ActionKeep, loop.OutcomeDone, false},
		"decide": {loop.HumanGateDecide, loop.ActionLand, loop.OutcomeLanded, true},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, r *rig) {
				target, _ := r.decides(c.gate, true, "one")
				a := r.waits(target, loop.ReasonGatesPass, c.kind)
				main := gittest.Run(t, r.root, "rev-parse", "main")
				again := r.run(target, engine.Firing{})
				if again.Outcome != loop.OutcomeQuiet || again.Reason != loop.ReasonStepWaiting {
					t.Errorf("the next run is %s %s, want it to wait for the answer", again.Outcome, again.Reason)
				}
				run := r.run(target, engine.Yes(a.ID, ada))
				if run.Outcome != c.outcome || run.Reason != loop.ReasonApproved {
					t.Errorf("run = %s %s %q, want %s", run.Outcome, run.Reason, run.Detail, c.outcome)
				}
				if s := r.goal(target); s.State != loop.StepDone {
					t.Errorf("step = %s, want it done", s.State)
				}
				if moved := gittest.Run(t, r.root, "rev-parse", "main") != main; moved != c.moves {
					t.Errorf("main moved: %v, want %v", moved, c.moves)
				}
				if tip := gittest.Run(t, r.root, "rev-parse", "pawl/fix/1"); tip != a.Action.Commit {
					t.Errorf("pawl/fix/1 = %s, want what was proposed, %s", tip, a.Action.Commit)
				}
			})
		})
	}
}

func TestWhatNoGateDecidesAHumanDoes(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		target, _ := r.decides("", false, "one")
		a := r.waits(target, loop.ReasonUndecided, loop.ActionLand)
		if len(a.Action.Flags) == 0 || a.Action.Flags[0] != "no gate has decided: review: there is no critic" {
			t.Errorf("flags = %q, want first that no gate has decided", a.Action.Flags)
		}
		its := r.iterations(a.RunID)
		if len(its) != 1 || its[0].Verdict != loop.VerdictPending || its[0].Feedback != "review: there is no critic" {
			t.Errorf("iterations = %+v, want one that is pending", its)
		}
		if run := r.run(target, engine.Yes(a.ID, ada)); run.Outcome != loop.OutcomeLanded {
			t.Errorf("run = %s %q, want it landed", run.Outcome, run.Detail)
		}
	})
}

func TestWhoAsksForChangesGetsThemOnTopOfWhatWasProposed(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		target, prompts := r.decides(loop.HumanGateDecide, true, "one", "two")
		a := r.waits(target, loop.ReasonGatesPass, loop.ActionLand)
		no := ada
		no.Note = "write two as well"
		run := r.run(target, engine.Changes(a.ID, "goal", no))
		if run.Outcome != loop.OutcomeWaiting || run.Approval == "" || run.Approval == a.ID {
			t.Fatalf("run = %s %s %q, approval %s; want a new question", run.Outcome, run.Reason, run.Detail, run.Approval)
		}
		if got := r.approval(a.ID); got.State != loop.ApprovalRejected || !got.Changes || got.By != "Ada" || got.Note != no.Note {
			t.Errorf("the first approval = %+v, want it rejected with what is to be different", got)
		}
		if p := (*prompts)[1]; !strings.Contains(p, no.Note) {
			t.Errorf("prompt = %q, want the note in it", p)
		}
		if files := gittest.Run(t, r.root, "ls-tree", "-r", "--name-only", "pawl/fix/2", "src/"); !strings.Contains(files, "src/one.txt") || !strings.Contains(files, "src/two.txt") {
			t.Errorf("pawl/fix/2 has %q, want the work of both runs", files)
		}
		if s := r.goal(target); s.Attempts != 2 || s.WaitsFor != run.Approval {
			t.Errorf("step = %+v, want two attempts and the new question", s)
		}
		if landed := r.run(target, engine.Yes(run.Approval, ada)); landed.Outcome != loop.OutcomeLanded {
			t.Errorf("run = %s %q, want it landed", landed.Outcome, landed.Detail)
		}
	})
}

func TestAResultThatCouldNotLandWaitsWithItsYes(t *testing.T) {
	r := newRig(t, databases["sqlite"](t))
	target, _ := r.decides(loop.HumanGateDecide, true, "one")
	a := r.waits(target, loop.ReasonGatesPass, loop.ActionLand)
	gittest.WriteFile(t, filepath.Join(r.root, "src/one.txt"), "a person's\n") // In the way of the landing.
	run := r.run(target, engine.Yes(a.ID, ada))
	if run.Outcome != loop.OutcomeRefused {
		t.Fatalf("run = %s %q, want it refused", run.Outcome, run.Detail)
	}
	if s := r.goal(target); s.State != loop.StepWaiting || s.WaitsFor != a.ID {
		t.Errorf("step = %s, waits for %q; want it to wait for %s", s.State, s.WaitsFor, a.ID)
	}
	if got := r.approval(a.ID); got.State != loop.ApprovalLanding || got.Tries != 1 || got.Failure == "" {
		t.Errorf("approval = %s after %d tries (%q), want the yes kept", got.State, got.Tries, got.Failure)
	}
	if err := os.Remove(filepath.Join(r.root, "src/one.txt")); err != nil {
		t.Fatal(err)
	}
	if run := r.run(target, engine.Try(a.ID, "again", ada.Actor())); run.Outcome != loop.OutcomeLanded {
		t.Errorf("run = %s %q, want it landed", run.Outcome, run.Detail)
	}
	if s := r.goal(target); s.State != loop.StepDone {
		t.Errorf("step = %s, want it done", s.State)
	}
}

func TestABaseThatMovedAsksAnewForTheSameStep(t *testing.T) {
	r := newRig(t, databases["sqlite"](t))
	target, _ := r.decides(loop.HumanGateDecide, true, "one")
	a := r.waits(target, loop.ReasonGatesPass, loop.ActionLand)
	gittest.WriteFile(t, filepath.Join(r.root, "other.txt"), "a person's\n")
	gittest.Run(t, r.root, "add", "other.txt")
	gittest.Run(t, r.root, "commit", "-qm", "meanwhile")
	r.void(a.ID)
	run := r.run(target, engine.Again(a.ID, ada))
	if run.Outcome != loop.OutcomeWaiting || run.Approval == "" || run.Approval == a.ID {
		t.Fatalf("run = %s %s %q, approval %q; want a new question", run.Outcome, run.Reason, run.Detail, run.Approval)
	}
	if s := r.goal(target); s.State != loop.StepWaiting || s.WaitsFor != run.Approval {
		t.Errorf("step = %s, waits for %q; want it to wait for %s", s.State, s.WaitsFor, run.Approval)
	}
	if landed := r.run(target, engine.Yes(run.Approval, ada)); landed.Outcome != loop.OutcomeLanded {
		t.Errorf("run = %s %q, want it landed", landed.Outcome, landed.Detail)
	}
}

func TestAStepNeverWaitsForAQuestionThatWasNotAsked(t *testing.T) {
	r := newRig(t, databases["sqlite"](t))
	target, _ := r.decides(loop.HumanGateAccept, true, "one")
	fails := r.deps.Effects
	r.deps.Effects = func(repo *git.Repo) map[string]engine.Effect {
		kinds := fails(repo)
		kinds[effect.KindPropose] = brokenEffect{}
		return kinds
	}
	r.engine = engine.New(r.deps)
	run := r.run(target, engine.Firing{})
	if run.Outcome != loop.OutcomeFailed || run.Approval != "" {
		t.Fatalf("run = %s %s, approval %q; want it failed without a question", run.Outcome, run.Reason, run.Approval)
	}
	if s := r.goal(target); s.State != loop.StepOpen || s.WaitsFor != "" {
		t.Errorf("step = %s, waits for %q; want it open", s.State, s.WaitsFor)
	}
}

// brokenEffect never happens.
type brokenEffect struct{}

func (brokenEffect) Apply(context.Context, loop.Effect, func(context.Context) error) (map[string]string, error) {
	return nil, context.DeadlineExceeded
}

func (brokenEffect) Look(context.Context, loop.Effect) (effect.Found, error) {
	return effect.Found{}, nil
}

func TestAStepCountsTheTokensAndTheTimeOfAllItsRuns(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		target, _ := r.decides(loop.HumanGateAccept, true, "one", "two")
		works := r.agent
		r.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
			res, err := works(ctx, req)
			res.Usage = loop.Usage{Input: 30, CacheRead: 1000, CacheWrite: 5, Output: 7, Source: loop.UsageReported}
			return res, err
		}
		a := r.waits(target, loop.ReasonGatesPass, loop.ActionAccept)
		first := r.goal(target)
		if first.Tokens != 42 || first.Begun.IsZero() {
			t.Errorf("step = %d tokens, begun %v; want 42 and a time", first.Tokens, first.Begun)
		}
		no := ada
		no.Note = "and two"
		r.run(target, engine.Changes(a.ID, "goal", no))
		second := r.goal(target)
		if second.Tokens != 84 || second.Begun.Before(first.Begun) || second.Attempts != 2 {
			t.Errorf("step = %d tokens, %d attempts, begun %v; want 84, 2 and a time that was put off", second.Tokens, second.Attempts, second.Begun)
		}
	})
}

func TestTheTokensOfAnIterationThatWasStoppedCount(t *testing.T) {
	r := newRig(t, databases["sqlite"](t))
	target, _ := r.decides(loop.HumanGateAccept, true, "one")
	ctx, stop := context.WithCancel(t.Context())
	r.agent = func(context.Context, agent.Request) (agent.Result, error) {
		stop()
		return agent.Result{Usage: loop.Usage{Input: 30, Output: 12, Source: loop.UsageReported}}, nil
	}
	run, err := r.engine.Run(ctx, target, engine.Firing{Trigger: "manual"})
	if err != nil || run.Outcome != loop.OutcomeInterrupted {
		t.Fatalf("run = %s %s, %v; want it interrupted", run.Outcome, run.Reason, err)
	}
	if s := r.goal(target); s.Tokens != 42 || s.Attempts != 0 || s.State != loop.StepOpen {
		t.Errorf("step = %s, %d tokens, %d attempts; want it open with 42 tokens and no attempt", s.State, s.Tokens, s.Attempts)
	}
}
