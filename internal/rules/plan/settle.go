package plan

import (
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Attempt is the result of one iteration.
type Attempt struct {
	Verdict loop.Verdict
	Reason  loop.Reason // why the verdict is what it is
	Gate    string      // what decided: a gate's name, or AgentGate; empty on a pass
	Tree    string      // hash of the candidate tree
	Words   string      // what a later attempt should know
	Failed  []string    // gates that failed; empty: Gate alone
	Passed  []string    // gates that passed
	Tests   []string    // tests that failed, where they are named
	Found   []string    // findings of the report
	Tokens  int64       // that its turns used
	Began   time.Time
	Ended   time.Time
}

// AgentGate stands for a gate where the agent itself failed: it ended badly, or said
// so. Such attempts do not count towards giving up, because no gate failed.
const AgentGate = "agent"

// CommandsGate stands for the commands that the agent had the runtime run.
const CommandsGate = "commands"

// ChangesGate and ScopeGate stand for the gates before all others: something changed,
// and it may be changed. They have passed where the others are run.
const (
	ChangesGate = "changes"
	ScopeGate   = "scope"
)

// Settlement says how the step and the run continue after an attempt.
type Settlement struct {
	Step    loop.Step
	Again   bool         // the same run may try the step once more
	Outcome loop.Outcome // of the run, if it ends here; empty after a pass, where the tier decides
	Reason  loop.Reason
	Detail  string
	Halt    bool // the loop is paused until a human resumes it
	Report  bool // a person gets an account of what was tried
}

// Settle applies the give-up rule and the policies to a step after an attempt.
// A streak goes on in the next run: three runs that fail alike are as hopeless as
// three iterations.
func Settle(step loop.Step, a Attempt, run int64, r Rules) Settlement {
	step.Attempts++
	step.Tokens += a.Tokens
	step.Feedback = a.Words
	step.WaitsFor = ""
	if a.Verdict == loop.VerdictPass && a.Reason != loop.ReasonNoChange {
		step.Inputs = "" // It may be worked again whenever its protocol says so.
	}
	if !a.Reason.IsExternal() {
		step.Tried = remember(step.Tried, a, r.GiveUp)
	}
	s := Settlement{Step: step, Reason: a.Reason, Detail: a.Words}
	switch gaveUp := metRule(step.Tried, a, r.GiveUp); {
	case gaveUp != nil && a.Verdict != loop.VerdictFail: // It found nothing new: a person need not look at it again.
		s.giveUp(*gaveUp)
	case a.Verdict == loop.VerdictPending, a.Verdict == loop.VerdictPass && r.HumanGate.Waits():
		s.Step.State, s.Step.Snapshot, s.Step.Feedback, s.Outcome = loop.StepWaiting, "", "", loop.OutcomeWaiting
	case a.Verdict == loop.VerdictPass:
		s.Step.State, s.Step.Snapshot = loop.StepDone, ""
		s.Step.Feedback = "" // Nothing that a later attempt should do differently.
	case a.Reason.IsExternal(): // The step did not cause it, and stays as it was.
		s.Step.State, s.Outcome = loop.StepOpen, loop.OutcomeBlocked
		s.Step.Attempts--
		if s.Reason == loop.ReasonBudget {
			s.Outcome = loop.OutcomeBudget
		}
	case a.Reason == loop.ReasonAgentQuiet:
		s.Step.State, s.Step.Feedback, s.Outcome = loop.StepOpen, "", loop.OutcomeQuiet
		s.Step.Begun = a.beforeIt(step.Begun)
	case a.Reason == loop.ReasonAgentEscalated:
		s.Step.State, s.Outcome = loop.StepEscalated, loop.OutcomeEscalated
	case a.Reason == loop.ReasonAgentBlocked:
		s.Step.State, s.Step.BlockedAt, s.Outcome = loop.StepBlocked, run, loop.OutcomeBlocked
		switch r.OnBlocked {
		case "escalate":
			s.Outcome = loop.OutcomeEscalated
		case "halt":
			s.Halt = true
		}
	case r.OnError != "" && a.isError() && r.Life.UsedUp(s.Step, a.Ended) == "":
		s.settleError(run, r.OnError)
	default:
		s.settleFailure(a, run, r)
	}
	return s
}

// beforeIt is when a step begun that took no time by this attempt; the zero time: it has not
// begun.
func (a Attempt) beforeIt(begun time.Time) time.Time {
	if begun.IsZero() || !begun.Before(a.Began) {
		return time.Time{}
	}
	return begun.Add(max(0, a.Ended.Sub(a.Began)))
}

// isError reports whether an attempt failed for a reason other than the work: the agent's
// program ended badly, and no gate was asked.
func (a Attempt) isError() bool {
	return a.Gate == AgentGate && a.Reason != loop.ReasonLifeBudget && a.Reason != loop.ReasonAgentFailed && a.Reason != loop.ReasonReportMalformed && a.Reason != loop.ReasonContinues
}

// settleError settles a step whose last retry has failed.
func (s *Settlement) settleError(run int64, then loop.ErrorEnd) {
	switch then {
	case loop.HandOver:
		s.Step.State, s.Outcome = loop.StepEscalated, loop.OutcomeEscalated
	case loop.GiveUpAtOnce:
		s.Step.State, s.Step.Tried.GaveUp, s.Outcome = loop.StepEscalated, s.Reason, loop.OutcomeGaveUp
	case loop.PauseAndLog:
		s.Step.State, s.Step.BlockedAt, s.Outcome, s.Halt = loop.StepFailed, run, loop.OutcomeFailed, true
	}
}

// EndLife gives up a step the budget of whose life is used up, between two attempts.
func EndLife(step loop.Step, used string) Settlement {
	s := Settlement{Step: step}
	s.Step.Feedback = used
	s.endLife(used)
	return s
}

func (s *Settlement) endLife(why string) {
	s.Outcome, s.Reason, s.Detail, s.Halt, s.Report = loop.OutcomeGaveUp, loop.ReasonLifeBudget, why, false, true
	s.Step.State, s.Step.WaitsFor, s.Step.Tried.GaveUp = loop.StepEscalated, "", s.Reason
}

// settleFailure gives up if a rule is met, and says else how the step is tried again.
func (s *Settlement) settleFailure(a Attempt, run int64, r Rules) {
	s.Step.State, s.Step.BlockedAt, s.Outcome = loop.StepFailed, run, loop.OutcomeFailed
	s.Halt = r.OnFailure == "halt"
	if gaveUp := metRule(s.Step.Tried, a, r.GiveUp); gaveUp != nil {
		s.giveUp(*gaveUp)
		return
	}
	used := r.Life.UsedUp(s.Step, a.Ended)
	if a.Reason == loop.ReasonLifeBudget && used == "" {
		used = "what is left of its tokens is not enough for another call"
	}
	if used != "" {
		s.endLife(used + "; " + a.Words)
		return
	}
	s.Again = true
	if a.Reason == loop.ReasonContinues { // Nothing has failed: it is not done yet.
		s.Step.State, s.Detail, s.Halt = loop.StepOpen, "", false
		return
	}
	switch r.OnFailure {
	case "escalate_and_skip":
		s.Outcome = loop.OutcomeEscalated
	case "retry_once":
		if s.Step.Attempts == 1 {
			s.Step.State = loop.StepOpen
		}
	}
}
