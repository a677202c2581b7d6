package runenv

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/confine/workspace"
	"github.com/pawl-run/pawl/internal/confine/workspace/toolset"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/clock"
)

// How long what was made for runs to come is kept without one that wants it,
// and how much of it is kept in any case.
const (
	keepLayers     = 7 * 24 * time.Hour
	keepSetups     = 30 * 24 * time.Hour
	leastLayers    = 8 // of each repository
	leastSetups    = 4
	keepFilled     = 14 * 24 * time.Hour
	leastFilled    = 2
	keepMirrors    = 14 * 24 * time.Hour
	betweenCollect = 24 * time.Hour
)

// Collect removes, at most once a day, layers and prepared dependencies that
// no run has wanted for long.
func (h Host) Collect(ctx context.Context, repo *git.Repo) error {
	mark := filepath.Join(h.Home, "collected")
	now := clock.System{}.Now() // Files are dated by this host, and not by the database.
	if info, err := os.Stat(mark); err == nil && now.Sub(info.ModTime()) < betweenCollect {
		return nil
	}
	if _, err := os.Stat(filepath.Join(h.Home, "layers")); err != nil {
		return nil //nolint:nilerr // Nothing was made yet.
	}
	_, err := h.Trees(repo, sandbox.Full).Collect(ctx, workspace.Policy{Now: now, Age: keepLayers, Count: leastLayers})
	err = errors.Join(err, toolset.Prepared{Dir: filepath.Join(h.Home, "setups")}.Collect(now.Add(-keepSetups), leastSetups))
	err = errors.Join(err, h.filledDir().Collect(now.Add(-keepFilled), leastFilled))
	if _, gone := h.Mirrors().Collect(ctx, now.Add(-keepMirrors), false); gone != nil {
		err = errors.Join(err, gone)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(mark, nil, 0o600)
}
