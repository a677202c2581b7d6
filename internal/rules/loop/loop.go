// Package loop holds the nouns and the rules of an agent loop: definitions,
// runs, steps, iterations, effects and approvals, which state may follow which,
// and what each outcome means to the outside.
//
// It performs no I/O, reads no clock and starts no goroutine. A caller passes
// the time in; the same inputs always give the same answer.
package loop

import "time"

// Workspace is a git repository registered with pawl.
type Workspace struct {
	ID   string `json:"id"`   // kept in its git directory; empty: it is not registered
	Root string `json:"root"` // absolute path of the checkout on this node

	// Repository is the id of the git directory that linked worktrees share, and so
	// of the main checkout: in it, locks by branch and path hold.
	Repository string `json:"repository"`
}

// Loop is a named definition plus its state, the thing a user creates, pauses
// and reads about.
type Loop struct {
	ID          string    `json:"id"`
	WorkspaceID string    `json:"workspace_id"`
	Name        string    `json:"name"`
	Protocol    string    `json:"protocol"`
	Definition  string    `json:"definition"` // digest of the newest recorded definition, empty before the first run
	Paused      bool      `json:"paused"`     // the store's own switch, beside the PAUSED files
	Forgotten   bool      `json:"forgotten"`  // it is not listed before it runs again
	LastN       int64     `json:"last_n"`     // number of the newest run, 0 before the first
	Created     time.Time `json:"created"`
	Deferrals   int       `json:"deferrals,omitempty"` // runs in a row that gave way to another loop

	// Of a loop that an agent made inside of a run; zero if people did.
	Parent    string    `json:"parent,omitempty"`      // id of the loop of that run
	Depth     int       `json:"depth,omitempty"`       // 1 for those of a loop of people's
	MadeBy    string    `json:"made_by_run,omitempty"` // id of the run
	PawlTools PawlTools `json:"pawl_tools,omitempty"`  // that its agent has inherited
	Lent      Amount    `json:"lent,omitzero"`         // what was taken out of the life of its parent, a spec

	Registered Registration `json:"registered"`
	Ticked     time.Time    `json:"ticked,omitzero"` // the newest planned time of which it is known what became; zero: none
}

// Registration is what the file of a loop says since pawl last looked at it. It is the
// zero Registration if there was no file.
type Registration struct {
	Source string    `json:"source"` // digest of the file; it changes with the pawl that reads it, too
	Good   string    `json:"good"`   // digest of the newest definition in the file that can run; empty: there was none
	Broken string    `json:"broken"` // why the file cannot run as it is now; empty: it can
	Due    time.Time `json:"due"`    // when the loop fires next; zero: never by time. A broken loop keeps it and does not fire

	Planned time.Time `json:"planned"` // what the cadence says of Due, which a jitter puts off

	Listens string `json:"listens,omitempty"` // the events that fire it, one EventSource a line; a broken loop is not fired by them
}

// Protocol names, as written in definitions, rows and on the command line.
const (
	ProtocolSpine = "spine"
	ProtocolSpec  = "spec"
	ProtocolBoot  = "boot"
	ProtocolTasks = "tasks"
	ProtocolBoard = "board"
)

// Tier is how much a loop may do without a person.
type Tier string

// The three tiers. A loop starts at L1 and never skips one.
const (
	TierReport     Tier = "L1" // reports, changes nothing
	TierAssisted   Tier = "L2" // proposes a branch
	TierUnattended Tier = "L3" // lands what its definition allows
)

// IsKnown reports whether t is one of the three tiers.
func (t Tier) IsKnown() bool {
	return t == TierReport || t == TierAssisted || t == TierUnattended
}
