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
		return leftHome(left), nil
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

// leftHome is the homes that a dead run left. They can only be read: the first
// that has a file counts.
type leftHome []string

// Path is the newest of the homes.
func (h leftHome) Path() string { return h[0] }

// Write refuses.
func (h leftHome) Write(string, []byte) error { return fs.ErrPermission }

// Read reads a file of the newest home that has it.
func (h leftHome) Read(name string) (text []byte, err error) {
	for _, dir := range h {
		home, openErr := turn.OpenHome(dir, dir, -1, -1)
		if openErr != nil {
			err = openErr
			continue
		}
		text, err = home.Read(name)
		if closeErr := home.Close(); err == nil {
			return text, closeErr
		}
	}
	return nil, err
}
