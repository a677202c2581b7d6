package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// proposes runs a loop whose agent changes a file, on an engine that lands, and
// returns its target and the approval that it asked for.
func (r *rig) proposes(name string) (engine.Target, loop.Approval) {
	r.t.Helper()
	r.deps.Effects = func(repo *git.Repo) map[string]engine.Effect {
		return map[string]engine.Effect{effect.KindPropose: effect.NewPropose(repo), effect.KindLand: effect.NewLand(repo)}
	}
	r.engine = engine.New(r.deps)
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		gittest.WriteFile(r.t, filepath.Join(req.Dir, "src/a.txt"), name+"\n")
		return says(r.t, req, `{"outcome":"done","summary":"changed it"}`)
	}
	target := r.target(name, pinned{}, until("grep -q "+name+" src/a.txt", name, []string{"src/**"}))
	run := r.run(target, engine.Firing{})
	if run.Outcome != loop.OutcomeProposed || run.Approval == "" {
		r.t.Fatalf("run = %s %s %s, want a proposal that asks", run.Outcome, run.Reason, run.Detail)
	}
	return target, r.approval(run.Approval)
}

func (r *rig) approval(id string) (a loop.Approval) {
	r.t.Helper()
	r.view(func(rd *store.Reader) (err error) {
		a, err = rd.Approval(r.t.Context(), id)
		return err
	})
	return a
}

func TestAYesCountsOnlyTogetherWithTheRunThatItFires(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		target, a := r.proposes("fix")
		yes := engine.Yes(a.ID, loop.Answer{By: "Ada", From: "test"})
		pause := filepath.Join(r.root, ".loops", "fix", "PAUSED")
		gittest.WriteFile(t, pause, "")
		if _, err := r.engine.Run(t.Context(), target, yes); err == nil {
			t.Error("a paused loop was fired")
		}
		if err := os.Remove(pause); err != nil {
			t.Fatal(err)
		}
		// In the store the switch is read by the transaction that would answer.
		r.switchTo(target.Loop.ID, true)
		if _, err := r.engine.Run(t.Context(), target, yes); err == nil {
			t.Error("a paused loop was fired")
		}
		if got := r.approval(a.ID); got.State != loop.ApprovalOpen || got.By != "" {
			t.Errorf("the approval is %s by %q, want it open", got.State, got.By)
		}
		r.switchTo(target.Loop.ID, false)
		run := r.run(target, yes)
		if run.Outcome != loop.OutcomeLanded || engine.AnswerOf(run) != a.ID {
			t.Errorf("run = %s %s, for approval %q; want it landed", run.Outcome, run.Detail, engine.AnswerOf(run))
		}
		if got := gittest.Run(t, r.root, "rev-parse", "main"); got != a.Action.Commit {
			t.Errorf("main = %s, want %s", got, a.Action.Commit)
		}
		if _, err := r.engine.Run(t.Context(), target, yes); !errors.Is(err, loop.ErrAnswered) {
			t.Errorf("the second yes = %v, want that it was answered", err)
		}
	})
}

func (r *rig) switchTo(loopID string, paused bool) {
	r.t.Helper()
	err := r.store.Update(r.t.Context(), func(tx *store.Tx) error { return tx.Pause(r.t.Context(), loopID, paused) })
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestAttack110AFiringForAnApprovalOfAnotherLoopLandsNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		_, a := r.proposes("fix")
		other, _ := r.proposes("other")
		tip := gittest.Run(t, r.root, "rev-parse", "main")
		run := r.run(other, engine.Yes(a.ID, loop.Answer{By: "Ada", From: "test"}))
		if run.Outcome != loop.OutcomeRefused || gittest.Run(t, r.root, "rev-parse", "main") != tip {
			t.Errorf("run = %s %s, and main is %s", run.Outcome, run.Detail, gittest.Run(t, r.root, "rev-parse", "main"))
		}
	})
}

func TestWhatLandsAfterAllIsTheSameAction(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		action loop.Action
		want   string
	}{
		"a fast-forward": {loop.Action{Kind: loop.ActionLand}, "pawl land fix#3"},
		"a merge":        {loop.Action{Kind: loop.ActionLand, Merge: true}, "pawl land fix#3 --merge"},
		"a pull request": {loop.Action{Kind: loop.ActionPullRequest}, "pawl land fix#3 --pr"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := engine.LandAgain(loop.Approval{Action: c.action}, "fix#3").String(); got != c.want {
				t.Errorf("LandAgain = %q, want %q", got, c.want)
			}
		})
	}
}

func TestOnlyRunsThatAnApprovalFiredNameOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run  loop.Run
		want string
	}{
		"a yes":               {loop.Run{Trigger: "approval", Key: "approval/ap_1"}, "ap_1"},
		"a base that moved":   {loop.Run{Trigger: "approval", Key: "rebase/ap_1"}, "ap_1"},
		"by hand":             {loop.Run{Trigger: "manual", Key: "approval/ap_1"}, ""},
		"a key without a bar": {loop.Run{Trigger: "approval", Key: "run_1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := engine.AnswerOf(c.run); got != c.want {
				t.Errorf("AnswerOf = %q, want %q", got, c.want)
			}
		})
	}
}
