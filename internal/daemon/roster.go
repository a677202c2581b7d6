package daemon

import "github.com/pawl-run/pawl/internal/control"

// Roster returns the verbs for who acts, which need no repository.
func (d *Daemon) Roster() control.Roster {
	return control.Roster{Store: d.store, Profiles: Profiles(), Now: d.deps.Now, NewID: d.deps.NewID}
}
