package loop

import "time"

// CatchUp is how many runs make up for the times at which a loop should have fired and
// did not, because nobody was there to fire it.
type CatchUp string

// The ways to catch up. The zero CatchUp is CatchUpOne.
const (
	CatchUpSkip CatchUp = "skip" // none does
	CatchUpOne  CatchUp = "one"  // one does for all
	CatchUpAll  CatchUp = "all"  // each has its own
)

// TickVerdict is what became of a planned time.
type TickVerdict string

// What can become of one. Each planned time has exactly one verdict.
const (
	TickRan       TickVerdict = "ran"       // a run was fired
	TickCoalesced TickVerdict = "coalesced" // a run that was fired for another time makes up for it
	TickSkipped   TickVerdict = "skipped"   // no run was fired, for a reason
)

// Reasons of ticks that were skipped.
const (
	TickLate   = "start_deadline" // it would have been too late
	TickMissed = "missed"         // nobody was there to fire it, and catch_up: skip
	TickPaused = "paused"         // a switch was set
	TickRests  = "not_running"    // its goal waits for a human, or was given up
)

// Tick is an entry of the ledger of planned times: one of them, or several in a row of
// which the same became.
type Tick struct {
	LoopID  string      `json:"loop_id"`
	First   time.Time   `json:"first"`
	Last    time.Time   `json:"last"`
	N       int         `json:"n"` // how many times; they are First and Last too
	Verdict TickVerdict `json:"verdict"`
	Reason  string      `json:"reason,omitempty"` // why a run was not fired, or what it waits for
	RunID   string      `json:"run,omitempty"`    // that was fired, or that makes up for it
	At      time.Time   `json:"at"`               // when that was decided
}
