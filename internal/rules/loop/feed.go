package loop

import (
	"fmt"
	"time"
)

// FeedKind is what an entry of the feed is about.
type FeedKind string

// The kinds of entries. An entry about a run is also written for what belongs to
// the run alone: its turns, steps, effects and transcript.
const (
	FeedRun      FeedKind = "run"
	FeedLoop     FeedKind = "loop" // its definition or its switch changed, its events wait no longer, or it was forgotten
	FeedApproval FeedKind = "approval"
	FeedBudget   FeedKind = "budget" // its cap; what was spent changes with runs
	FeedHold     FeedKind = "hold"
	FeedAgent    FeedKind = "agent"  // of the roster
	FeedSwitch   FeedKind = "switch" // the kill switch of a workspace, or of the store
)

// FeedKinds lists all kinds.
var FeedKinds = []FeedKind{FeedRun, FeedLoop, FeedApproval, FeedBudget, FeedHold, FeedAgent, FeedSwitch}

// FeedEntry says that something changed. The feed has an entry for each change
// that was committed, and only for those. It does not say what changed: a reader
// reads the row again.
type FeedEntry struct {
	Cursor Cursor    `json:"cursor"`
	At     time.Time `json:"at"`
	Kind   FeedKind  `json:"kind"`
	ID     string    `json:"id"`              // run, loop, approval, agent or workspace id; scope of a budget; subject of a hold; store
	LoopID string    `json:"loop,omitempty"`  // empty for what belongs to no loop
	State  string    `json:"state,omitempty"` // afterwards; a run's outcome once it has one
}

// Cursor is a place in the feed of one store. The zero Cursor is before its first
// entry. Outside of the program it is written as text.
type Cursor struct {
	// Transaction is that of PostgreSQL, whose transactions are not committed in the
	// order in which they took their numbers; 0 on SQLite.
	Transaction uint64
	Seq         int64
}

// String is the text of a cursor, as MarshalText.
func (c Cursor) String() string { return fmt.Sprintf("%d.%d", c.Transaction, c.Seq) }

// MarshalText writes the cursor as UnmarshalText reads it.
func (c Cursor) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads a cursor. An empty text is the zero Cursor.
func (c *Cursor) UnmarshalText(b []byte) error {
	if *c = (Cursor{}); len(b) == 0 {
		return nil
	}
	var read Cursor
	if _, err := fmt.Sscanf(string(b), "%d.%d", &read.Transaction, &read.Seq); err != nil || read.String() != string(b) {
		return fmt.Errorf("%q is not a cursor: write one that the feed gave", b)
	}
	*c = read
	return nil
}
