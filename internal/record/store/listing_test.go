package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestLoopsAndWorkspacesAreListedInOrder(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(
				tx.AddWorkspace(ctx, loop.Workspace{ID: "late", Root: "/z", Repository: "main"}),
				tx.SaveNode(ctx, loop.Node{ID: "node_1", Name: "one"}), tx.SaveNode(ctx, loop.Node{ID: "node_2", Name: "two"}),
				tx.Place(ctx, loop.Placement{WorkspaceID: "late", NodeID: "node_1", Path: "/z"}))
		})
		later, first := seed(t, s, "tests"), seed(t, s, "ci")
		elsewhere := loop.Loop{ID: "lp_far", WorkspaceID: "far", Name: "ci", Protocol: loop.ProtocolSpine, LastN: 7}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(
				tx.AddLoop(ctx, loop.Workspace{ID: "far", Root: "/far"}, elsewhere),
				tx.AddWorkspace(ctx, loop.Workspace{ID: "far", Root: "/moved", Repository: "other"}), // It stays as it is.
				tx.Place(ctx, loop.Placement{WorkspaceID: "far", NodeID: "node_1", Path: "/a"}),
				tx.Place(ctx, loop.Placement{WorkspaceID: "far", NodeID: "node_1", Path: "/moved"}),
				tx.Place(ctx, loop.Placement{WorkspaceID: "far", NodeID: "node_2", Path: "/z"}))
		})
		elsewhere.Created = noon
		workspaces := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Workspace, error) {
			return r.Workspaces(ctx, "node_1")
		})
		want := []loop.Workspace{{ID: "far", Root: "/moved", Repository: "far"}, {ID: "late", Root: "/z", Repository: "main"}}
		if d := cmp.Diff(want, workspaces); d != "" {
			t.Errorf("workspaces (-want +got):\n%s", d)
		}
		for id, want := range map[string][]loop.Loop{"ws": {first, later}, "far": {elsewhere}, "late": nil} {
			got := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Loop, error) { return r.Loops(ctx, id) })
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("loops of %s (-want +got):\n%s", id, d)
			}
		}
		if first.Created != noon {
			t.Errorf("a loop was made at %v, want %v", first.Created, noon)
		}
	})
}

func TestARunIsFoundByItsNumberAndTheLiveOneByItsLoop(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l, other := seed(t, s, "ci"), seed(t, s, "other")
		first := fire(t, s, l, "-1", alice)
		settle(t, s, first, loop.OutcomeQuiet)
		live := fire(t, s, l, "-2", alice)
		fire(t, s, l, "-3", loop.Holder{})
		settle(t, s, fire(t, s, other, "-1", bob), loop.OutcomeDone)
		id := func(find func(context.Context, *store.Reader) (loop.Run, error)) (string, error) {
			var run loop.Run
			err := s.View(t.Context(), func(r *store.Reader) (err error) {
				run, err = find(t.Context(), r)
				return err
			})
			return run.ID, err
		}
		for name, c := range map[string]struct {
			find func(context.Context, *store.Reader) (loop.Run, error)
			want string // empty: not found
		}{
			"number 1": {func(ctx context.Context, r *store.Reader) (loop.Run, error) { return r.RunNumber(ctx, l.ID, 1) }, first.ID},
			"number 4": {func(ctx context.Context, r *store.Reader) (loop.Run, error) { return r.RunNumber(ctx, l.ID, 4) }, ""},
			"live":     {func(ctx context.Context, r *store.Reader) (loop.Run, error) { return r.Live(ctx, l.ID) }, live.ID},
			"of a loop whose run has ended": {
				func(ctx context.Context, r *store.Reader) (loop.Run, error) { return r.Live(ctx, other.ID) }, "",
			},
			"no such run": {func(ctx context.Context, r *store.Reader) (loop.Run, error) { return r.Run(ctx, "run_none") }, ""},
		} {
			got, err := id(c.find)
			if c.want == "" && !errors.Is(err, loop.ErrNotFound) || c.want != "" && (err != nil || got != c.want) {
				t.Errorf("%s: %s, %v, want %q", name, got, err, c.want)
			}
		}
		ends := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Run, error) { return r.RunEnds(ctx, l.ID) })
		want := []loop.Run{
			{ID: first.ID, LoopID: l.ID, N: 1, State: loop.RunEnded, Outcome: loop.OutcomeQuiet},
			{ID: live.ID, LoopID: l.ID, N: 2, State: loop.RunRunning},
			{ID: "run_ci-3", LoopID: l.ID, N: 3, State: loop.RunQueued},
		}
		if d := cmp.Diff(want, ends); d != "" {
			t.Errorf("ends (-want +got):\n%s", d)
		}
	})
}

func TestStepsThatTheMemoryHasDroppedAreNotListed(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, clock *hand) {
		l := seed(t, s, "ci")
		run := fire(t, s, l, "-1", alice)
		step := loop.Step{
			ID: "st_1", LoopID: l.ID, Key: "k1", Kind: loop.StepWork, Title: "do it", State: loop.StepOpen, Attempts: 2, Tokens: 7, Begun: noon,
			Tried: loop.Tried{Gates: map[string]loop.Streak{"g": {Failed: 4, Tree: "t", SameTree: 3}}, Trees: []string{"t"}, Back: 1}, BlockedAt: 6, WaitsFor: "w", Snapshot: "s", Feedback: "f", Inputs: "i", Updated: noon,
		}
		gone := loop.Step{ID: "st_0", LoopID: l.ID, Key: "k0", Kind: loop.StepWork, Title: "not any more", State: loop.StepOpen}
		second := loop.Step{ID: "st_2", LoopID: l.ID, Key: "k2", Kind: loop.StepWork, Title: "then that", State: loop.StepOpen, Updated: noon}
		err := held(t.Context(), s, run, func(rt *store.RunTx) error {
			err := errors.Join(rt.SaveStep(t.Context(), second), rt.SaveStep(t.Context(), step), rt.SaveStep(t.Context(), gone))
			gone.State = loop.StepDropped
			return errors.Join(err, rt.SaveStep(t.Context(), gone))
		})
		if err != nil {
			t.Fatal(err)
		}
		list := func() []loop.Step {
			return look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Step, error) { return r.Steps(ctx, l.ID) })
		}
		if d := cmp.Diff([]loop.Step{step, second}, list()); d != "" {
			t.Errorf("steps (-want +got):\n%s", d)
		}
		clock.add(time.Minute)
		step.Title, step.State, step.Attempts, step.Tried, step.Inputs = "do it well", loop.StepClaimed, 4, loop.Tried{Tests: map[string]int{"TestX": 2}}, "i2"
		step.BlockedAt, step.WaitsFor, step.Snapshot, step.Feedback, step.Updated = 7, "w2", "s2", "f2", clock.now()
		if err := held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.SaveStep(t.Context(), step) }); err != nil {
			t.Fatal(err)
		}
		step.RunID = run.ID
		if d := cmp.Diff([]loop.Step{step, second}, list()); d != "" {
			t.Errorf("after a change (-want +got):\n%s", d)
		}
	})
}

func TestTurnsAndTheNewestEventOfAKindComeBack(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "ci")
		run := fire(t, s, l, "-1", alice)
		last := func(kind string) (text string, err error) {
			err = s.View(t.Context(), func(r *store.Reader) (err error) {
				text, err = r.LastOf(t.Context(), run.ID, kind)
				return err
			})
			return text, err
		}
		if _, err := last("instructions"); !errors.Is(err, loop.ErrNotFound) {
			t.Errorf("no event of a kind: %v, want ErrNotFound", err)
		}
		if seq := look(t, s, func(ctx context.Context, r *store.Reader) (int64, error) { return r.LastEvent(ctx, run.ID) }); seq != 0 {
			t.Errorf("the newest of no events is %d", seq)
		}
		turns := []loop.Turn{{RunID: run.ID, N: 1, Purpose: "act", Ended: "exit"}, {RunID: run.ID, N: 2, Purpose: "review", Ended: "killed"}}
		events := []loop.Event{
			{RunID: run.ID, Seq: 1, At: noon, Phase: loop.PhaseAct, Kind: "instructions", Text: "first"},
			{RunID: run.ID, Seq: 2, At: noon, Phase: loop.PhaseAct, Kind: "instructions", Text: "second"},
			{RunID: run.ID, Seq: 3, At: noon, Phase: loop.PhaseAct, Kind: "output", Text: "third"},
		}
		err := held(t.Context(), s, run, func(rt *store.RunTx) error {
			began := turns[0]
			began.Ended = ""
			return errors.Join(
				rt.SaveTurn(t.Context(), turns[1]), rt.SaveTurn(t.Context(), began), rt.SaveTurn(t.Context(), turns[0]),
				rt.AppendEvents(t.Context(), events),
				rt.AppendEvents(t.Context(), events[1:])) // As after a commit that nobody acknowledged.
		})
		if err != nil {
			t.Fatal(err)
		}
		got := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Turn, error) { return r.Turns(ctx, run.ID) })
		if d := cmp.Diff(turns, got); d != "" {
			t.Errorf("turns (-want +got):\n%s", d)
		}
		all := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Event, error) { return r.Events(ctx, run.ID, 0, 10) })
		if d := cmp.Diff(events, all); d != "" {
			t.Errorf("events (-want +got):\n%s", d)
		}
		if text, err := last("instructions"); err != nil || text != "second" {
			t.Errorf("the newest = %q, %v, want the second", text, err)
		}
	})
}

func TestASnapshotBelongsToItsWorkspace(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		const ref = "refs/pawl/snapshots/ci/1"
		l := seed(t, s, "ci")
		run := fire(t, s, l, "-1", alice)
		run.Snapshot, run.Outcome = ref, loop.OutcomeFailed
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			rt, err := tx.Settle(t.Context(), run, loop.PhaseConclude, false)
			if err != nil {
				return err
			}
			for i, state := range []loop.StepState{loop.StepOpen, loop.StepDone, loop.StepDropped} {
				id := string(state)
				step := loop.Step{ID: id, LoopID: l.ID, Key: id, Kind: loop.StepWork, Title: id, State: loop.StepOpen, Snapshot: ref}
				if state != loop.StepOpen {
					step.Snapshot = ref + "0"
				}
				if err := rt.SaveStep(t.Context(), step); err != nil {
					return err
				}
				if step.State = loop.StepClaimed; i == 1 {
					err = rt.SaveStep(t.Context(), step)
				}
				if step.State = state; i > 0 {
					err = errors.Join(err, rt.SaveStep(t.Context(), step))
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Update(t.Context(), func(tx *store.Tx) error {
			return errors.Join(tx.AddWorkspace(t.Context(), loop.Workspace{ID: "linked", Repository: "ws"}), tx.AddWorkspace(t.Context(), loop.Workspace{ID: "other"}))
		})
		if err != nil {
			t.Fatal(err)
		}
		type place struct {
			workspace string
			shared    bool
		}
		for in, found := range map[place]bool{
			{"ws", false}: true, {"ws", true}: true, {"linked", false}: false, {"linked", true}: true, {"other", false}: false, {"other", true}: false, {"", true}: false,
		} {
			err := s.View(t.Context(), func(r *store.Reader) error {
				got, err := r.SnapshotRun(t.Context(), in.workspace, ref, in.shared)
				if err == nil && got.ID != run.ID {
					t.Errorf("the ref is of run %s, want %s", got.ID, run.ID)
				}
				return err
			})
			if (err == nil) != found || err != nil && !errors.Is(err, loop.ErrNotFound) {
				t.Errorf("in %+v: %v, want it found: %v", in, err, found)
			}
			want := map[string]string{}
			if found {
				want[ref] = "open"
			}
			got := look(t, s, func(ctx context.Context, r *store.Reader) (map[string]string, error) {
				return r.Waiting(ctx, in.workspace, in.shared)
			})
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("waiting in %+v (-want +got):\n%s", in, d)
			}
		}
	})
}
