package plan

import (
	"fmt"

	"github.com/pawl-run/pawl/internal/loop"
)

// Attempt is the result of one iteration.
type Attempt struct {
	Verdict loop.Verdict
	Reason  loop.Reason // why the verdict is what it is
	Gate    string      // what failed: a gate's name, or AgentGate; empty on a pass
	Tree    string      // hash of the candidate tree
	Words   string      // what a later attempt should know
}

// AgentGate stands for a gate where the agent itself failed: it ended badly, or said
// so. Such attempts do not count towards giving up, because no gate failed.
const AgentGate = "agent"

// Settlement says how the step and the run continue after an attempt.
type Settlement struct {
	Step    loop.Step
	Again   bool         // the same run may try the step once more
	Outcome loop.Outcome // of the run, if it ends here; empty after a pass, where the tier decides
	Reason  loop.Reason
	Detail  string
	Halt    bool // the loop is paused until a human resumes it
}

// Settle applies the give-up rule and the policies to a step after an attempt.
// A streak goes on in the next run: three runs that fail alike are as hopeless as
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
	case a.Reason.IsExternal(): // The step did not cause it, and stays as it was.
		s.Step.State, s.Outcome = loop.StepOpen, loop.OutcomeBlocked
		s.Step.Attempts--
		if s.Reason == loop.ReasonBudget {
			s.Outcome = loop.OutcomeBudget
		}
	case a.Reason == loop.ReasonAgentQuiet:
		s.Step.State, s.Step.Feedback, s.Outcome = loop.StepOpen, "", loop.OutcomeQuiet
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
	default:
		s.settleFailure(a, run, r)
	}
	return s
}

// settleFailure counts the streak of one gate on one tree, and gives up when it is
// too long.
func (s *Settlement) settleFailure(a Attempt, run int64, r Rules) {
	if a.Gate != AgentGate {
		if s.Step.StreakGate != a.Gate || s.Step.StreakTree != a.Tree {
			s.Step.Streak = 0
		}
		s.Step.StreakGate, s.Step.StreakTree = a.Gate, a.Tree
		s.Step.Streak++
	}
	s.Step.State, s.Step.BlockedAt, s.Outcome = loop.StepFailed, run, loop.OutcomeFailed
	s.Halt = r.OnFailure == "halt"
	if a.Gate != AgentGate && s.Step.Streak >= r.GiveUpAfter {
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
