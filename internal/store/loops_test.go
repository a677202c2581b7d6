package store_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
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
