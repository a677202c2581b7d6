package engine

import (
	"cmp"
	"context"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/credential"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/ground/dirglob"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// login is what an agent identifies itself with.
type login struct {
	*heldRun
	actor    turn.Actor // whose it is
	signed   credential.Credential
	unsigned error            // why there is no credential
	loan     *credential.Loan // a login that a turn has renewed; nil if no turn has
	told     bool             // where requests go was said
}

// fetchFromDead keeps the login that a dead run was lent, before the home in which
// its program may have renewed it is removed.
func (l *login) fetchFromDead(ctx context.Context) {
	lender := turn.Lender(l.Home)
	lender.Holder, lender.Run, lender.Reopen = l.Self, l.run.ID, l.reopen
	back, err := lender.FetchLeft(ctx, l.run.ID)
	for _, b := range back {
		l.stageReturn(b)
	}
	if err != nil {
		l.said.Note("%s", l.said.Hide("login: "+err.Error()))
	}
}

// stageReturn tells what became of a login, and stages it for the audit chain.
func (l *login) stageReturn(r credential.Returned) {
	text := turn.LoginText(r)
	if text == "" {
		return
	}
	l.said.Note("%s", l.said.Hide(text))
	run := l.id
	l.stage(func(ctx context.Context, rt *store.RunTx) error {
		return rt.Link(ctx, run.LoopID, loop.LinkLogin, run.ID, map[string]any{"agent": r.Agent, "back": r.Back, "why": r.Why, "kept": r.Aside})
	})
}

// settle decides about a login that turns of the run have renewed, now that
// its outcome is known, and stages what became of it.
func (l *login) settle(ctx context.Context) {
	if l.loan == nil {
		return
	}
	refused := ""
	switch {
	case l.run.Outcome == loop.OutcomeRefused:
		refused = "the run was refused"
	case l.run.Reason == loop.FailureAuth:
		refused = "its vendor did not take it"
	}
	back, err := l.loan.Settle(ctx, refused)
	if err != nil {
		l.said.Note("%s", l.said.Hide("login: "+err.Error()))
		l.loan.Close()
		l.loan = nil // Its note stays, for the next run with this login.
		return
	}
	l.stageReturn(back)
}

// forget lets go of a login whose end is on record.
func (l *login) forget() {
	if l.loan == nil {
		return
	}
	if err := l.loan.Forget(); err != nil {
		l.Log.Error("the note of a loan stays", slog.String("run", l.run.ID), slog.Any("err", err))
	}
	l.loan = nil
}

// reopen finds what a run that died left in the homes of its agent. Its chain is the id
// of its loop.
func (l *login) reopen(run, chain string) (agent.Home, error) {
	left := dirglob.Find(l.runDir(run), "turnenv-*/home")
	// The last turn has the login; names with more digits are later.
	slices.SortFunc(left, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(b, a)) })
	// Those of a loop whose agents go on with conversations outlive the run.
	left = append(left, dirglob.Find(filepath.Join(l.Home, "sessions", chain), "*/home")...)
	if len(left) == 0 {
		return nil, fs.ErrNotExist
	}
	return turn.PastHomes(left), nil
}
