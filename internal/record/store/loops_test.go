package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Whoever fires first in a workspace registers it; several do so at once.
func TestManyRegisterAWorkspaceAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		for round := range 20 {
			ws := loop.Workspace{ID: fmt.Sprint("ws", round), Root: fmt.Sprint("/repo", round)}
			start := make(chan struct{})
			var together sync.WaitGroup
			for i := range 8 {
				together.Go(func() {
					<-start
					err := s.Update(t.Context(), func(tx *store.Tx) error {
						return tx.AddLoop(t.Context(), ws, loop.Loop{
							ID: fmt.Sprintf("lp_%d_%d", round, i), WorkspaceID: ws.ID, Name: fmt.Sprint("l", i/2), Protocol: loop.ProtocolSpine,
						})
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			close(start)
			together.Wait()
		}
	})
}

func TestAForgottenLoopIsKnownAgainWhenItRuns(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l, other := seed(t, s, "ci"), seed(t, s, "other")
		settle(t, s, fire(t, s, l, "-1", alice), loop.OutcomeQuiet)
		if err := s.Update(t.Context(), func(tx *store.Tx) error {
			return errors.Join(tx.Pause(t.Context(), other.ID, true), tx.Pause(t.Context(), l.ID, true), tx.Forget(t.Context(), loop.Actor{Who: "ann"}, l.ID))
		}); err != nil {
			t.Fatal(err)
		}
		if got := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Loop, error) { return r.Loop(ctx, other.ID) }); got.Forgotten || !got.Paused {
			t.Errorf("another loop: %+v, want that it is paused as before", got)
		}
		read := func() loop.Loop {
			return look(t, s, func(ctx context.Context, r *store.Reader) (loop.Loop, error) { return r.Loop(ctx, l.ID) })
		}
		if got := read(); !got.Forgotten || got.Paused {
			t.Errorf("forgotten: %+v", got)
		}
		links := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Link, error) { return r.Chain(ctx, l.ID) })
		if err := store.VerifyChain(links); err != nil || links[len(links)-1].Kind != loop.LinkForget {
			t.Errorf("chain: %v, %+v", err, links)
		}
		if run := fire(t, s, l, "-2", alice); run.N != 2 || read().Forgotten {
			t.Errorf("run #%d after it, %+v", run.N, read())
		}
	})
}
