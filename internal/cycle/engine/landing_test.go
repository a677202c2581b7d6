package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// landingRig is a loop whose proposal waits for an answer, on a clock that a test moves.
type landingRig struct {
	*rig
	target engine.Target
	asked  loop.Approval
	ahead  atomic.Int64
	turns  int    // of the agent since the proposal
	lock   string // the file that git leaves behind when it dies while it moves main
}

func newLandingRig(t *testing.T) *landingRig {
	t.Helper()
	l := &landingRig{}
	l.rig = newRigAt(t, databases["sqlite"](t), func() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) })
	l.target, l.asked = l.proposes("fix")
	act := l.agent
	l.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
		l.turns++
		return act(ctx, req)
	}
	l.lock = filepath.Join(l.root, ".git/refs/heads/main.lock")
	return l
}

func (l *landingRig) later(d time.Duration) { l.ahead.Add(int64(d)) }

func (l *landingRig) unlock() {
	l.t.Helper()
	if err := os.Remove(l.lock); err != nil {
		l.t.Fatal(err)
	}
}

// saysYes answers while main is locked, so that nothing lands.
func (l *landingRig) saysYes() {
	l.t.Helper()
	gittest.WriteFile(l.t, l.lock, "")
	run := l.run(l.target, engine.Yes(l.asked.ID, ada))
	if run.Outcome != loop.OutcomeFailed || run.Reason != loop.ReasonEffectFailed {
		l.t.Fatalf("run = %s %s %q, want that the landing failed", run.Outcome, run.Reason, run.Detail)
	}
}

func (l *landingRig) landed() bool {
	l.t.Helper()
	return gittest.Run(l.t, l.root, "rev-parse", "main") == l.asked.Action.Commit
}

func (l *landingRig) want(state loop.ApprovalState, tries int) {
	l.t.Helper()
	if a := l.approval(l.asked.ID); a.State != state || a.Tries != tries {
		l.t.Errorf("the approval is %s after %d tries, want %s after %d", a.State, a.Tries, state, tries)
	}
}

func TestAYesWhoseLandingFailedIsCarriedOutByALaterRunWithoutAnAgent(t *testing.T) {
	t.Parallel()
	l := newLandingRig(t)
	l.saysYes()
	l.want(loop.ApprovalLanding, 1)
	if a := l.approval(l.asked.ID); !strings.Contains(a.Failure, "main.lock") || a.By != "Ada" {
		t.Errorf("the approval is by %q and failed with %q, want who said yes and why it has not landed", a.By, a.Failure)
	}
	if run := l.run(l.target, engine.Firing{}); run.Outcome != loop.OutcomeQuiet || run.Reason != loop.ReasonLandingWaits || !strings.Contains(run.Detail, "main.lock") {
		t.Errorf("the run at once = %s %s %q, want that it waits and says why", run.Outcome, run.Reason, run.Detail)
	}
	l.want(loop.ApprovalLanding, 1)
	l.unlock()
	l.later(6 * time.Minute)
	run := l.run(l.target, engine.Firing{})
	if run.Outcome != loop.OutcomeLanded || run.Reason != loop.ReasonApproved || run.Commit != l.asked.Action.Commit || !l.landed() {
		t.Errorf("the run later = %s %s %q at %s, want it landed", run.Outcome, run.Reason, run.Detail, run.Commit)
	}
	l.want(loop.ApprovalApproved, 2)
	if l.turns != 0 || run.Usage.ChargedTokens() != 0 {
		t.Errorf("%d turns and %d tokens, want none", l.turns, run.Usage.ChargedTokens())
	}
}

func TestALandingThatFailedFiveTimesRestsUntilAPersonAsksForIt(t *testing.T) {
	t.Parallel()
	l := newLandingRig(t)
	l.saysYes()
	for tries := 2; tries <= plan.MaxLandings; tries++ {
		l.later(6 * time.Hour)
		run := l.run(l.target, engine.Firing{})
		l.want(loop.ApprovalLanding, tries)
		outcome, reason := loop.OutcomeQuiet, loop.ReasonLandingWaits
		if tries == plan.MaxLandings { // A person hears of it.
			outcome, reason = loop.OutcomeFailed, loop.ReasonLandingRests
		}
		if run.Outcome != outcome || run.Reason != reason {
			t.Errorf("try %d = %s %s %q, want %s %s", tries, run.Outcome, run.Reason, run.Detail, outcome, reason)
		}
	}
	l.unlock()
	for range 3 {
		l.later(12 * time.Hour)
		if run := l.run(l.target, engine.Firing{}); run.Outcome != loop.OutcomeQuiet || run.Reason != loop.ReasonLandingRests {
			t.Errorf("a later run = %s %s %q, want that it rests", run.Outcome, run.Reason, run.Detail)
		}
		l.want(loop.ApprovalLanding, plan.MaxLandings)
	}
	if l.landed() {
		t.Fatal("it landed, and nobody asked for it")
	}
	if run := l.run(l.target, engine.Try(l.asked.ID, "by-hand", ada.Actor())); run.Outcome != loop.OutcomeLanded || !l.landed() {
		t.Errorf("the run that a person asked for = %s %s %q, want it landed", run.Outcome, run.Reason, run.Detail)
	}
	l.want(loop.ApprovalApproved, 1)
	if l.turns != 0 {
		t.Errorf("%d turns, want none", l.turns)
	}
}

// What was true when a person said yes is asked again each time.
func TestALaterTryAsksSwitchDefinitionAndExpiryAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t *testing.T, l *landingRig)
		state  loop.ApprovalState
		begins bool // the run, and nothing holds the step back
	}{
		"the switch is set": {func(t *testing.T, l *landingRig) {
			t.Helper()
			l.switchTo(l.target.Loop.ID, true)
		}, loop.ApprovalLanding, false},
		"the definition was changed": {func(_ *testing.T, l *landingRig) {
			l.target.Definition.Goal = "something else"
		}, loop.ApprovalVoid, true},
		"the branch was moved": {func(t *testing.T, l *landingRig) {
			t.Helper()
			gittest.Run(t, l.root, "branch", "-f", l.asked.Action.Branch, "main")
		}, loop.ApprovalVoid, true},
		"the yes has expired": {func(_ *testing.T, l *landingRig) {
			l.later(engine.ApprovalTime)
		}, loop.ApprovalLanding, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLandingRig(t)
			l.saysYes()
			l.unlock()
			l.later(6 * time.Minute)
			c.change(t, l)
			run, err := l.engine.Run(t.Context(), l.target, engine.Firing{Trigger: "manual"})
			if paused := err != nil; paused == c.begins {
				t.Errorf("run = %s %s %q, %v; want that it begins: %v", run.Outcome, run.Reason, run.Detail, err, c.begins)
			}
			if l.landed() {
				t.Error("it landed")
			}
			if got := l.approval(l.asked.ID).State; got != c.state {
				t.Errorf("the approval is %s, want %s", got, c.state)
			}
			if c.begins && run.Reason != loop.ReasonStepDone {
				t.Errorf("run = %s %s %q, want that nothing holds the step back", run.Outcome, run.Reason, run.Detail)
			}
		})
	}
}

// The database has the last word about the time, also when a run is about to land.
func TestAYesThatExpiresBeforeItsTryBeginsLandsNothing(t *testing.T) {
	t.Parallel()
	l := newLandingRig(t)
	queued := l.queue(l.target, engine.Yes(l.asked.ID, ada))
	l.later(engine.ApprovalTime)
	run, err := l.engine.Execute(t.Context(), l.target, queued.ID)
	if err != nil || run.Outcome != loop.OutcomeRefused || run.Reason != loop.ReasonApproval || l.landed() {
		t.Errorf("run = %s %s %q, %v; want it refused", run.Outcome, run.Reason, run.Detail, err)
	}
}

func TestABaseThatMovedBeforeAYesLandedAsksAnew(t *testing.T) {
	t.Parallel()
	l := newLandingRig(t)
	l.saysYes()
	l.unlock()
	gittest.WriteFile(t, filepath.Join(l.root, "other.txt"), "a person's\n")
	gittest.Run(t, l.root, "add", "other.txt")
	gittest.Run(t, l.root, "commit", "-qm", "meanwhile")
	l.later(6 * time.Minute)
	run := l.run(l.target, engine.Firing{})
	if run.Outcome != loop.OutcomeProposed || run.Approval == "" || run.Approval == l.asked.ID || l.turns != 0 {
		t.Errorf("run = %s %s %q, approval %q, %d turns; want a new question without a turn", run.Outcome, run.Reason, run.Detail, run.Approval, l.turns)
	}
	l.want(loop.ApprovalVoid, 1)
}

// What looked like a failure may have arrived: nothing is done twice.
func TestALaterTryLooksFirstWhetherAnEarlierOneArrived(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		look    effect.Found
		lookErr error
		applies bool
		outcome loop.Outcome
		state   loop.ApprovalState
	}{
		"it arrived":                             {look: effect.Found{Applied: true}, outcome: loop.OutcomeLanded, state: loop.ApprovalApproved},
		"it did not":                             {applies: true, outcome: loop.OutcomeLanded, state: loop.ApprovalApproved},
		"whether it arrived cannot be found out": {lookErr: errors.New("no route to host"), outcome: loop.OutcomeQuiet, state: loop.ApprovalLanding},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLandingRig(t)
			var calls []string
			land := scripted{apply: failing(errors.New("the connection was lost")), look: found(effect.Found{}, nil), calls: &calls}
			l.deps.Effects = func(repo *git.Repo) map[string]engine.Effect {
				return map[string]engine.Effect{effect.KindPropose: effect.NewPropose(repo), effect.KindLand: land}
			}
			l.engine = engine.New(l.deps)
			if run := l.run(l.target, engine.Yes(l.asked.ID, ada)); run.Outcome != loop.OutcomeFailed {
				t.Fatalf("run = %s %s %q, want it failed", run.Outcome, run.Reason, run.Detail)
			}
			calls, land.apply, land.look = nil, applied, found(c.look, c.lookErr)
			l.later(6 * time.Minute)
			run := l.run(l.target, engine.Firing{})
			want := "look"
			if c.applies {
				want = "look apply"
			}
			if got := strings.Join(calls, " "); got != want || run.Outcome != c.outcome {
				t.Errorf("calls = %q and run = %s %s %q, want %q and %s", got, run.Outcome, run.Reason, run.Detail, want, c.outcome)
			}
			l.want(c.state, 2)
		})
	}
}

func TestAYesMayBeTakenBackUntilItHasLanded(t *testing.T) {
	t.Parallel()
	l := newLandingRig(t)
	l.saysYes()
	l.unlock()
	no := loop.Answer{By: "Ben", From: "test", Note: "not after all"}
	if _, _, err := l.engine.Answer(t.Context(), l.asked.ID, no); err != nil {
		t.Fatal(err)
	}
	l.later(6 * time.Minute)
	if run := l.run(l.target, engine.Firing{}); run.Reason != loop.ReasonRejected || l.landed() {
		t.Errorf("run = %s %s %q, want that the step rests", run.Outcome, run.Reason, run.Detail)
	}
	if _, _, err := l.engine.Answer(t.Context(), l.asked.ID, no); !errors.Is(err, loop.ErrAnswered) {
		t.Errorf("a second no = %v, want that it was answered", err)
	}
	err := l.store.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.ExpireApprovals(t.Context())
		return err
	})
	if got := l.approval(l.asked.ID); err != nil || got.State != loop.ApprovalRejected || got.Note != no.Note {
		t.Errorf("the approval is %s (%q), %v; want it rejected", got.State, got.Note, err)
	}
}
