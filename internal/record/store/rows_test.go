package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestAStepMovesOnlyAsTheStateTableSays(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		save := func(st loop.Step) error {
			return held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.SaveStep(t.Context(), st) })
		}
		step := loop.Step{ID: "st", LoopID: run.LoopID, Key: "k", Kind: loop.StepWork, Title: "do it", State: loop.StepClaimed}
		if err := save(step); err != nil {
			t.Fatalf("claim a step that is new: %v", err)
		}
		step.State = loop.StepDone
		if err := save(step); err != nil {
			t.Fatalf("finish it: %v", err)
		}
		step.State = loop.StepWaiting
		if err := save(step); err == nil {
			t.Error("a finished step waits for a human")
		}
		step.State = loop.StepClaimed
		if err := save(step); err != nil {
			t.Errorf("a finished step that stands in the memory again cannot be claimed: %v", err)
		}
	})
}

func TestAClaimedStepBelongsToItsRun(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "ci")
		first := fire(t, s, l, "-1", alice)
		step := loop.Step{ID: "st", LoopID: l.ID, Key: "k", Kind: loop.StepWork, Title: "do it", State: loop.StepClaimed}
		if err := held(t.Context(), s, first, func(rt *store.RunTx) error { return rt.SaveStep(t.Context(), step) }); err != nil {
			t.Fatal(err)
		}
		settle(t, s, first, loop.OutcomeDone)
		second := fire(t, s, l, "-2", bob)
		err := held(t.Context(), s, second, func(rt *store.RunTx) error { return rt.SaveStep(t.Context(), step) })
		if !errors.Is(err, loop.ErrLeaseLost) || !strings.Contains(err.Error(), "claimed by run "+first.ID) {
			t.Errorf("another run's claim was taken: %v", err)
		}
		free := loop.Step{ID: "free", LoopID: l.ID, Key: "free", Kind: loop.StepWork, Title: "do that", State: loop.StepClaimed}
		if err := held(t.Context(), s, second, func(rt *store.RunTx) error { return rt.SaveStep(t.Context(), free) }); err != nil {
			t.Errorf("a step beside it cannot be claimed: %v", err)
		}
	})
}

func TestAStepThatIsNotClaimedBelongsToNoRun(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "ci")
		run := fire(t, s, l, "-1", alice)
		step := loop.Step{ID: "st", LoopID: l.ID, Key: "k", Kind: loop.StepWork, Title: "do it", State: loop.StepOpen, RunID: run.ID}
		if err := held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.SaveStep(t.Context(), step) }); err != nil {
			t.Fatal(err)
		}
		steps := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Step, error) { return r.Steps(ctx, l.ID) })
		if len(steps) != 1 || steps[0].RunID != "" {
			t.Errorf("steps = %+v, want it open and of no run", steps)
		}
	})
}

func TestAStepWhoseClaimWasNeverStoredIsNotReleased(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "ci")
		run := fire(t, s, l, "-1", alice)
		step := loop.Step{ID: "st", LoopID: l.ID, Key: "k", Kind: loop.StepWork, Title: "do it", State: loop.StepOpen}
		states := func() (states []loop.StepState) {
			for _, s := range look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Step, error) { return r.Steps(ctx, l.ID) }) {
				states = append(states, s.State)
			}
			return states
		}
		write := func(state loop.StepState, fn func(*store.RunTx, context.Context, loop.Step) error) {
			t.Helper()
			step.State = state
			if err := held(t.Context(), s, run, func(rt *store.RunTx) error { return fn(rt, t.Context(), step) }); err != nil {
				t.Fatal(err)
			}
		}
		if write(loop.StepOpen, (*store.RunTx).ReleaseStep); len(states()) != 0 {
			t.Errorf("steps = %v, want none", states())
		}
		write(loop.StepClaimed, (*store.RunTx).SaveStep)
		if write(loop.StepOpen, (*store.RunTx).ReleaseStep); !slices.Equal(states(), []loop.StepState{loop.StepOpen}) {
			t.Errorf("steps = %v, want the claimed one open", states())
		}
		write(loop.StepClaimed, (*store.RunTx).SaveStep)
		write(loop.StepWaiting, (*store.RunTx).SaveStep)
		if write(loop.StepOpen, (*store.RunTx).ReleaseStep); !slices.Equal(states(), []loop.StepState{loop.StepWaiting}) {
			t.Errorf("steps = %v, want it still waiting for its answer", states())
		}
	})
}

func TestAJudgedIterationIsNeverWrittenAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		it := loop.Iteration{RunID: run.ID, N: 1, StepID: "st", Verdict: loop.VerdictIntended, Sensed: "x", Started: time.UnixMilli(5).UTC()}
		save := func(it loop.Iteration) error {
			return held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.SaveIteration(t.Context(), it) })
		}
		if err := save(it); err != nil {
			t.Fatal(err)
		}
		it.Verdict, it.Gates = loop.VerdictFail, []loop.GateResult{{Name: "verify", Exit: 1, Evidence: "a\x00b"}}
		if err := save(it); err != nil {
			t.Fatal(err)
		}
		got := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Iteration, error) { return r.Iterations(ctx, run.ID) })
		if d := cmp.Diff([]loop.Iteration{it}, got); d != "" {
			t.Error(d)
		}
		it.Verdict = loop.VerdictPass
		if err := save(it); err == nil {
			t.Error("a verdict was changed")
		}
	})
}

func TestEventsKeepTheirOrderAndAnyText(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		var events []loop.Event
		for i := range 350 {
			events = append(events, loop.Event{RunID: run.ID, Seq: int64(i + 1), At: time.UnixMilli(1), Phase: loop.PhaseAct, Kind: "output", Text: "a\x00\xff"})
		}
		if err := held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.AppendEvents(t.Context(), events) }); err != nil {
			t.Fatal(err)
		}
		got := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Event, error) {
			return r.Events(ctx, run.ID, 340, 100)
		})
		if len(got) != 10 || got[0].Seq != 341 || got[9].Seq != 350 || got[0].Text != "a\uFFFD\uFFFD" {
			t.Errorf("events after 340 = %+v", got)
		}
		if last := look(t, s, func(ctx context.Context, r *store.Reader) (int64, error) { return r.LastEvent(ctx, run.ID) }); last != 350 {
			t.Errorf("last event = %d, want 350", last)
		}
	})
}

func TestChangesStayPendingUntilTheyAreApplied(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		var pending []loop.PendingChange
		err := held(t.Context(), s, run, func(rt *store.RunTx) (err error) {
			pending, err = rt.RecordChanges(t.Context(), []loop.Change{
				{Kind: loop.ChangeEdit, Path: "a", Content: "x"}, {Kind: loop.ChangeAppend, Path: "b", Content: "line"},
			})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		list := func() []loop.PendingChange {
			return look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.PendingChange, error) {
				return r.Pending(ctx, run.LoopID, "")
			})
		}
		if d := cmp.Diff(pending, list()); d != "" {
			t.Error(d)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.Applied(ctx, pending[:1]) })
		if d := cmp.Diff(pending[1:], list()); d != "" {
			t.Error(d)
		}
	})
}

// A run of the queue may end after one that was fired later.
func TestChangesArePendingInTheOrderInWhichRunsEnded(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, clock *hand) {
		l := seed(t, s, "ci")
		first, second := fire(t, s, l, "-1", loop.Holder{}), fire(t, s, l, "-2", alice)
		record := func(run loop.Run, text string) {
			t.Helper()
			err := held(t.Context(), s, run, func(rt *store.RunTx) error {
				_, err := rt.RecordChanges(t.Context(), []loop.Change{{Kind: loop.ChangeAppend, Path: "run-log.md", Content: text}})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		record(second, "#2")
		settle(t, s, second, loop.OutcomeLanded)
		clock.add(time.Second)
		third := fire(t, s, l, "-3", alice)
		settle(t, s, third, loop.OutcomeQuiet)
		update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
			first, _, err = tx.Claim(ctx, first.ID, first.Fence, alice, loop.Holder{})
			return err
		})
		record(first, "#1, live")
		for range 2 { // While it is live, and after it.
			pending := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.PendingChange, error) {
				return r.Pending(ctx, l.ID, "")
			})
			if len(pending) != 2 || pending[0].Content != "#2" || pending[1].RunID != first.ID {
				t.Errorf("pending = %+v, want those of #2 before those of #1", pending)
			}
			if clock.add(time.Second); first.State == loop.RunRunning {
				settle(t, s, first, loop.OutcomeQuiet)
				first.State = loop.RunEnded
			}
		}
	})
}

// Whoever finds the changes of several dead runs writes them in the order in
// which the runs made them, whatever the ids of the runs are.
func TestChangesOfSeveralRunsArePendingInTheOrderOfTheRuns(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "ci")
		var want []string
		for _, key := range []string{"-c", "-b", "-a"} {
			run := fire(t, s, l, key, alice)
			err := held(t.Context(), s, run, func(rt *store.RunTx) error {
				var changes []loop.Change
				for n := range 12 { // So that 10 comes behind 9.
					want = append(want, fmt.Sprint(key, n))
					changes = append(changes, loop.Change{Kind: loop.ChangeAppend, Path: "run-log.md", Content: fmt.Sprint(key, n)})
				}
				_, err := rt.RecordChanges(t.Context(), changes)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			settle(t, s, run, loop.OutcomeInterrupted)
		}
		pending := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.PendingChange, error) {
			return r.Pending(ctx, l.ID, "")
		})
		var got []string
		for _, p := range pending {
			got = append(got, p.Content)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

func TestAnEffectIsAskedForOnceAndMovesByTheTable(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		req := loop.EffectRequest{Kind: "push", Key: "k", Args: map[string]string{"a": "b"}}
		for range 2 {
			if err := held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.RequestEffect(t.Context(), req) }); err != nil {
				t.Fatal(err)
			}
		}
		list := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Effect, error) { return r.Effects(ctx, run.ID) })
		if len(list) != 1 || list[0].State != loop.EffectRequested || list[0].Args["a"] != "b" {
			t.Fatalf("effects = %+v, want one", list)
		}
		move := func(from, to loop.EffectState) error {
			e := list[0]
			e.State = to
			return held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.SaveEffect(t.Context(), from, e) })
		}
		if err := move(loop.EffectRequested, loop.EffectDone); err == nil {
			t.Error("an effect was done without being applied")
		}
		if err := move(loop.EffectRequested, loop.EffectApplying); err != nil {
			t.Fatal(err)
		}
		if err := move(loop.EffectRequested, loop.EffectApplying); !errors.Is(err, loop.ErrLeaseLost) {
			t.Errorf("applied twice: %v", err)
		}
	})
}

func TestWhatBecameOfAnEffectIsLearnedOfThatOneAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		ci := seed(t, s, "ci")
		var ended loop.Run
		for _, key := range []string{"-1", "-2"} {
			ended = fire(t, s, ci, key, alice)
			for _, kind := range []string{"open_pr", "notify"} {
				err := held(t.Context(), s, ended, func(rt *store.RunTx) error {
					return rt.RequestEffect(t.Context(), loop.EffectRequest{Kind: kind, Key: kind + key})
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			for _, e := range look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Effect, error) { return r.Effects(ctx, ended.ID) }) {
				from := e.State
				for _, e.State = range []loop.EffectState{loop.EffectApplying, loop.EffectDone} {
					if err := held(t.Context(), s, ended, func(rt *store.RunTx) error { return rt.SaveEffect(t.Context(), from, e) }); err != nil {
						t.Fatal(err)
					}
					from = e.State
				}
			}
			settle(t, s, ended, loop.OutcomeProposed)
		}
		amend := func(by loop.Run) error {
			return held(t.Context(), s, by, func(rt *store.RunTx) error {
				return rt.AmendEffect(t.Context(), loop.Effect{RunID: ended.ID, Seq: 1, Result: map[string]string{"state": "MERGED"}})
			})
		}
		if err := amend(fire(t, s, ci, "-3", alice)); err != nil {
			t.Fatal(err)
		}
		if err := amend(fire(t, s, seed(t, s, "docs"), "-1", alice)); !errors.Is(err, loop.ErrLeaseLost) {
			t.Errorf("by a run of another loop: %v, want that it is not its effect", err)
		}
		got := map[string]string{}
		for _, kind := range []string{"open_pr", "notify"} {
			for _, e := range look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Effect, error) {
				_, done, err := r.Undecided(ctx, ci.ID, kind)
				return done, err
			}) {
				got[e.Key] = e.Result["state"]
			}
		}
		if d := cmp.Diff(map[string]string{"open_pr-1": "", "open_pr-2": "MERGED", "notify-1": "", "notify-2": ""}, got); d != "" {
			t.Errorf("what became of the effects (-want +got):\n%s", d)
		}
	})
}

func TestOfManyAnswersOneWins(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		ask := func(id string, expires time.Time) {
			t.Helper()
			a := loop.Approval{ID: id, LoopID: run.LoopID, RunID: run.ID, StepID: "st", State: loop.ApprovalOpen, Expires: expires}
			if err := held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.AskApproval(t.Context(), a) }); err != nil {
				t.Fatal(err)
			}
		}
		answer := func(id, by string) error {
			return s.Update(t.Context(), func(tx *store.Tx) error {
				return tx.AnswerApproval(t.Context(), id, loop.Answer{Yes: true, By: by})
			})
		}
		ask("ap", time.Now().Add(time.Hour))
		ask("late", time.Now().Add(-time.Second))
		if err := answer("ap", "ann"); err != nil {
			t.Fatal(err)
		}
		if err := answer("ap", "ben"); !errors.Is(err, loop.ErrAnswered) {
			t.Errorf("second answer = %v, want ErrAnswered", err)
		}
		if err := answer("late", "ann"); !errors.Is(err, loop.ErrAnswered) {
			t.Errorf("answer after the time is over = %v, want ErrAnswered", err)
		}
		got := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Approval, error) { return r.Approval(ctx, "ap") })
		if got.By != "ann" || got.State != loop.ApprovalApproved {
			t.Errorf("approval = %+v", got)
		}
	})
}

func TestAnAuditChainShowsWhatWasTouched(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "ci")
		for range 4 {
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				return tx.Link(ctx, l.ID, "run", "", map[string]int{"n": 1})
			})
		}
		chain := func() []loop.Link {
			return look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Link, error) { return r.Chain(ctx, l.ID) })
		}
		if err := store.VerifyChain(chain()); err != nil {
			t.Fatalf("an intact chain: %v", err)
		}
		for name, c := range map[string]struct {
			touch func([]loop.Link) []loop.Link
			says  string
		}{
			"changed":   {func(l []loop.Link) []loop.Link { l[1].Body = "{}"; return l }, "entry 2 was changed"},
			"removed":   {func(l []loop.Link) []loop.Link { return append(l[:1], l[2:]...) }, "entry 2 is missing"},
			"reordered": {func(l []loop.Link) []loop.Link { l[1], l[2] = l[2], l[1]; return l }, "entry 2 is missing"},
			"later":     {func(l []loop.Link) []loop.Link { l[2].At = l[2].At.Add(time.Second); return l }, "entry 3 was changed"},
		} {
			if err := store.VerifyChain(c.touch(chain())); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %q", name, err, c.says)
			}
		}
	})
}

func TestADefinitionIsKeptUnderItsDigest(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "ci")
		d := loop.Definition{Name: "ci", Goal: "g", Scope: []string{"src/**"}}.WithDefaults()
		older := d
		older.Goal = "another"
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.SaveDefinition(ctx, l.ID, older) })
		for range 2 {
			update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.SaveDefinition(ctx, l.ID, d) })
		}
		row := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Loop, error) {
			return r.LoopNamed(ctx, "ws", l.Protocol, l.Name)
		})
		if row.Definition != d.Digest() {
			t.Errorf("the loop's newest definition is %s, want %s", row.Definition, d.Digest())
		}
		got := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Definition, error) {
			return r.Definition(ctx, d.Digest())
		})
		if diff := cmp.Diff(d, got); diff != "" {
			t.Error(diff)
		}
	})
}
