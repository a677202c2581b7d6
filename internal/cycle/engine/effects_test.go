package engine_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// scripted is a kind of effect that does what a test says.
type scripted struct {
	apply func(ctx context.Context, confirm func(context.Context) error) error
	look  func() (effect.Found, error)
	calls *[]string
}

func (s scripted) Apply(ctx context.Context, e loop.Effect, confirm func(context.Context) error) (map[string]string, error) {
	*s.calls = append(*s.calls, "apply")
	return map[string]string{effect.ResultCommit: "applied"}, s.apply(ctx, confirm)
}

func (s scripted) Look(context.Context, loop.Effect) (effect.Found, error) {
	*s.calls = append(*s.calls, "look")
	return s.look()
}

func applied(context.Context, func(context.Context) error) error { return nil }

func failing(err error) func(context.Context, func(context.Context) error) error {
	return func(context.Context, func(context.Context) error) error { return err }
}

func found(f effect.Found, err error) func() (effect.Found, error) {
	return func() (effect.Found, error) { return f, err }
}

// scriptedRun is a loop whose proposals are a scripted effect.
func scriptedRun(t *testing.T, kind string, s scripted) (r *rig, target engine.Target, calls func() string) {
	t.Helper()
	r = one(t)
	var list []string
	s.calls = &list
	r.deps.Effects = func(*git.Repo) map[string]engine.Effect { return map[string]engine.Effect{kind: s} }
	r.engine = engine.New(r.deps)
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
		return says(t, req, `{"outcome":"done"}`)
	}
	return r, r.worker(loop.TierAssisted, nil), func() string { return strings.Join(list, " ") }
}

func (r *rig) effect(id string) (e loop.Effect) {
	r.t.Helper()
	r.view(func(rd *store.Reader) error {
		list, err := rd.Effects(r.t.Context(), id)
		if err == nil && len(list) != 1 {
			r.t.Fatalf("effects = %+v, want one", list)
		}
		if err == nil {
			e = list[0]
		}
		return err
	})
	return e
}

// An error of an effect does not prove that nothing has happened.
func TestWhatBecameOfAnEffectIsLookedAtWhenItsApplyFails(t *testing.T) {
	broken := errors.New("connection reset")
	yes, begun := effect.Found{Applied: true, Result: map[string]string{effect.ResultCommit: "found"}}, effect.Found{Begun: true}
	for name, c := range map[string]struct {
		s       scripted
		outcome loop.Outcome
		reason  loop.Reason
		state   loop.EffectState
		commit  string
		detail  string
		calls   string
	}{
		"it is done":              {scripted{apply: applied}, loop.OutcomeProposed, loop.ReasonNoGate, loop.EffectDone, "applied", "", "apply"},
		"it has happened":         {scripted{apply: failing(broken), look: found(yes, nil)}, loop.OutcomeProposed, loop.ReasonNoGate, loop.EffectDone, "found", "", "apply look"},
		"it has not":              {scripted{apply: failing(broken), look: found(effect.Found{}, nil)}, loop.OutcomeFailed, loop.ReasonEffectFailed, loop.EffectFailed, "", "connection reset", "apply look"},
		"nobody can tell":         {scripted{apply: failing(broken), look: found(effect.Found{}, errors.New("no route"))}, loop.OutcomeFailed, loop.ReasonEffectFailed, loop.EffectFailed, "", "connection reset", "apply look"},
		"the switch was set":      {scripted{apply: failing(fmt.Errorf("%w: by hand", loop.ErrPaused)), look: found(effect.Found{}, nil)}, loop.OutcomePaused, loop.ReasonKillSwitch, loop.EffectRefused, "", "by hand", "apply look"},
		"a rule is in the way":    {scripted{apply: failing(&loop.Fault{Exit: loop.ExitRefused, What: "land", Why: "it is protected", Fix: "ask"}), look: found(effect.Found{}, nil)}, loop.OutcomeRefused, loop.ReasonLanding, loop.EffectRefused, "", "it is protected; nothing was changed; ask", "apply look"},
		"another fault":           {scripted{apply: failing(&loop.Fault{Exit: loop.ExitMissing, What: "land", Why: "no git"}), look: found(effect.Found{}, nil)}, loop.OutcomeFailed, loop.ReasonEffectFailed, loop.EffectFailed, "", "no git", "apply look"},
		"it has begun, and fails": {scripted{apply: failing(broken), look: found(begun, nil)}, "", "", loop.EffectApplying, "", "", "apply look"},
		"somebody has the run":    {scripted{apply: failing(loop.ErrLeaseLost), look: found(yes, nil)}, "", "", loop.EffectApplying, "", "", "apply"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, target, calls := scriptedRun(t, effect.KindPropose, c.s)
			run, err := r.engine.Run(t.Context(), target, engine.Firing{Trigger: "manual"})
			if (err != nil) != (c.outcome == "") {
				t.Fatalf("run = %s %s %q, %v", run.Outcome, run.Reason, run.Detail, err)
			}
			if calls() != c.calls {
				t.Errorf("calls = %q, want %q", calls(), c.calls)
			}
			if e := r.effect(run.ID); e.State != c.state {
				t.Errorf("the effect is %s, want %s", e.State, c.state)
			}
			if row := r.runs("lp_w")[0]; err != nil {
				if row.State != loop.RunSettling {
					t.Errorf("the run is %s, want it settling until somebody knows", row.State)
				}
				return
			}
			if run.Outcome != c.outcome || run.Reason != c.reason || run.Commit != c.commit || !strings.Contains(run.Detail, c.detail) {
				t.Errorf("run = %s %s %q on %q, want %s %s %q on %q", run.Outcome, run.Reason, run.Detail, run.Commit, c.outcome, c.reason, c.detail, c.commit)
			}
			if s := r.step(); (s.State == loop.StepDone) != (c.outcome == loop.OutcomeProposed) && s.State != loop.StepWaiting {
				t.Errorf("its step is %s", s.State)
			}
			if kept := run.Snapshot; c.outcome != loop.OutcomeProposed && (run.Branch != "" || gittest.Run(t, r.root, "show", kept+":src/a.txt") != "two") {
				t.Errorf("its work is kept in %q, and its branch is %q", kept, run.Branch)
			}
			kinds := []string{}
			for _, l := range r.chain("lp_w") {
				kinds = append(kinds, l.Kind)
			}
			if !slices.Contains(kinds, "effect") {
				t.Errorf("the chain has %q, and nothing of the effect", kinds)
			}
		})
	}
}

func TestAnEffectThatWasBeingAppliedIsLookedAtFirst(t *testing.T) {
	yes, begun := effect.Found{Applied: true, Result: map[string]string{effect.ResultCommit: "found"}}, effect.Found{Begun: true}
	for name, c := range map[string]struct {
		look    func() (effect.Found, error)
		paused  bool
		outcome loop.Outcome
		commit  string
		calls   string
	}{
		"it has happened": {found(yes, nil), false, loop.OutcomeProposed, "found", "look"},
		"it has happened before the switch was set": {found(yes, nil), true, loop.OutcomeProposed, "found", "look"},
		"it has not":                          {found(effect.Found{}, nil), false, loop.OutcomeProposed, "applied", "look apply"},
		"it has not, and the switch is set":   {found(effect.Found{}, nil), true, loop.OutcomePaused, "", "look"},
		"it has begun, and the switch is set": {found(begun, nil), true, loop.OutcomeProposed, "applied", "look apply"},
		"nobody can tell":                     {found(effect.Found{}, errors.New("no route")), false, loop.OutcomeFailed, "", "look"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, target, calls := scriptedRun(t, effect.KindPropose, scripted{apply: applied, look: c.look})
			r.lostAt(target, "engine.effect.apply.before", 1)
			if c.paused {
				gittest.WriteFile(t, filepath.Join(r.root, ".loops/PAUSED"), "")
			}
			rec, err := r.engine.Recover(t.Context(), target)
			if err != nil || rec == nil || rec.Run.Outcome != c.outcome || rec.Run.Commit != c.commit || rec.Run.State != loop.RunEnded {
				t.Fatalf("recover = %+v, %v, want %s on %q", rec, err, c.outcome, c.commit)
			}
			if calls() != c.calls {
				t.Errorf("calls = %q, want %q", calls(), c.calls)
			}
		})
	}
}

// Another node has ended the run meanwhile: what has begun to move is finished, nothing
// else happens any more, and the rows say which.
func TestWhatBecameOfTheEffectsOfARunThatAnotherNodeEndedIsFound(t *testing.T) {
	yes, begun := effect.Found{Applied: true, Result: map[string]string{effect.ResultCommit: "found"}}, effect.Found{Begun: true}
	for name, c := range map[string]struct {
		at     string // where its node stops
		look   func() (effect.Found, error)
		state  loop.EffectState
		commit string
		detail string // of the effect
		calls  string
	}{
		"it has happened":     {"engine.effect.apply.before", found(yes, nil), loop.EffectDone, "found", "", "look"},
		"it has begun":        {"engine.effect.apply.before", found(begun, nil), loop.EffectDone, "applied", "", "look apply"},
		"it has not":          {"engine.effect.apply.before", found(effect.Found{}, nil), loop.EffectFailed, "", "another node had ended the run", "look"},
		"nobody has tried it": {"engine.effect.commit.before", found(yes, nil), loop.EffectRefused, "", "another node had ended the run", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, target, calls := scriptedRun(t, effect.KindPropose, scripted{apply: applied, look: c.look})
			r.deps.Self.Node = "node_here"
			if err := r.store.Update(t.Context(), func(tx *store.Tx) error {
				return errors.Join(
					tx.SaveNode(t.Context(), loop.Node{ID: "node_here", Name: "attic"}), tx.SaveNode(t.Context(), loop.Node{ID: "node_there", Name: "cellar"}),
					tx.AddWorkspace(t.Context(), target.Workspace), tx.Place(t.Context(), loop.Placement{WorkspaceID: target.Workspace.ID, NodeID: "node_here", Path: r.root}))
			}); err != nil {
				t.Fatal(err)
			}
			r.lostAt(target, c.at, 1)
			if err := r.exec(`UPDATE runs SET lease_until_ms = 1`); err != nil {
				t.Fatal(err)
			}
			there := r.deps
			there.Self.Node = "node_there"
			if rec, err := engine.New(there).FreeLost(t.Context(), r.runs("lp_w")[0]); err != nil || rec == nil || rec.Run.Outcome != loop.OutcomeInterrupted {
				t.Fatalf("the other node ends it: %+v, %v", rec, err)
			}
			if calls() != "" {
				t.Fatalf("the other node calls %q", calls())
			}
			done, err := r.engine.FinishOwed(t.Context(), target)
			if err != nil || len(done) != 1 || done[0].Run.Commit != c.commit || done[0].Run.Owed {
				t.Fatalf("finished = %+v, %v, want one on %q", done, err, c.commit)
			}
			if e := r.effect(done[0].Run.ID); e.State != c.state || !strings.Contains(e.Error, c.detail) || (e.Error == "") != (c.detail == "") {
				t.Errorf("the effect is %s %q, want %s %q", e.State, e.Error, c.state, c.detail)
			}
			if calls() != c.calls {
				t.Errorf("calls = %q, want %q", calls(), c.calls)
			}
			if c.commit == "" && gittest.Run(t, r.root, "show", done[0].Run.Snapshot+":src/a.txt") != "two" {
				t.Errorf("its work is kept in %q", done[0].Run.Snapshot)
			}
			if again, err := r.engine.FinishOwed(t.Context(), target); len(again) > 0 || err != nil {
				t.Errorf("finished again: %+v, %v", again, err)
			}
		})
	}
}

// A process may die between the effect that failed, or was done, and the end of its run.
func TestAnEffectWhoseOutcomeIsKnownIsNotTouchedAgain(t *testing.T) {
	for state, want := range map[loop.EffectState]loop.Outcome{
		loop.EffectDone: loop.OutcomeProposed, loop.EffectFailed: loop.OutcomeFailed, loop.EffectRefused: loop.OutcomePaused,
	} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			r, target, calls := scriptedRun(t, effect.KindPropose, scripted{apply: applied, look: found(effect.Found{}, nil)})
			r.lostAt(target, "engine.effect.apply.before", 1)
			if err := r.exec(fmt.Sprintf(`UPDATE effects SET state = '%s', error = 'known', result = '{"commit":"before"}'`, state)); err != nil {
				t.Fatal(err)
			}
			rec, err := r.engine.Recover(t.Context(), target)
			if err != nil || rec == nil || rec.Run.Outcome != want || rec.Run.State != loop.RunEnded {
				t.Fatalf("recover = %+v, %v, want %s", rec, err, want)
			}
			if calls() != "" || (rec.Run.Commit == "before") != (want == loop.OutcomeProposed) || want != loop.OutcomeProposed && !strings.Contains(rec.Run.Detail, "known") {
				t.Errorf("run = %q on %q, after %q", rec.Run.Detail, rec.Run.Commit, calls())
			}
		})
	}
}

func TestAnEffectOfAKindThatNobodyKnowsLeavesItsRunUnfinished(t *testing.T) {
	r, target, _ := scriptedRun(t, "another", scripted{apply: applied})
	run, err := r.engine.Run(t.Context(), target, engine.Firing{Trigger: "manual"})
	if !errors.Is(err, loop.ErrNotFound) || !strings.Contains(err.Error(), effect.KindPropose) || r.runs("lp_w")[0].State != loop.RunSettling {
		t.Errorf("run = %+v, %v", run, err)
	}
}

// Whoever lost the run, or is to stop, takes no step that cannot be taken back.
func TestWhoIsAskedRightBeforeAnEffectMaySayNo(t *testing.T) {
	for name, c := range map[string]struct {
		before  func(r *rig) error
		want    error
		outcome loop.Outcome // of a run that can be concluded
	}{
		"nothing has changed":  {func(*rig) error { return nil }, nil, loop.OutcomeProposed},
		"somebody has the run": {func(r *rig) error { r.steal("lp_w", loop.Holder{PID: 7, Host: "another"}); return nil }, loop.ErrLeaseLost, ""},
		"the loop is paused":   {func(r *rig) error { r.switchTo("lp_w", true); return nil }, loop.ErrPaused, loop.OutcomePaused},
		"the switch is set":    {func(r *rig) error { gittest.WriteFile(r.t, filepath.Join(r.root, ".loops/PAUSED"), ""); return nil }, loop.ErrPaused, loop.OutcomePaused},
		"the store fails":      {func(r *rig) error { return r.exec("ALTER TABLE loops RENAME TO away") }, errNoTable, ""},
		"the lease is short":   {func(r *rig) error { return r.exec(`UPDATE runs SET lease_until_ms = lease_until_ms - 20000`) }, nil, loop.OutcomeProposed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r *rig
			var said error
			var left time.Duration
			var target engine.Target
			r, target, _ = scriptedRun(t, effect.KindPropose, scripted{
				apply: func(ctx context.Context, confirm func(context.Context) error) error {
					if err := c.before(r); err != nil {
						t.Error(err)
					}
					if said = confirm(ctx); said == nil {
						r.view(func(rd *store.Reader) error {
							live, err := rd.Live(t.Context(), "lp_w")
							left = time.Until(live.LeaseUntil)
							return err
						})
					}
					return said
				},
				look: found(effect.Found{}, nil),
			})
			run, err := r.engine.Run(t.Context(), target, engine.Firing{Trigger: "manual"})
			switch {
			case errors.Is(c.want, errNoTable):
				if said == nil || !strings.Contains(said.Error(), "no such table") {
					t.Errorf("confirm = %v, want the error of the store", said)
				}
				return
			case !errors.Is(said, c.want):
				t.Errorf("confirm = %v, want %v", said, c.want)
			case (err == nil) != (c.outcome != "") || run.Outcome != c.outcome && c.outcome != "":
				t.Errorf("run = %s %s %q, %v, want %s", run.Outcome, run.Reason, run.Detail, err, c.outcome)
			}
			if said == nil && left < store.Lease/2 {
				t.Errorf("the lease lasts for %v, want half of %v", left, store.Lease)
			}
		})
	}
}

var errNoTable = errors.New("no such table")
