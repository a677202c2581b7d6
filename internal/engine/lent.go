package engine

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/credential"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/turn"
)

// fetchLogins gives back the login that a dead run was lent, before the home in
// which its program may have renewed it is removed.
func (c *cycle) fetchLogins(ctx context.Context) {
	lender := credential.Lender{Dir: turn.LoginsDir(c.Home), Holder: c.Self, Run: c.run.ID, Reopen: c.reopen(ctx)}
	back, err := lender.Fetch(ctx, c.run.ID)
	for _, b := range back {
		if text := turn.LoginText(b); text != "" {
			c.said.Note("%s", c.said.Hide(text))
		}
	}
	if err != nil {
		c.said.Note("%s", c.said.Hide("login: "+err.Error()))
	}
}

// reopen finds what a run that died left in the homes of its agent.
func (c *cycle) reopen(ctx context.Context) func(run string) (agent.Home, error) {
	return func(run string) (agent.Home, error) {
		left, err := filepath.Glob(filepath.Join(c.runDir(run), "seat-*", "home"))
		if err != nil {
			return nil, err
		}
		// The last turn has the login; names with more digits are later.
		slices.SortFunc(left, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(b, a)) })
		kept, err := c.keptHomes(ctx, run)
		if err != nil {
			return nil, err
		}
		if left = append(left, kept...); len(left) == 0 {
			return nil, fs.ErrNotExist
		}
		return turn.LeftHome(left), nil
	}
}

// keptHomes are those of a loop whose agents go on with conversations.
func (c *cycle) keptHomes(ctx context.Context, runID string) ([]string, error) {
	var run loop.Run
	err := c.Store.View(ctx, func(r *store.Reader) (err error) {
		run, err = r.Run(ctx, runID)
		return err
	})
	if errors.Is(err, loop.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return filepath.Glob(filepath.Join(c.Home, "sessions", run.LoopID, "*", "home"))
}
