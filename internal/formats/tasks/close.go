package tasks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// The words for what a cycle came to, as HEARTBEAT.md has them.
const (
	outcomeCompleted = "completed"
	outcomeBlocked   = "blocked"
	outcomeFailed    = "failed"
	outcomeTimeout   = "timeout"
	outcomeIdle      = "idle"
)

// Close implements engine.Session: the step gets its result, what went wrong becomes a
// pitfall, whoever has to know is told, and the heartbeat gets its row, whatever the outcome.
func (s *session) Close(sum engine.Summary) []loop.Change {
	row := taskfile.Row{At: sum.Run.Started, Step: "-", Outcome: outcomeOf(sum.Run), Duration: durationOf(sum), Tokens: sum.Run.Usage.ChargedTokens(), Notes: notesOf(sum)}
	for _, it := range lastOfSteps(sum.Iterations) {
		key := s.keyOf(it)
		if key == "" {
			continue
		}
		row.Step = stepName(key)
		row.Notes = s.settleStep(key, it, sum)
	}
	if s.printed != nil {
		s.context.AddErrorLine(sum.Now, s.printed.Error())
		row.Step, row.Outcome, row.Notes = "parse-error", outcomeFailed, strings.Join(strings.Fields(s.printed.Error()), " ")
	}
	s.escalate(sum, row.Outcome)
	s.tellFinished(sum)
	changes := append(s.changed, s.outgoing...)
	s.changed, s.outgoing = nil, nil
	for _, name := range []string{taskfile.InboxFile, taskfile.TasksFile, taskfile.ContextFile} {
		change, left := s.unite(name, s.texts()[name])
		changes = append(changes, change...)
		s.remarks = append(s.remarks, left...)
	}
	if len(sum.Iterations) == 0 && !sum.Run.IsCycle() {
		return changes // It carried out an answer.
	}
	if !s.me.CycleLog || !slices.Contains(s.me.Writes, taskfile.HeartbeatFile) {
		return changes
	}
	row.Notes = strings.Join(slices.Insert(s.remarks, 0, slices.DeleteFunc([]string{row.Notes}, func(n string) bool { return n == "" })...), "; ")
	s.beat(row, sum)
	change, _ := s.unite(taskfile.HeartbeatFile, s.heartbeat.String())
	return append(changes, change...)
}

// unite is the change of a file to a text, united with what a person has written since it was
// read, and what the person has kept from being changed.
func (s *session) unite(name, text string) (changes []loop.Change, left []string) {
	before := s.before[name]
	if now, err := s.v.Files.Read(s.filePath(name)); err == nil && now.Exists && !now.TooBig && now.Content != before {
		text, left = mergers[name](before, text, now.Content)
		before = now.Content
	}
	if text == before {
		return nil, left
	}
	s.before[name] = text
	return []loop.Change{s.edit(name, before, text)}, left
}

// lastOfSteps are the last iterations of each step.
func lastOfSteps(its []loop.Iteration) (last []loop.Iteration) {
	for _, it := range its {
		last = slices.DeleteFunc(last, func(o loop.Iteration) bool { return o.StepID == it.StepID })
		last = append(last, it)
	}
	return last
}

// keyOf is the key of an iteration's step; empty: the file has no such step.
func (s *session) keyOf(it loop.Iteration) string {
	if key, known := s.ids[it.StepID]; known {
		return key
	}
	for st := range s.tasks.All() {
		if engine.StepID(s.v.Loop.ID, st.Key) == it.StepID {
			return st.Key
		}
	}
	return ""
}

// settleStep writes what a step came to, and returns it in a line. A session that did not see
// the run uses the row.
func (s *session) settleStep(key string, it loop.Iteration, sum engine.Summary) string {
	row, seen := s.left[key]
	if !seen {
		row = s.rows[key]
	}
	st, there := s.tasks.Step(key)
	if !there {
		return fmt.Sprintf("%s is not in %s any more", stepName(key), taskfile.TasksFile)
	}
	name := strings.ToLower(stepName(key))
	why := oneLine(cmp.Or(it.Feedback, it.Reason.Sentence()))
	said := reportOf(it)
	for _, p := range said.Pitfalls {
		cause, advice, _ := strings.Cut(oneLine(p), ";")
		s.context.AddPitfall(taskfile.Pitfall{Date: sum.Now, Step: key, Cause: strings.TrimSpace(cause), Advice: strings.TrimSpace(advice)})
	}
	var f taskfile.StepFields
	var text string
	fail := func(status, text string) {
		f.Status = new(status)
		if status == taskfile.StatusBlocked {
			f.BlockedReason = new(why)
		} else {
			f.Result = new("failed: " + why)
		}
		f.Retries = new(st.Retries + 1)
		s.context.AddPitfall(taskfile.Pitfall{Date: sum.Now, Step: key, Cause: text + why, Advice: adviceFor(status, sum.Run, s.v.Loop.Name)})
	}
	switch passed := it.Verdict == loop.VerdictPass || it.Verdict == loop.VerdictPending; {
	case passed && row.State == loop.StepWaiting:
		f.Status, f.BlockedReason = new(taskfile.StatusBlocked), new("waits for an answer: "+cmp.Or(sum.Run.Approval, row.WaitsFor))
		text = name + " waits for a person"
	case passed && !isKept(sum):
		f.Status, f.Result = new(taskfile.StatusOpen), new("passed, and could not be kept: "+oneLine(sum.Run.Detail))
		text = name + " is open again: " + oneLine(sum.Run.Detail)
	case passed:
		f.Status, f.Result = new(taskfile.StatusDone), new(resultText(it, said.Summary, sum))
		text = name + " done: " + *f.Result
	case it.Reason == loop.ReasonAgentEscalated:
		f.Status, f.Result = new(taskfile.StatusCancelled), new("handed over to "+s.superior()+": "+why)
		text = name + " handed over to " + s.superior() + ": " + why
	case row.State == loop.StepWaiting || row.State == loop.StepEscalated && row.WaitsFor != "":
		f.Status, f.BlockedReason = new(taskfile.StatusBlocked), new("waits for an answer: "+cmp.Or(sum.Run.Approval, row.WaitsFor))
		text = name + " blocked: waits for a person"
	case row.State == loop.StepBlocked:
		fail(taskfile.StatusBlocked, "blocked: ")
		text = name + " blocked: " + why
	case row.State == loop.StepFailed, row.State == loop.StepEscalated, row.State == loop.StepDone:
		fail(taskfile.StatusFailed, "failed: ")
		text = name + " failed: " + why
	default: // Once more, or another time: nothing of it is its own fault, or it may be tried once again.
		f.Status = new(taskfile.StatusOpen)
		text = name + " open: " + why
		if it.Verdict == loop.VerdictFail && !it.Reason.IsExternal() && it.Reason != loop.ReasonAgentQuiet && it.Reason != loop.ReasonContinues && row.Attempts > 0 && sum.Run.Outcome == loop.OutcomeFailed {
			fail(taskfile.StatusOpen, "failed: ")
			text = name + " failed, and is tried once more: " + why
		}
	}
	s.tasks.Set(key, f)
	return text
}

// isKept reports whether no effect of the run failed that its result depends on.
func isKept(sum engine.Summary) bool {
	return !slices.ContainsFunc(sum.Effects, func(e loop.Effect) bool { return e.Kind == effect.KindPropose && e.State != loop.EffectDone })
}

// resultText is what a step that is done came to.
func resultText(it loop.Iteration, summary string, sum engine.Summary) string {
	text := oneLine(cmp.Or(summary, it.Feedback, it.Reason.Sentence()))
	if e := proposedBy(sum.Effects, it); e.Kind != "" {
		text += " (on branch " + e.Args[effect.ArgBranch] + ")"
	}
	return text
}

// adviceFor is what to do about a failure where the agent did not say it.
func adviceFor(status string, run loop.Run, agent string) string {
	trace := loop.PawlCommand("trace", runName(agent, run)).String()
	if status == taskfile.StatusBlocked {
		return "get what it waits for before it is tried again (" + trace + ")"
	}
	return "do it differently; " + trace + " shows what happened"
}

// outcomeOf is what the cycle came to, in the word of the heartbeat.
func outcomeOf(r loop.Run) string {
	timedOut := r.Reason == loop.ReasonAgentTimeout || r.Reason == loop.ReasonWallClock
	switch r.Outcome {
	case loop.OutcomeProposed, loop.OutcomeLanded, loop.OutcomeDone, loop.OutcomeReported:
		return outcomeCompleted
	case loop.OutcomeQuiet:
		return outcomeIdle
	case loop.OutcomeBlocked, loop.OutcomeWaiting, loop.OutcomeEscalated:
		return outcomeBlocked
	case loop.OutcomeFailed, loop.OutcomeGaveUp, loop.OutcomeRefused, loop.OutcomeInterrupted, loop.OutcomePaused, loop.OutcomeBudget:
	}
	switch {
	case timedOut:
		return outcomeTimeout
	case r.Reason == loop.ReasonContinues: // It goes on in its next cycle.
		return outcomeBlocked
	}
	return outcomeFailed
}

// notesOf is what is said of a cycle that worked on no step.
func notesOf(sum engine.Summary) string {
	if len(sum.Iterations) > 0 {
		return ""
	}
	return oneLine(sum.Run.Reason.Explain(sum.Run.Detail))
}

func durationOf(sum engine.Summary) time.Duration {
	if d := sum.Run.Spent.Total; d > 0 {
		return d
	}
	return max(0, sum.Now.Sub(sum.Run.Started))
}

// beat adds the row of the cycle, and counts it in the status of the day and the trends of
// the week.
func (s *session) beat(row taskfile.Row, sum engine.Summary) {
	s.heartbeat.AddRow(row)
	status := taskfile.Status{State: "active", LastCycle: row.At}
	day := row.At.UTC().Truncate(24 * time.Hour)
	rows := s.heartbeat.Rows()
	for _, r := range rows {
		if r.At.Before(day) {
			continue
		}
		status.CyclesToday++
		switch r.Outcome {
		case outcomeCompleted:
			status.Completed++
		case outcomeBlocked:
			status.Blocked++
		case outcomeFailed, outcomeTimeout:
			status.Failed++
		}
	}
	switch {
	case s.halted:
		status.State = "halted until a person resumes it: " + loop.PawlCommand("resume", s.v.Loop.Name).String()
	case row.Outcome == outcomeIdle:
		status.State = "idle"
	case row.Outcome != outcomeCompleted:
		status.State = row.Outcome
	}
	if len(rows) > 0 {
		status.Uptime = sum.Now.Sub(rows[0].At).Round(time.Minute).String()
	}
	s.heartbeat.SetStatus(status)
	week := taskfile.Week{}
	week.Year, week.Week = row.At.UTC().ISOWeek()
	for _, w := range s.heartbeat.Trends() {
		if w.Year == week.Year && w.Week == week.Week {
			week = w
		}
	}
	week.Runs++
	week.Tokens += row.Tokens
	switch row.Outcome {
	case outcomeCompleted:
		week.Completed++
	case outcomeBlocked:
		week.Blocked++
	case outcomeIdle:
		week.Idle++
	default:
		week.Failed++
	}
	s.heartbeat.SetTrends(week)
}

// tellFinished tells the superior when the last step is done.
func (s *session) tellFinished(sum engine.Summary) {
	if len(sum.Iterations) == 0 || !sum.Run.Outcome.IsSuccess() || s.superior() == s.owner() {
		return
	}
	for st := range s.tasks.All() {
		if !st.Malformed && !st.Completed && st.Status != taskfile.StatusDone && st.Status != taskfile.StatusCancelled {
			return
		}
	}
	s.send(loop.Delivery{
		To: s.superior(), Key: fmt.Sprintf("finished/%s", sum.Run.ID), Kind: "report", Priority: taskfile.PriorityLow,
		Text: s.v.Loop.Name + " has done all of its steps; the last one: " + cmp.Or(oneLine(sum.Run.Summary), sum.Iterations[len(sum.Iterations)-1].Step),
	})
}

// oneLine is a text without line breaks, bounded.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > taskfile.MaxValue {
		text = strings.ToValidUTF8(text[:taskfile.MaxValue], "") + "…"
	}
	return text
}
