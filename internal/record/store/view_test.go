package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// On PostgreSQL a view begins with its first query, which may be several at once.
func TestAViewIsOfOneMomentWhateverItReadsFirst(t *testing.T) {
	readsFirst := map[string]func(ctx context.Context, r *store.Reader, l loop.Loop) error{
		"one query": func(ctx context.Context, r *store.Reader, l loop.Loop) error { _, err := r.Loop(ctx, l.ID); return err },
		"several": func(ctx context.Context, r *store.Reader, l loop.Loop) error {
			_, err := r.LoopState(ctx, l.ID, "", 9)
			return err
		},
	}
	onBoth(t, func(t *testing.T, s *store.Store) {
		for name, read := range readsFirst {
			ctx, l := t.Context(), seed(t, s, "l-"+name[:3])
			err := s.View(ctx, func(r *store.Reader) error {
				if err := read(ctx, r, l); err != nil {
					return err
				}
				fire(t, s, l, name, alice)
				state, err := r.LoopState(ctx, l.ID, "", 9)
				if err == nil && len(state.Runs) > 0 {
					err = errors.New("the view has a run that was fired after it began")
				}
				return err
			})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if runs := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Run, error) { return r.Runs(ctx, l.ID, 9) }); len(runs) != 1 {
				t.Errorf("%s: %d runs afterwards, want the one", name, len(runs))
			}
		}
	})
}

func TestAViewWhoseReadingFailsLeavesAConnectionThatWorks(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "ci")
		for range 20 { // More than the pool has.
			ctx, cancel := context.WithCancel(t.Context())
			err := s.View(t.Context(), func(r *store.Reader) error {
				if _, err := r.LoopState(t.Context(), l.ID, "", 9); err != nil {
					return err
				}
				cancel()
				_, err := r.LoopState(ctx, l.ID, "", 9)
				return err
			})
			if err == nil {
				t.Error("a reading whose context had ended succeeded")
			}
			err = s.View(ctx, func(r *store.Reader) error { _, err := r.LoopState(ctx, l.ID, "", 9); return err })
			if err == nil {
				t.Error("a view whose context had ended succeeded")
			}
		}
		look(t, s, func(ctx context.Context, r *store.Reader) (store.LoopState, error) {
			return r.LoopState(ctx, l.ID, "", 9)
		})
	})
}
