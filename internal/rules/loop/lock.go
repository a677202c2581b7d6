package loop

import (
	"fmt"
	"time"
)

// Lock is what a run keeps other runs of its repository from touching while it is
// live. The zero Lock keeps them from nothing.
type Lock struct {
	Scope    []string      `json:"scope,omitempty"`   // globs of files that it may change
	Branch   string        `json:"branch,omitempty"`  // that it may move, without refs/heads/
	Group    string        `json:"group,omitempty"`   // runs of one group do not exclude each other; empty: of no group
	Most     int           `json:"most,omitempty"`    // runs of the group at once; 0: any number
	Priority int           `json:"priority"`          // the higher one goes first
	Bound    int           `json:"bound"`             // after so many deferrals in a row it goes first
	Wall     time.Duration `json:"wall"`              // how long the run may take
	Insists  bool          `json:"insists,omitempty"` // it has no next tick: it waits, and never defers
}

// IsZero reports whether a run with the lock excludes no other.
func (l Lock) IsZero() bool { return len(l.Scope) == 0 && l.Branch == "" && l.Most == 0 }

// Contender is a run that has a lock or waits for one.
type Contender struct {
	Run    string // id
	LoopID string
	Loop   string // name
	N      int64
	Seq    int64 // order of firing
	Lock   Lock

	Live      bool          // it has the lock; else it waits in the queue
	Deferrals int           // how often its loop has deferred since it last went
	Age       time.Duration // since it was fired
	Started   time.Time     // of a live one
	Holder    Holder        // of a live one
}

// Ahead says which queued contenders may go before one that asks: those that were fired
// before it, those with a higher priority, and those that go first whatever their priority
// is, because they have deferred as often as they may or have waited for long.
type Ahead struct {
	Before int64         // in the order of firing
	Above  int           // this priority
	Age    time.Duration // of what has waited for long
}

// Includes reports whether a queued contender is one of them.
func (a Ahead) Includes(c Contender) bool {
	return c.Seq < a.Before || c.Lock.Priority > a.Above || c.Age >= a.Age || c.Deferrals >= c.Lock.Bound
}

// Until is when a live run ends at the latest, as far as its definition says; zero if
// it has not begun.
func (c Contender) Until() time.Time {
	if !c.Live {
		return time.Time{}
	}
	return c.Started.Add(c.Lock.Wall)
}

// Name is LOOP#NUMBER.
func (c Contender) Name() string { return fmt.Sprintf("%s#%d", c.Loop, c.N) }

// Deferral says to which run another one deferred, or for which one it waits.
type Deferral struct {
	Loop  string    `json:"loop"` // that goes first
	Run   string    `json:"run"`  // its run, by its id
	N     int64     `json:"n"`
	Rule  Reason    `json:"rule"`           // why it goes first
	Scope string    `json:"scope"`          // what both may touch, in words
	Until time.Time `json:"until,omitzero"` // when that run ends at the latest; zero: it has not begun
}

// LockedError means that a run cannot begin, because of another one that may touch the
// same. The run that was asked for is still queued, or was never recorded.
type LockedError struct {
	Loop string // that was asked for
	By   Contender
	Why  Deferral // the same run, with the rule and what both may touch
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s cannot begin: %s", e.Loop, e.Why.Words())
}

// Words say who goes first, why, and when that is over.
func (d Deferral) Words() string {
	words := fmt.Sprintf("%s: %s#%d; both may touch %s", d.Rule.Sentence(), d.Loop, d.N, d.Scope)
	if d.Until.IsZero() {
		return words
	}
	return words + ", until " + d.Until.UTC().Format(time.RFC3339) + " at the latest"
}
