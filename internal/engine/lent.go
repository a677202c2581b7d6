package engine

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/credential"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/turn"
)

// fetchLogins keeps the login that a dead run was lent, before the home in which
// its program may have renewed it is removed.
func (c *cycle) fetchLogins(ctx context.Context) {
	lender := turn.Lender(c.Home)
	lender.Holder, lender.Run, lender.Reopen = c.Self, c.run.ID, c.reopen(ctx)
	back, err := lender.Fetch(ctx, c.run.ID)
	for _, b := range back {
		c.sayLogin(b)
	}
	if err != nil {
		c.said.Note("%s", c.said.Hide("login: "+err.Error()))
	}
}

// sayLogin tells what became of a login, and stages it for the audit chain.
func (c *cycle) sayLogin(r credential.Returned) {
	text := turn.LoginText(r)
	if text == "" {
		return
	}
	c.said.Note("%s", c.said.Hide(text))
	run := c.id
	c.stage(func(ctx context.Context, rt *store.RunTx) error {
		return rt.Link(ctx, run.LoopID, loop.LinkLogin, run.ID, map[string]any{"agent": r.Agent, "back": r.Back, "why": r.Why, "kept": r.Aside})
	})
}

// settleLogin decides about a login that turns of the run have renewed, now that
// its outcome is known, and stages what became of it.
func (c *cycle) settleLogin(ctx context.Context) {
	if c.loan == nil {
		return
	}
	refused := ""
	switch {
	case c.run.Outcome == loop.OutcomeRefused:
		refused = "the run was refused"
	case c.run.Reason == loop.FailureAuth:
		refused = "its vendor did not take it"
	}
	back, err := c.loan.Settle(ctx, refused)
	if err != nil {
		c.said.Note("%s", c.said.Hide("login: "+err.Error()))
		c.loan.Close()
		c.loan = nil // Its note stays, for the next run with this login.
		return
	}
	c.sayLogin(back)
}

// forgetLogin lets go of a login whose end is on record.
func (c *cycle) forgetLogin() {
	if c.loan == nil {
		return
	}
	if err := c.loan.Forget(); err != nil {
		c.Log.Error("the note of a loan stays", slog.String("run", c.run.ID), slog.Any("err", err))
	}
	c.loan = nil
}

// reopen finds what a run that died left in the homes of its agent.
func (c *cycle) reopen(ctx context.Context) func(run string) (agent.Home, error) {
	return func(run string) (agent.Home, error) {
		left, err := filepath.Glob(filepath.Join(c.runDir(run), "turnenv-*", "home"))
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
