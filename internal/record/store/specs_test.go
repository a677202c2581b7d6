package store_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// addSpec adds a spec with its loop, and goes on with what is stored.
func addSpec(t *testing.T, s *store.Store, id, goal string) store.Spec {
	t.Helper()
	l := addLoop(t, s, seed(t, s, "first").WorkspaceID, loop.ProtocolSpec, id)
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		added, err := tx.AddSpec(ctx, store.Spec{ID: id, WorkspaceID: l.WorkspaceID, LoopID: l.ID, Goal: goal, Agent: "ada", Body: `{"goal":1}`}, "ann")
		if err == nil && !added {
			err = errors.New("its id is taken")
		}
		return err
	})
	return readSpec(t, s, id)
}

func readSpec(t *testing.T, s *store.Store, id string) store.Spec {
	t.Helper()
	return look(t, s, func(ctx context.Context, r *store.Reader) (store.Spec, error) { return r.Spec(ctx, id) })
}

func TestASpecHasRevisionsAndTheSecondOfTwoEditsIsRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		first := addSpec(t, s, "lp_aaaaaaa", "green")
		if first.Revision != 1 || first.Body != `{"goal":1}` || first.Goal != "green" || first.Agent != "ada" || first.Created.IsZero() || first.Step.ID != "" || first.Runs != 0 {
			t.Errorf("spec = %+v", first)
		}
		changed := first
		changed.Body, changed.Goal, changed.Agent = `{"goal":2}`, "greener", "bea"
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.ReviseSpec(ctx, changed, "bob"); err != nil {
				return err
			}
			return tx.SaveRubric(ctx, first.ID, `{"id":"rb_1"}`)
		})
		err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.ReviseSpec(t.Context(), changed, "cy") })
		if !errors.Is(err, loop.ErrAnswered) {
			t.Errorf("a second edit of revision 1: %v, want it refused", err)
		}
		want := changed
		want.Revision, want.Rubric = 2, `{"id":"rb_1"}`
		if diff := gocmp.Diff(want, readSpec(t, s, first.ID), cmpopts.IgnoreFields(store.Spec{}, "Updated")); diff != "" {
			t.Errorf("spec (-want +got):\n%s", diff)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			added, err := tx.AddSpec(ctx, store.Spec{ID: first.ID, WorkspaceID: first.WorkspaceID, LoopID: first.LoopID, Body: "{}"}, "ann")
			if added {
				t.Error("an id was given twice")
			}
			return err
		})
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteSpec(ctx, first.ID) })
		err = s.View(t.Context(), func(r *store.Reader) error { _, err := r.Spec(t.Context(), first.ID); return err })
		if !errors.Is(err, loop.ErrNotFound) {
			t.Errorf("a deleted spec: %v, want not found", err)
		}
	})
}

func TestSpecsAreListedInPagesTheNewestChangeFirst(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		var all []string
		for i := range 7 {
			sp := addSpec(t, s, fmt.Sprintf("lp_%07d", i), "g")
			all = append(all, sp.ID)
		}
		workspace := readSpec(t, s, all[0]).WorkspaceID
		var got []string
		var last store.Spec
		for {
			page := look(t, s, func(ctx context.Context, r *store.Reader) ([]store.Spec, error) {
				return r.Specs(ctx, workspace, last.Updated, last.ID, 3)
			})
			for _, sp := range page {
				got = append(got, sp.ID)
			}
			if len(page) < 3 {
				break
			}
			last = page[len(page)-1]
		}
		slices.SortFunc(all, func(a, b string) int { // Two of the same millisecond are ordered by their ids.
			return cmp.Or(readSpec(t, s, b).Updated.Compare(readSpec(t, s, a).Updated), strings.Compare(b, a))
		})
		if diff := gocmp.Diff(all, got); diff != "" {
			t.Errorf("listed (-want +got):\n%s", diff)
		}
	})
}

func TestAStepThatIsDoneOrHandedOverIsOpenedAgainAndAnotherIsNot(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "l")
		for state, want := range map[loop.StepState]bool{
			loop.StepDone: true, loop.StepEscalated: true, loop.StepOpen: false, loop.StepFailed: false, loop.StepWaiting: false, loop.StepClaimed: false,
		} {
			step := loop.Step{ID: "st_" + string(state), LoopID: l.ID, Key: string(state), Kind: loop.StepWork, State: state, Attempts: 3, Feedback: "before"}
			run := fire(t, s, l, string(state), alice)
			for _, next := range []loop.StepState{loop.StepClaimed, state} {
				step.State = next
				if err := held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.SaveStep(t.Context(), step) }); err != nil {
					t.Fatal(err)
				}
			}
			settle(t, s, run, loop.OutcomeQuiet)
			step.Attempts, step.Feedback = 0, "missed"
			var reopened bool
			update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
				reopened, err = tx.ReopenStep(ctx, step)
				return err
			})
			if reopened != want {
				t.Errorf("%s: reopened = %v, want %v", state, reopened, want)
			}
			steps := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Step, error) { return r.Steps(ctx, l.ID) })
			at := slices.IndexFunc(steps, func(st loop.Step) bool { return st.ID == step.ID })
			if got := steps[at]; want && (got.State != loop.StepOpen || got.Attempts != 0 || got.Feedback != "missed") || !want && got.State != state {
				t.Errorf("%s: the step is %+v", state, got)
			}
		}
	})
}

func TestWhenTheTimeOfAQuestionRunsOutItsStepIsNotLeftWaiting(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "l")
		for kind, c := range map[string]struct {
			before, after loop.StepState
			waits         bool
		}{
			loop.ActionAccept:   {loop.StepWaiting, loop.StepOpen, false},
			loop.ActionKeep:     {loop.StepWaiting, loop.StepOpen, false},
			loop.ActionLand:     {loop.StepWaiting, loop.StepOpen, false},
			loop.ActionQuestion: {loop.StepEscalated, loop.StepEscalated, false},
			loop.ActionCommand:  {loop.StepWaiting, loop.StepWaiting, true}, // A run takes it up, and is told.
		} {
			step := loop.Step{ID: "st_" + kind, LoopID: l.ID, Key: kind, Kind: loop.StepWork, WaitsFor: "ap_" + kind}
			run := fire(t, s, l, kind, alice)
			for _, next := range []loop.StepState{loop.StepClaimed, c.before} {
				step.State = next
				if err := held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.SaveStep(t.Context(), step) }); err != nil {
					t.Fatal(err)
				}
			}
			settle(t, s, run, loop.OutcomeWaiting)
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				asked := loop.Approval{ID: step.WaitsFor, LoopID: l.ID, RunID: run.ID, StepID: step.ID, Action: loop.Action{Kind: kind, Branch: "pawl/l/1"}, State: loop.ApprovalOpen, Created: tx.Now(), Expires: tx.Now()}
				if err := tx.AskApproval(ctx, asked); err != nil {
					return err
				}
				_, err := tx.ExpireApprovals(ctx)
				return err
			})
			steps := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Step, error) { return r.Steps(ctx, l.ID) })
			got := steps[slices.IndexFunc(steps, func(st loop.Step) bool { return st.ID == step.ID })]
			if got.State != c.after || (got.WaitsFor != "") != c.waits || got.State == loop.StepOpen && (got.Snapshot != "refs/heads/pawl/l/1" || got.Feedback == "") {
				t.Errorf("%s: the step is %+v, want it %s, waiting: %v", kind, got, c.after, c.waits)
			}
		}
	})
}
