package trigger_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestASpecWhoseGoalWaitsOrWasGivenUpIsNotFiredAndGoesOnAfterwards(t *testing.T) {
	onBoth(t, func(t *testing.T, database func(testing.TB) string) {
		r := newRig(t, database(t))
		id := r.registers(loop.Definition{Name: "l", Cadence: "1h", Spec: "{}"})
		goal := loop.Step{ID: "st_1", LoopID: id, Key: "goal", Kind: loop.StepWork}
		becomes := func(states ...loop.StepState) {
			t.Helper()
			r.update(func(ctx context.Context, tx *store.Tx) error {
				runs, err := tx.PlannedRuns(ctx, id)
				if err != nil {
					return err
				}
				run, rt, err := tx.Claim(ctx, runs[0].ID, runs[0].Fence, loop.Holder{Host: "h", PID: 1}, loop.Holder{})
				for _, s := range states {
					if goal.State = s; err == nil {
						err = rt.SaveStep(ctx, goal)
					}
				}
				if err != nil {
					return err
				}
				run.Outcome = loop.OutcomeWaiting
				_, err = tx.Settle(ctx, run, loop.PhaseConclude, false)
				return err
			})
		}
		ticks := func(want int) {
			t.Helper()
			r.moves(time.Hour)
			if fired, _ := r.tick(0); len(fired) != want {
				t.Fatalf("%s: fired %d, want %d", r.now(), len(fired), want)
			}
		}
		ticks(1)
		becomes(loop.StepClaimed, loop.StepWaiting)
		ticks(0)
		r.update(func(ctx context.Context, tx *store.Tx) error { return tx.ReopenRejected(ctx, "", "", "no") })
		ticks(1)
		becomes(loop.StepClaimed, loop.StepEscalated)
		ticks(0)
		r.update(func(ctx context.Context, tx *store.Tx) error { _, err := tx.ReopenStep(ctx, goal); return err })
		ticks(1)
		becomes(loop.StepClaimed, loop.StepDone) // Accepted, and it comes again.
		ticks(1)
		want := "13:00 ran #1, 14:00 skipped not_running, 15:00 ran #2, 16:00 skipped not_running, 17:00 ran #3, 18:00 ran #4"
		if got := r.ledger(id); got != want {
			t.Errorf("the ledger is\n%s\nwant\n%s", got, want)
		}
	})
}
