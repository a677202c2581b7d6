package tasks

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// mostEvidence bounds each output that a message about a case has, in bytes.
const mostEvidence = 1500

// escalate tells whoever has to know of the cycle's trouble: at most one for each threshold,
// and nobody twice of the same case.
func (s *session) escalate(sum engine.Summary, outcome string) {
	for _, it := range lastOfSteps(sum.Iterations) {
		key := s.keyOf(it)
		row, seen := s.left[key]
		if !seen {
			row = s.rows[key]
		}
		st, found := s.tasks.Step(key)
		if !found {
			continue
		}
		c := plan.Case{
			Step: stepName(key), Critical: st.Priority == taskfile.PriorityCritical, Times: row.Attempts, MaxRetries: s.me.MaxRetries,
			Evidence: plan.Evidence{RunID: runName(s.v.Loop.Name, sum.Run), Words: oneLine(it.Feedback), Outputs: outputsOf(it)},
		}
		var policy string
		switch {
		case st.Status == taskfile.StatusBlocked && row.State == loop.StepBlocked:
			c.Trouble, policy = plan.TroubleBlocked, s.v.Definition.OnBlocked
		case st.Status == taskfile.StatusFailed, st.Status == taskfile.StatusOpen && it.Verdict == loop.VerdictFail && outcome == outcomeFailed && row.Attempts > 0:
			c.Trouble, policy = plan.TroubleFailed, s.v.Definition.OnFailure
		default:
			continue
		}
		topic := fmt.Sprintf("%s@%d", key, row.Begun.UnixMilli()) // A step that a person opened again begins anew.
		if policy == "escalate" || policy == "escalate_and_skip" {
			s.tell(plan.Escalation{
				To: cmp.Or(s.me.Escalation, s.me.Chief, s.owner()), Reason: loop.ReasonEscalateRepeated, Evidence: c.Evidence,
				Detail: fmt.Sprintf("%s is %s, and the policy of %s is to tell you: %s", c.Step, c.Trouble, s.v.Loop.Name, c.Words),
			}, topic, st.Priority, sum)
		}
		c.Has = s.whoHas(topic)
		if e, somebody := plan.Escalate(c, s.chain()); somebody {
			s.tell(e, topic, st.Priority, sum)
		}
	}
	evidence := plan.Evidence{RunID: runName(s.v.Loop.Name, sum.Run), Words: oneLine(sum.Run.Detail)}
	if blocked, finished := s.countSteps(); outcome == outcomeBlocked && blocked {
		topic := fmt.Sprintf("all_blocked/%d", finished) // It is over when another step is finished.
		s.tellIf(plan.Case{Trouble: plan.TroubleAllBlocked, Has: s.whoHas(topic), Evidence: evidence}, topic, sum)
	}
	if isFailure(outcome) {
		topic := "failed_cycles/" + s.sinceWell()
		times := 1 + s.inARow(func(r loop.Run) bool { return isFailure(outcomeOf(r)) })
		s.tellIf(plan.Case{Trouble: plan.TroubleFailedCycles, Times: times, Has: s.whoHas(topic), Evidence: evidence}, topic, sum)
	}
	if outcome == outcomeIdle && s.me.Chief != s.v.Loop.Name {
		idle := 1 + s.inARow(func(r loop.Run) bool { return r.Outcome == loop.OutcomeQuiet && r.N > s.lastAlert() })
		s.tellIf(plan.Case{Trouble: plan.TroubleIdle, Times: idle, Evidence: evidence}, fmt.Sprintf("idle/%d", sum.Run.N), sum)
	}
}

func isFailure(outcome string) bool { return outcome == outcomeFailed || outcome == outcomeTimeout }

// runName is a run as people call it.
func runName(agent string, r loop.Run) string { return fmt.Sprintf("%s#%d", agent, r.N) }

// tellIf tells whoever has to know of a case that is not about one step.
func (s *session) tellIf(c plan.Case, topic string, sum engine.Summary) {
	if e, somebody := plan.Escalate(c, s.chain()); somebody {
		priority := taskfile.PriorityHigh
		if c.Trouble == plan.TroubleIdle {
			priority = taskfile.PriorityLow
		}
		s.tell(e, topic, priority, sum)
	}
}

// tell sends a case to somebody.
func (s *session) tell(e plan.Escalation, topic, priority string, sum engine.Summary) {
	if slices.Contains(s.whoHas(topic), e.To) || e.To == s.v.Loop.Name {
		return
	}
	text := fmt.Sprintf("%s\nRun: %s (%s)", e.Detail, e.RunID, loop.PawlCommand("trace", e.RunID))
	text = strings.Join(append([]string{text}, e.Outputs...), "\n")
	kind := "escalation"
	if e.Reason == loop.ReasonEscalateIdle {
		kind = kindAlert
	}
	s.send(loop.Delivery{
		To: e.To, Topic: topic, Key: fmt.Sprintf("escalation/%s/%s/%s", s.v.Loop.Name, topic, sum.Run.ID), Kind: kind, Priority: priority, Text: text,
	})
	s.remarks = append(s.remarks, "told "+e.To+": "+e.Reason.Sentence())
}

func (s *session) chain() plan.Chain {
	return plan.Chain{Agent: s.v.Loop.Name, ReportsTo: s.me.ReportsTo, Escalation: s.me.Escalation, Chief: s.me.Chief, Owner: s.owner()}
}

// whoHas are those who were told of a topic.
func (s *session) whoHas(topic string) (names []string) {
	for _, d := range s.sent {
		if d.Topic == topic {
			names = append(names, d.To)
		}
	}
	return names
}

// countSteps reports whether there are steps that are not finished and all of them are
// blocked, and how many are finished.
func (s *session) countSteps() (allBlocked bool, finished int) {
	blocked, other := 0, 0
	for st := range s.tasks.All() {
		switch {
		case st.Malformed:
		case st.Completed, st.Status == taskfile.StatusDone, st.Status == taskfile.StatusCancelled, st.Status == taskfile.StatusFailed:
			finished++
		case st.Status == taskfile.StatusBlocked:
			blocked++
		default:
			other++
		}
	}
	return blocked > 0 && other == 0, finished
}

// cycles are the earlier cycles that are known, newest first.
func (s *session) cycles() []loop.Run {
	return slices.DeleteFunc(slices.Clone(s.v.Recent), func(r loop.Run) bool { return !r.IsCycle() })
}

// inARow counts the newest earlier cycles that were so.
func (s *session) inARow(so func(loop.Run) bool) int {
	for i, r := range s.cycles() {
		if !so(r) {
			return i
		}
	}
	return len(s.cycles())
}

// sinceWell names the newest cycle that did not end badly: failures after another one are
// another case.
func (s *session) sinceWell() string {
	for _, r := range s.cycles() {
		if r.Outcome.IsSuccess() {
			return strconv.FormatInt(r.N, 10)
		}
	}
	for _, d := range s.sent { // It lasts for longer than is known: the case is that which was told.
		if n, is := strings.CutPrefix(d.Topic, "failed_cycles/"); is {
			return n
		}
	}
	return "0"
}

// lastAlert is the run that last told that it had nothing to do.
func (s *session) lastAlert() int64 {
	for _, d := range s.sent {
		if n, is := strings.CutPrefix(d.Topic, "idle/"); is {
			at, _ := strconv.ParseInt(n, 10, 64)
			return at
		}
	}
	return 0
}

// outputsOf are what the gates of an iteration said that did not pass.
func outputsOf(it loop.Iteration) (outputs []string) {
	for _, g := range it.Gates {
		if !g.Pass && g.Evidence != "" {
			text := g.Evidence
			if len(text) > mostEvidence {
				text = "[…] " + strings.ToValidUTF8(text[len(text)-mostEvidence:], "")
			}
			outputs = append(outputs, g.Name+":\n"+text)
		}
	}
	return outputs
}
