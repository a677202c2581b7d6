package roster

import (
	"context"

	"github.com/pawl-run/pawl/internal/credential"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
)

// Logins are the logins that pawl keeps beside those in the files of the user's
// programs.
type Logins struct {
	Store  *store.Store
	Lender credential.Lender
}

// KeptLogin is a login that is in no program's file, schema pawl.logins/v1 as a
// listing. It never has what the login holds.
type KeptLogin = credential.KeptLogin

// List lists the logins that are kept, the newest first.
func (l Logins) List() ([]KeptLogin, error) { return l.Lender.ListKept() }

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
