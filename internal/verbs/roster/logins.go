package roster

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/credential"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Logins are the logins that runs have, and those that pawl keeps beside the files of
// the user's programs.
type Logins struct {
	Store  *store.Store
	Lender credential.Lender
}

// KeptLogin is a login that is in no program's file. It never has what the login
// holds.
type KeptLogin = credential.KeptLogin

// Login is one login of a listing, schema pawl.logins/v1: one that a live run has, on
// whichever node, or one that is kept here.
type Login struct {
	KeptLogin

	Seat *loop.Seat `json:"seat,omitempty"` // of the run that has it; its id is that of the account
}

// List lists the logins that runs have, the one that was lent first, and then those
// that are kept, the newest first.
func (l Logins) List(ctx context.Context) ([]Login, error) {
	var all []Login
	if l.Store != nil {
		var seats []loop.Seat
		err := l.Store.View(ctx, func(r *store.Reader) (err error) {
			seats, err = r.Seats(ctx)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, s := range seats {
			if s.Login == "" {
				continue
			}
			driver, _, _ := strings.Cut(s.Account, ":")
			why := fmt.Sprintf("lent to %s, %s", s, s.Holder)
			all = append(all, Login{KeptLogin{ID: s.Account, Agent: driver, From: s.Login, Run: s.RunID, Why: why, At: s.Since}, &s})
		}
	}
	kept, err := l.Lender.ListKept()
	for _, k := range kept {
		all = append(all, Login{KeptLogin: k})
	}
	return all, err
}

// Find returns the newest login that is kept of a driver, or the one with an id. An
// unknown name is a *loop.Fault.
func (l Logins) Find(name string) (KeptLogin, error) { return l.Lender.FindKept(name) }

// LoginSwap is an exchange of logins, schema pawl.login-swap/v1.
type LoginSwap struct {
	Schema string `json:"schema"`
	credential.Swapped
}

// Swap puts a kept login, named by its driver or its id, into the file of its
// program, and keeps what was there. The exchange is linked into the audit chain
// of the loop whose run left the login. An unknown name is a *loop.Fault, a login
// that a run has is a *loop.HeldError.
func (l Logins) Swap(ctx context.Context, by loop.Actor, name string) (LoginSwap, error) {
	s := LoginSwap{Schema: "pawl.login-swap/v1"}
	var err error
	if s.Swapped, err = l.Lender.SwapLogin(ctx, name, by.Who+" exchanged it"); err != nil {
		return s, err
	}
	return s, l.Store.Update(ctx, func(tx *store.Tx) error {
		return tx.LinkBy(ctx, by, s.Chain, loop.LinkLogin, "", map[string]any{"agent": s.Taken.Agent, "back": "swapped", "taken": s.Taken.ID, "kept": s.Kept, "by": by.Who})
	})
}
