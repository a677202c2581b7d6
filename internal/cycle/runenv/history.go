package runenv

import (
	"context"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/confine/workspace"
	"github.com/pawl-run/pawl/internal/git/mirror"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Mirrors are the histories that programs in a sandbox may read, of all
// repositories.
func (h Host) Mirrors() mirror.Cache {
	return mirror.Cache{Dir: filepath.Join(h.Home, "mirrors"), Now: h.Now}
}

// openHistory holds what git may read in a copy of the commit, or returns nil where
// nothing confines programs: there they can read the repository itself.
func (s Env) openHistory(ctx context.Context, commit string) (*mirror.Mirror, error) {
	if tier := s.Tier(); tier == sandbox.None || tier == sandbox.External {
		return nil, nil
	}
	base := s.Base
	if base == "" {
		base = commit
	}
	cache := s.Mirrors()
	cache.Say = s.Say
	return cache.Open(ctx, workspace.RepositoryKey(s.Repo), s.Repo, base, s.Definition.History == loop.HistoryNone)
}
