package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Chain is whom an agent may turn to. Empty ones are not there.
type Chain struct {
	Agent      string
	ReportsTo  string
	Escalation string // empty: the chief
	Chief      string
	Owner      string // the person who has the last word; empty: "owner"
}

// Trouble is what may have to be told to somebody.
type Trouble string

// The kinds of trouble.
const (
	TroubleBlocked      Trouble = "blocked"       // a step is
	TroubleFailed       Trouble = "failed"        // a step has
	TroubleAllBlocked   Trouble = "all_blocked"   // all steps of the agent are
	TroubleFailedCycles Trouble = "failed_cycles" // in a row
	TroubleIdle         Trouble = "idle"          // cycles in a row
	TroubleInbox        Trouble = "inbox"         // entries wait
)

// Case is trouble as it is now. It is over, and whoever has it forgotten, when the step
// is done, when a cycle does not fail, or when fewer entries wait.
type Case struct {
	Trouble    Trouble
	Step       string // its key, if it is about one
	Critical   bool   // the step is
	Times      int    // blocked or failed in a row, with this time; cycles in a row; entries that wait
	MaxRetries int    // after which a step is told; 0: 3
	Has        []string
	Evidence
}

// Evidence is what a recipient sees of a case.
type Evidence struct {
	RunID   string
	Words   string   // what was said the last time
	Outputs []string // the last ones
}

// Escalation is one message about a case.
type Escalation struct {
	To     string
	Reason loop.Reason
	Detail string // the case in words
	Reset  bool   // the count of the case begins again
	Evidence
}

// The thresholds of an agent in trouble.
const (
	defaultMaxRetries = 3
	idleCycles        = 5
	failedCycles      = 3
	waitingEntries    = 10
)

// Escalate says who is told about a case now. There is at most one for each threshold:
// whoever has the case already is skipped, and so is the agent itself, and the next one
// of the chain is told instead. It reports false if nobody is.
func Escalate(c Case, chain Chain) (Escalation, bool) {
	owner := cmp.Or(chain.Owner, "owner")
	beyond := cmp.Or(chain.Escalation, chain.Chief)
	e := Escalation{Evidence: c.Evidence}
	var rungs []string // the first one that does not have it is told
	switch c.Trouble {
	case TroubleBlocked, TroubleFailed:
		rungs, e.Reason = stepRungs(c, chain, beyond, owner)
		e.Detail = fmt.Sprintf("%s was %s %d times in a row", c.Step, c.Trouble, c.Times)
		if c.Trouble == TroubleFailed {
			e.Detail = fmt.Sprintf("%s failed %d times in a row", c.Step, c.Times)
		}
		if e.Reason == loop.ReasonEscalateCritical {
			e.Detail = fmt.Sprintf("%s is critical, and %s", c.Step, map[Trouble]string{TroubleBlocked: "it is blocked", TroubleFailed: "it failed"}[c.Trouble])
		}
	case TroubleAllBlocked:
		rungs, e.Reason, e.Detail = []string{owner}, loop.ReasonEscalateBlocked, "all steps are blocked"
	case TroubleFailedCycles:
		if c.Times >= failedCycles {
			rungs, e.Reason, e.Detail = []string{owner}, loop.ReasonEscalateCycles, fmt.Sprintf("%d cycles in a row failed", c.Times)
		}
	case TroubleIdle:
		if c.Times >= idleCycles {
			c.Has = nil // Each row of idle cycles is told by itself.
			rungs, e.Reason, e.Detail, e.Reset = []string{chain.Chief, owner}, loop.ReasonEscalateIdle, fmt.Sprintf("%d cycles in a row had nothing to do", c.Times), true
		}
	case TroubleInbox:
		if c.Times >= waitingEntries && len(c.Has) == 0 {
			rungs, e.Reason, e.Detail = []string{chain.ReportsTo, beyond, owner}, loop.ReasonEscalateInbox, fmt.Sprintf("%d entries wait in the inbox", c.Times)
		}
	}
	if slices.Contains(c.Has, owner) {
		return Escalation{}, false // There is nobody above.
	}
	for _, to := range rungs {
		if to != "" && to != chain.Agent && !slices.Contains(c.Has, to) {
			e.To = to
			if c.Words != "" {
				e.Detail += ": " + c.Words
			}
			return e, true
		}
	}
	return Escalation{}, false
}

// stepRungs are those who may be told about a step, from the threshold that it has
// reached upwards; none if it has reached no new one.
func stepRungs(c Case, chain Chain, beyond, owner string) ([]string, loop.Reason) {
	most := c.MaxRetries
	if most <= 0 {
		most = defaultMaxRetries
	}
	switch {
	case c.Critical && c.Trouble == TroubleFailed:
		return []string{owner}, loop.ReasonEscalateCritical
	case c.Times >= most+2:
		return []string{owner}, loop.ReasonEscalateRepeated
	case c.Times == most+1:
		return []string{beyond, owner}, loop.ReasonEscalateRepeated
	case c.Critical && len(c.Has) == 0:
		return []string{chain.Chief, beyond, owner}, loop.ReasonEscalateCritical
	case !c.Critical && c.Times == most:
		return []string{chain.ReportsTo, beyond, owner}, loop.ReasonEscalateRepeated
	}
	return nil, ""
}
