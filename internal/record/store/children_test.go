package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// adopt makes loops of a chain, each below the one before.
func adopt(t *testing.T, s *store.Store, names ...string) (chain []loop.Loop) {
	t.Helper()
	for i, name := range names {
		l := addLoop(t, s, "ws", loop.ProtocolSpec, name)
		if i > 0 {
			l.Parent, l.Depth, l.MadeBy, l.PawlTools, l.Lent = chain[i-1].ID, i, "run_"+name, loop.PawlToolsPost, loop.Amount{Tokens: int64(10 * i)}
			update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.AdoptLoop(ctx, l) })
		}
		chain = append(chain, l)
	}
	return chain
}

func names(list []loop.Loop) (all []string) {
	for _, l := range list {
		all = append(all, l.Name)
	}
	return all
}

func TestALoopKnowsThoseAboveAndBelowIt(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		chain := adopt(t, s, "top", "child", "grandchild", "last")
		other := addLoop(t, s, "ws", loop.ProtocolSpec, "other")
		of := func(read func(r *store.Reader, ctx context.Context, id string) ([]loop.Loop, error), l loop.Loop) []string {
			return names(look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Loop, error) { return read(r, ctx, l.ID) }))
		}
		for name, c := range map[string]struct{ got, want []string }{
			"above the last":    {of((*store.Reader).Ancestors, chain[3]), []string{"grandchild", "child", "top"}},
			"above the first":   {of((*store.Reader).Ancestors, chain[0]), nil},
			"below the first":   {of((*store.Reader).Descendants, chain[0]), []string{"child", "grandchild", "last"}},
			"below the child":   {of((*store.Reader).Descendants, chain[1]), []string{"grandchild", "last"}},
			"children":          {of((*store.Reader).Children, chain[0]), []string{"child"}},
			"below another one": {of((*store.Reader).Descendants, other), nil},
		} {
			if diff := cmp.Diff(c.want, c.got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			if n, err := tx.ChildrenToday(ctx, chain[0].ID); err != nil || n != 1 {
				t.Errorf("today it has %d children, %v, want 1", n, err)
			}
			return tx.SetLent(ctx, chain[1].ID, loop.Amount{Tokens: 4})
		})
		lent := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Amount, error) {
			return r.LentToChildren(ctx, chain[0].ID)
		})
		if lent != (loop.Amount{Tokens: 4}) {
			t.Errorf("it has lent %+v, want what it was set to", lent)
		}
		got := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Loop, error) { return r.Loop(ctx, chain[2].ID) })
		if got.Parent != chain[1].ID || got.Depth != 2 || got.MadeBy != "run_grandchild" || got.PawlTools != loop.PawlToolsPost || got.Lent.Tokens != 20 {
			t.Errorf("the grandchild is %+v", got)
		}
	})
}

func TestALoopThatIsTooDeepIsNotStored(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := addLoop(t, s, "ws", loop.ProtocolSpec, "deep")
		l.Parent, l.Depth = "lp_x", loop.MaxDepth+1
		if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.AdoptLoop(t.Context(), l) }); err == nil {
			t.Errorf("a loop of depth %d was stored", l.Depth)
		}
	})
}

// TestWhatAnAgentWritesInsideOfARunCountsOnlyWhileTheRunLives tries each way in which a run may
// not be the agent's any more.
func TestWhatAnAgentWritesInsideOfARunCountsOnlyWhileTheRunLives(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := addLoop(t, s, "ws", loop.ProtocolSpine, "fix")
		run := fireAt(t, s, l, loop.Holder{Host: "h", PID: 1})
		in := loop.Inside{RunID: run.ID, Fence: run.Fence, LoopID: l.ID}
		write := func(in loop.Inside) error {
			return s.Inside(in).Update(t.Context(), func(tx *store.Tx) error {
				_, err := tx.SetSwitch(t.Context(), loop.Actor{}, "elsewhere", "")
				return err
			})
		}
		if err := write(in); err != nil {
			t.Fatalf("while the run lives: %v", err)
		}
		old, another := in, in
		old.Fence--
		another.RunID = "run_of_another"
		for name, gone := range map[string]loop.Inside{"with an old fence": old, "of another run": another} {
			if err := write(gone); !errors.Is(err, loop.ErrLeaseLost) {
				t.Errorf("%s: %v, want the lease lost", name, err)
			}
		}
		pause := func(on bool) {
			t.Helper()
			update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.Pause(ctx, l.ID, on) })
		}
		pause(true)
		if err := write(in); !errors.Is(err, loop.ErrPaused) {
			t.Errorf("while the kill switch is set: %v, want it paused", err)
		}
		pause(false)
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Cancel(ctx, run.ID, "enough")
			return err
		})
		if err := write(in); !errors.Is(err, loop.ErrLeaseLost) {
			t.Errorf("after the run was asked to stop: %v, want the lease lost", err)
		}
	})
}
