package loops

import (
	"context"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
)

// Register makes the rows of all loops say what their files say: what is new or changed
// is registered, and what is broken or gone does not fire any more.
func (s *Service) Register(ctx context.Context) (catalog.Synced, error) { return s.ws.Loops.Sync(ctx) }

// RegisterOne is Register for the loop with that name.
func (s *Service) RegisterOne(ctx context.Context, name string) error {
	return s.ws.Loops.SyncLoop(ctx, name)
}
