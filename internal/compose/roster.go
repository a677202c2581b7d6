package compose

import (
	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/turn"
)

// Roster returns the verbs for who acts, which need no repository.
func (d *Parts) Roster() control.Roster {
	return control.Roster{Store: d.store, Profiles: Profiles(), Now: d.deps.Now, NewID: d.deps.NewID}
}

// Logins returns the verbs for logins that are kept, which need no repository.
func (d *Parts) Logins() control.Logins {
	lender := turn.Lender(d.home)
	lender.Holder = self()
	return control.Logins{Store: d.store, Lender: lender}
}
