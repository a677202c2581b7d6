package plan

import (
	"fmt"

	"github.com/pawl-run/pawl/internal/loop"
)

// Attempt is what one iteration came to.
type Attempt struct {
	Verdict loop.Verdict
	Reason  loop.Reason // why the verdict is what it is
	Gate    string      // what failed: a gate's name, or Agent; empty on a pass
	Tree    string      // hash of the candidate tree
	Words   string      // what a later attempt should know
}

// Agent stands for a gate where the agent itself failed: it ended badly, or said
// so. Such attempts do not count towards giving up, because no gate failed.
const Agent = "agent"

// Settlement is what becomes of the step and of the run.
type Settlement struct {
	Step    loop.Step
	Again   bool         // the same run may try the step once more
	Outcome loop.Outcome // of the run, if it ends here; empty after a pass, where the tier decides
	Reason  loop.Reason
	Detail  string
	Halt    bool // the loop is paused until a human resumes it
}

// Settle applies the give-up rule and the policies to a step after an attempt.
// Streaks are kept across runs: three runs that fail alike are as hopeless as
// three iterations.
func Settle(step loop.Step, a Attempt, run int64, r Rules) Settlement {
	step.Attempts++
	step.Feedback = a.Words
	step.WaitsFor = ""
	if a.Verdict == loop.VerdictPass && a.Reason != loop.ReasonNoChange {
		step.Inputs = "" // It may be worked again whenever its protocol says so.
	}
	s := Settlement{Step: step, Reason: a.Reason, Detail: a.Words}
	switch {
	case a.Verdict == loop.VerdictPass:
		s.Step.State, s.Step.Streak, s.Step.StreakGate, s.Step.StreakTree, s.Step.Snapshot = loop.StepDone, 0, "", "", ""
		s.Step.Feedback = "" // Nothing that a later attempt should do differently.
	case a.Reason.IsExternal():
		s.outside()
	case a.Reason == loop.ReasonAgentQuiet:
		s.Step.State, s.Step.Feedback, s.Outcome = loop.StepOpen, "", loop.OutcomeQuiet
	case a.Reason == loop.ReasonAgentEscalated:
		s.Step.State, s.Outcome = loop.StepEscalated, loop.OutcomeEscalated
	case a.Reason == loop.ReasonAgentBlocked:
		s.blocked(run, r)
	default:
		s.failed(a, run, r)
	}
	return s
}

func (s *Settlement) blocked(run int64, r Rules) {
	s.Step.State, s.Step.BlockedAt, s.Outcome = loop.StepBlocked, run, loop.OutcomeBlocked
	switch r.OnBlocked {
	case "escalate":
		s.Outcome = loop.OutcomeEscalated
	case "halt":
		s.Halt = true
	}
}

// outside leaves the step as it was: what stopped it was none of its doing.
func (s *Settlement) outside() {
	s.Step.State, s.Outcome = loop.StepOpen, loop.OutcomeBlocked
	s.Step.Attempts--
	if s.Reason == loop.ReasonBudget {
		s.Outcome = loop.OutcomeBudget
	}
}

// count keeps the streak of one gate on one tree.
func (s *Settlement) count(a Attempt) {
	if a.Gate == Agent {
		return
	}
	if s.Step.StreakGate != a.Gate || s.Step.StreakTree != a.Tree {
		s.Step.Streak = 0
	}
	s.Step.StreakGate, s.Step.StreakTree = a.Gate, a.Tree
	s.Step.Streak++
}

func (s *Settlement) failed(a Attempt, run int64, r Rules) {
	s.count(a)
	s.Step.State, s.Step.BlockedAt, s.Outcome = loop.StepFailed, run, loop.OutcomeFailed
	s.Halt = r.OnFailure == "halt"
	if a.Gate != Agent && s.Step.Streak >= r.GiveUpAfter {
		s.Step.State, s.Outcome, s.Reason = loop.StepEscalated, loop.OutcomeGaveUp, loop.ReasonGiveUp
		s.Detail = fmt.Sprintf("%s failed %d times in a row on the same tree: %s", a.Gate, s.Step.Streak, a.Words)
		return
	}
	s.Again = true
	switch r.OnFailure {
	case "escalate_and_skip":
		s.Outcome = loop.OutcomeEscalated
	case "retry_once":
		if s.Step.Attempts == 1 {
			s.Step.State = loop.StepOpen
		}
	}
}
