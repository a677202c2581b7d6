package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/pattern"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// LockMove is what a run does that wants a lock.
type LockMove string

// The three moves.
const (
	LockTake  LockMove = "take"  // begin
	LockDefer LockMove = "defer" // end quiet, and come again at the next tick
	LockWait  LockMove = "wait"  // stay queued; in the foreground: wait, or do not begin
)

// Ruling says whether a run may begin. By and Why are set unless it may: the run that
// it waits for or defers to.
type Ruling struct {
	Move   LockMove
	Reason loop.Reason
	By     loop.Contender
	Why    loop.Deferral
}

// Arbitrate says whether a run may begin beside the others of its repository that have
// a lock or are queued for one. Others of its own loop do not count. A run in the
// foreground, which is not queued, is not held up by those that are merely due, unless
// they are overdue.
//
// Among queued runs the order is: those that are overdue, in the order of firing; then
// by priority, and those of one priority in the order of firing. A run waits only for
// live ones and for those before it in that order, so that no two wait for each other.
func Arbitrate(asks loop.Contender, others []loop.Contender, foreground bool) Ruling {
	if asks.Lock.IsZero() {
		return Ruling{Move: LockTake, Reason: loop.ReasonLockNone}
	}
	if o, full := lastOfFullGroup(asks, others); full {
		return Ruling{Move: LockWait, Reason: loop.ReasonLockGroup, By: o, Why: loop.Deferral{
			Loop: o.Loop, Run: o.Run, N: o.N, Rule: loop.ReasonLockGroup, Scope: "group " + asks.Lock.Group, Until: o.Until(),
		}}
	}
	best := Ruling{Move: LockTake, Reason: loop.ReasonLockFree}
	for _, o := range inOrder(others) {
		if o.LoopID == asks.LoopID {
			continue
		}
		shared, excludes := Shared(asks.Lock, o.Lock)
		if !excludes {
			continue
		}
		move, why := ruleOn(asks, o, foreground)
		// One that it defers to has the last word: it is not to wait for others until then.
		if move == LockTake || best.Move == LockDefer || best.Move == LockWait && move == LockWait {
			continue
		}
		best = Ruling{Move: move, Reason: why, By: o, Why: loop.Deferral{
			Loop: o.Loop, Run: o.Run, N: o.N, Rule: why, Scope: shared, Until: o.Until(),
		}}
	}
	return best
}

// lastOfFullGroup returns a live run of the group of the one that asks if as many of them are
// live as may be at once.
func lastOfFullGroup(asks loop.Contender, others []loop.Contender) (last loop.Contender, full bool) {
	live := 0
	for _, o := range others {
		if o.Live && o.LoopID != asks.LoopID && asks.Lock.Group != "" && o.Lock.Group == asks.Lock.Group {
			live, last = live+1, o
		}
	}
	return last, asks.Lock.Most > 0 && live >= asks.Lock.Most
}

// ruleOn says what one run means for another one that asks and touches the same.
func ruleOn(asks, o loop.Contender, foreground bool) (LockMove, loop.Reason) {
	switch {
	case o.Live && (foreground || asks.Lock.Insists || overdue(asks) || o.Lock.Priority < asks.Lock.Priority):
		return LockWait, loop.ReasonLockHeld
	case o.Live:
		return LockDefer, loop.ReasonLockHigher
	case foreground && !overdue(o), !foreground && queueOrder(asks, o) <= 0:
		return LockTake, loop.ReasonLockFree
	}
	why := loop.ReasonLockDue
	if overdue(o) {
		why = loop.ReasonLockOverdue
	}
	if foreground || asks.Lock.Insists || overdue(asks) {
		return LockWait, why
	}
	return LockDefer, why
}

// insistsFor is how long a run that never defers waits before it is overdue.
const insistsFor = time.Hour

// overdue reports whether a run goes before all that are not.
func overdue(c loop.Contender) bool {
	return c.Deferrals >= c.Lock.Bound || c.Lock.Insists && c.Age >= insistsFor
}

// queueOrder is negative if a goes before b.
func queueOrder(a, b loop.Contender) int {
	switch overA, overB := overdue(a), overdue(b); {
	case overA && overB:
		return cmp.Compare(a.Seq, b.Seq)
	case overA:
		return -1
	case overB:
		return 1
	}
	return cmp.Or(cmp.Compare(b.Lock.Priority, a.Lock.Priority), cmp.Compare(a.Seq, b.Seq))
}

// Ahead says which queued runs Arbitrate has to know of; the others change nothing.
func Ahead(asks loop.Contender, foreground bool) loop.Ahead {
	if foreground {
		return loop.Ahead{Before: math.MinInt64, Above: math.MaxInt32, Age: insistsFor}
	}
	return loop.Ahead{Before: asks.Seq, Above: asks.Lock.Priority, Age: insistsFor}
}

// inOrder sorts runs: those that are live, and then the queue.
func inOrder(list []loop.Contender) []loop.Contender {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b loop.Contender) int {
		switch {
		case a.Live && !b.Live:
			return -1
		case b.Live && !a.Live:
			return 1
		}
		return queueOrder(a, b)
	})
	return list
}

// Shared says in words what two locks exclude each other for. It reports false if they
// do not: runs of one group never do.
func Shared(a, b loop.Lock) (what string, excludes bool) {
	if a.Group != "" && a.Group == b.Group {
		return "", false
	}
	if a.Branch != "" && a.Branch == b.Branch {
		return "branch " + a.Branch, true
	}
	mine, other, overlap := policy.Overlap(a.Scope, b.Scope)
	switch {
	case !overlap:
		return "", false
	case mine == other:
		return mine, true
	}
	return fmt.Sprintf("what is in %s and %s", mine, other), true
}

// LockOf returns the lock of a run that works on a loop with that definition. What
// may change nothing has none.
func LockOf(d loop.Definition) loop.Lock {
	l := loop.Lock{
		Group: d.Group, Priority: LockPriority(d), Bound: cmp.Or(d.DeferBound, loop.DefaultDeferBound), Wall: d.MaxWallClock,
	}
	if d.Tasks != nil {
		l.Most = d.Tasks.MaxAgents
	}
	if d.Tier == loop.TierReport {
		return l
	}
	l.Scope = d.Scope
	if len(l.Scope) > 0 && slices.Contains(d.Autoland, string(policy.ClassLockfilePatch)) {
		l.Branch = d.Base
	}
	return l
}

// LandingLock returns the lock of a run that only moves a branch.
func LandingLock(branch string, d loop.Definition) loop.Lock {
	return loop.Lock{Branch: branch, Priority: LockPriority(d), Bound: cmp.Or(d.DeferBound, loop.DefaultDeferBound), Wall: d.MaxWallClock, Insists: true}
}

// LockPriority is the definition's priority, or its pattern's.
func LockPriority(d loop.Definition) int {
	if d.Priority != 0 {
		return d.Priority
	}
	p, known := pattern.Find(d.Pattern)
	if !known {
		p, _ = pattern.Find(pattern.Custom)
	}
	return p.Priority
}
