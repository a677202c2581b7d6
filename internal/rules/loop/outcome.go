package loop

// Outcome is how a run ended.
type Outcome string

// The outcomes of a run.
const (
	OutcomeQuiet       Outcome = "quiet"    // nothing to do
	OutcomeReported    Outcome = "reported" // looked and wrote it down
	OutcomeProposed    Outcome = "proposed" // a branch for people to judge
	OutcomeLanded      Outcome = "landed"   //
	OutcomeDone        Outcome = "done"     // protocol work finished, nothing to land
	OutcomeWaiting     Outcome = "waiting_human"
	OutcomeEscalated   Outcome = "escalated"
	OutcomeBlocked     Outcome = "blocked"
	OutcomeFailed      Outcome = "failed"
	OutcomeGaveUp      Outcome = "gave_up"
	OutcomeBudget      Outcome = "budget"
	OutcomeRefused     Outcome = "refused"
	OutcomePaused      Outcome = "paused"
	OutcomeInterrupted Outcome = "interrupted"
)

// Exit statuses of the command line. One table for all commands; a number
// never changes its meaning.
const (
	ExitOK          = 0
	ExitError       = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitUnreadable  = 4
	ExitMissing     = 5 // dependency missing, target exists, platform unsupported
	ExitNotReady    = 10
	ExitNoSuccess   = 11
	ExitBudget      = 12
	ExitWaiting     = 13
	ExitRefused     = 14
	ExitPaused      = 15
	ExitHeld        = 16 // held by another, or daemon unavailable
	ExitInterrupted = 130
)

// Meaning is what an outcome means to scripts and in the run log.
type Meaning struct {
	Outcome Outcome
	Exit    int
	Action  string // run-log field action; empty: no line is written
	Log     string // run-log field outcome
}

// Meanings is the table of outcomes.
var Meanings = []Meaning{
	{OutcomeQuiet, ExitOK, "none", "quiet"},
	{OutcomeReported, ExitOK, "reported", "reported"},
	{OutcomeProposed, ExitOK, "proposed", "branch-proposed"},
	{OutcomeLanded, ExitOK, "landed", "landed"},
	{OutcomeDone, ExitOK, "none", "done"},
	{OutcomeWaiting, ExitWaiting, "reported", "waiting"},
	{OutcomeEscalated, ExitWaiting, "reported", "escalated"},
	{OutcomeBlocked, ExitNoSuccess, "none", "blocked"},
	{OutcomeFailed, ExitNoSuccess, "none", "failed"},
	{OutcomeGaveUp, ExitNoSuccess, "none", "gave_up"},
	{OutcomeBudget, ExitBudget, "none", "budget"},
	{OutcomeRefused, ExitRefused, "none", "refused"},
	{OutcomePaused, ExitPaused, "", ""},
	{OutcomeInterrupted, ExitNoSuccess, "none", "interrupted"},
}

// Meaning returns the row of o in Meanings. An unknown outcome is a failure.
func (o Outcome) Meaning() Meaning {
	for _, m := range Meanings {
		if m.Outcome == o {
			return m
		}
	}
	return Meaning{Outcome: o, Exit: ExitNoSuccess, Action: "none", Log: string(o)}
}

// exitOfReason has the reasons for which a run that failed has another exit status than its
// outcome: it could not begin.
var exitOfReason = map[Reason]int{
	ReasonLinkMissing: ExitNotFound,

	ReasonLinkMalformed: ExitUnreadable, ReasonLinkNoBoot: ExitUnreadable, ReasonLinkNoVersion: ExitUnreadable, ReasonLinkOlder: ExitUnreadable,
	ReasonBootMalformed: ExitUnreadable, ReasonBootSchema: ExitUnreadable, ReasonStateManual: ExitUnreadable, ReasonStateOlder: ExitUnreadable,
	ReasonTodoOlder: ExitUnreadable, ReasonTodoDuplicate: ExitUnreadable, ReasonTodoOrphan: ExitUnreadable, ReasonTodoCycle: ExitUnreadable,

	ReasonBootAway: ExitMissing, ReasonBootIncomplete: ExitMissing,

	ReasonVersionAhead: ExitNotReady, ReasonVersionMajor: ExitNotReady, ReasonVersionUnlisted: ExitNotReady,
}

// ExitStatus is the exit status of a run that ended so.
func ExitStatus(o Outcome, why Reason) int {
	if status, ok := exitOfReason[why]; ok && o == OutcomeFailed {
		return status
	}
	return o.Meaning().Exit
}

// IsSuccess reports whether o is one of the outcomes that exit with 0.
func (o Outcome) IsSuccess() bool { return o.Meaning().Exit == ExitOK }
