package trigger_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestAnAnswerThatNobodyTookUpFiresOneRun(t *testing.T) {
	onBoth(t, func(t *testing.T, database func(testing.TB) string) {
		r := newRig(t, database(t))
		id := r.registers(loop.Definition{Name: "l"})
		r.happens(id, loop.FiringEvent{Source: "file:a"}, nil)
		r.tick(0)
		run := r.begins(id)
		a := loop.Approval{
			ID: "ap_1", LoopID: id, RunID: run.ID, StepID: "st_1", State: loop.ApprovalOpen, Action: loop.Action{Kind: loop.ActionCommand, Argv: []string{"make"}},
			Created: r.now(), Expires: r.now().Add(time.Hour),
		}
		run.Outcome = loop.OutcomeWaiting
		r.update(func(ctx context.Context, tx *store.Tx) error {
			rt, err := tx.Settle(ctx, run, loop.PhaseConclude, false)
			if err != nil {
				return err
			}
			step := loop.Step{ID: "st_1", LoopID: id, Key: "k", Kind: loop.StepWork, Title: "t", State: loop.StepClaimed, RunID: run.ID}
			if err := rt.SaveStep(ctx, step); err != nil {
				return err
			}
			step.State, step.WaitsFor, step.RunID = loop.StepWaiting, a.ID, ""
			return errors.Join(rt.SaveStep(ctx, step), rt.AskApproval(ctx, a))
		})
		heard := func(node int, want string) {
			t.Helper()
			fired, err := r.nodes[node].TakeUpAnswers(context.Background())
			var got []string
			for _, run := range fired {
				got = append(got, run.Trigger+" "+run.Key)
			}
			if err != nil || strings.Join(got, ", ") != want {
				t.Errorf("fired was %q, %v, want %q", got, err, want)
			}
		}
		heard(0, "")
		r.update(func(ctx context.Context, tx *store.Tx) error {
			return tx.AnswerApproval(ctx, a.ID, loop.Answer{By: "ann"})
		})
		heard(0, "") // Whoever answered is about to fire it.
		r.moves(10 * time.Second)
		sw := "PAUSED"
		r.sw.Store(&sw)
		heard(0, "")
		r.sw.Store(nil)
		heard(1, "approval approval/ap_1")
		heard(0, "")
		r.update(func(ctx context.Context, tx *store.Tx) error {
			second, err := tx.RunNumber(ctx, id, 2)
			if err != nil {
				return err
			}
			_, rt, err := tx.Claim(ctx, second.ID, second.Fence, loop.Holder{Host: "h", PID: 1}, loop.Holder{})
			if err != nil {
				return err
			}
			late := a
			late.ID, late.Expires = "ap_2", r.now().Add(time.Hour)
			step := loop.Step{ID: "st_1", LoopID: id, Key: "k", Kind: loop.StepWork, Title: "t", State: loop.StepWaiting, WaitsFor: late.ID}
			return errors.Join(rt.SaveStep(ctx, step), rt.AskApproval(ctx, late))
		})
		r.moves(time.Hour)
		heard(0, "") // Nobody has looked at the time.
		r.update(func(ctx context.Context, tx *store.Tx) error {
			list, err := tx.ExpireApprovals(ctx)
			if len(list) != 1 {
				t.Errorf("%d approvals have expired, want 1", len(list))
			}
			return err
		})
		r.moves(10 * time.Second)
		heard(1, "approval approval/ap_2")
		heard(0, "")
		again := engine.Heard(a.ID, loop.Actor{Who: "ann"})
		if again.Key != "approval/ap_1" || again.Approval != a.ID || again.By.Who != "ann" {
			t.Errorf("its firing is %+v", again)
		}
	})
}
