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
	if s.Swapped, err = l.Lender.Swap(ctx, name, by.Who+" exchanged it"); err != nil {
		return s, err
	}
	return s, l.Store.Update(ctx, func(tx *store.Tx) error {
		return tx.LinkBy(ctx, by, s.Chain, loop.LinkLogin, "", map[string]any{"agent": s.Taken.Agent, "back": "swapped", "taken": s.Taken.ID, "kept": s.Kept, "by": by.Who})
	})
}
