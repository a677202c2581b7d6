package boot

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// closeLost counts the sessions that have never ended, before anything is planned: Recovered
// makes that durable. That of this run is counted by its End, also if its process died.
func (s *session) closeLost() {
	memory, lost := s.contract.Schemas.CloseLost(s.memory, s.v.Run.ID, s.v.Now)
	for _, l := range lost {
		line := fmt.Sprintf("%s: not finished: the session %s never ended", l.Task, l.Run)
		if l.Blocked != "" {
			line = fmt.Sprintf("%s: blocked: %s", l.Task, l.Blocked)
		}
		s.lost = append(s.lost, line)
	}
	memory.Changelog = bootstate.AddToChangelog(memory.Changelog, s.v.Now, s.lost)
	s.memory, s.tried = memory, memory
	s.changed = s.changed || len(lost) > 0
}

// beginAttempt writes that this run has begun a task, before the agent acts: if nothing
// comes after it, whoever reads the files knows that the session never ended.
func (s *session) beginAttempt(task string) {
	list := s.tried.Attempts(task)
	if slices.ContainsFunc(list, func(a bootstate.Attempt) bool { return a.Run == s.v.Run.ID }) {
		return
	}
	s.contract.Schemas.SetAttempts(s.memory, task, append(list, s.attempt("")), s.v.Now)
}

func (s *session) attempt(why string) bootstate.Attempt {
	return bootstate.Attempt{Run: s.v.Run.ID, Began: s.v.Now, Why: why}
}

// settleAttempt writes what this run came to at a task that it has not finished. It returns
// why the task is blocked from now on; empty: it is not.
func (s *session) settleAttempt(sum engine.Summary, task string, it loop.Iteration) (blocked string) {
	before := slices.DeleteFunc(s.tried.Attempts(task), func(a bootstate.Attempt) bool { return a.Run == sum.Run.ID })
	if !failedAt(sum.Run, it) {
		s.contract.Schemas.SetAttempts(s.memory, task, before, sum.Now)
		return ""
	}
	return s.contract.Schemas.FailAttempt(s.memory, task, before, s.attempt(readiness.FirstLine(cmp.Or(it.Feedback, it.Reason.Sentence()))), sum.Now)
}

// notOfTheTask are reasons that say nothing of the task: what is around it did not let the
// session work, or somebody asked for its end.
var notOfTheTask = []loop.Reason{
	loop.ReasonAgentQuiet, loop.ReasonContinues, loop.ReasonApproval, loop.ReasonAgentMissing, loop.ReasonGateStart, loop.ReasonSetupFailed, loop.ReasonUnfilled,
	loop.ReasonSenseFailed, loop.ReasonGitConfig, loop.ReasonInternal, loop.ReasonStopped, loop.ReasonCanceled, loop.ReasonKillSwitch, loop.ReasonStoreAway,
}

// failedAt reports whether a run counts as one that failed at the task of its iteration.
func failedAt(r loop.Run, it loop.Iteration) bool {
	switch {
	case it.Verdict != loop.VerdictFail, r.Outcome == loop.OutcomePaused, r.Outcome == loop.OutcomeWaiting:
		return false
	case r.Outcome == loop.OutcomeInterrupted && slices.Contains(notOfTheTask, r.Reason):
		return false
	}
	return !it.Reason.IsExternal() && !slices.Contains(notOfTheTask, it.Reason)
}
