package tasks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// mostCandidates bounds how many steps that are open, and how many that cannot be worked on,
// a decision is explained for.
const mostCandidates = 100

// workStep is a step that is not finished.
type workStep struct {
	taskfile.Step
	row  loop.Step
	drop string // why it cannot be worked on, whatever its state; empty: it can
}

// takeBack finds steps whose results will not land: one that a person rejected has failed,
// and one whose proposal can land no more, because it builds on such a one for example, is
// open again. A person who has written something else of such a step since has decided.
func (s *session) takeBack(ctx context.Context) error {
	refused, err := s.v.Results.Refused(ctx)
	if err != nil {
		return err
	}
	var ids []string
	for _, id := range refused {
		if row := s.rows[s.ids[id]]; row.State == loop.StepDone {
			ids = append(ids, id)
		}
	}
	found, err := s.v.Results.Of(ctx, ids...)
	if err != nil {
		return err
	}
	for _, id := range ids {
		res, row := found[id], s.rows[s.ids[id]]
		a := res.Approval
		f := taskfile.StepFields{}
		switch res.State {
		case engine.ResultRejected:
			f.Status, f.Result = new(taskfile.StatusFailed), new(fmt.Sprintf("%s was rejected by %s: %s", a.Action.Branch, a.By, orUnknown(a.Note)))
		case engine.ResultVoid:
			f.Status, f.Result = new(taskfile.StatusOpen), new(fmt.Sprintf("%s can land no more: %s", a.Action.Branch, orUnknown(a.Note)))
		case engine.ResultWaits, engine.ResultLanded, "":
			continue
		}
		st, there := s.tasks.Step(row.Key)
		if !there || st.Status == taskfile.StatusDone && !s.tasks.Set(row.Key, f) {
			continue
		}
		s.remarks = append(s.remarks, strings.ToLower(stepName(row.Key))+": "+*f.Result)
		fresh := row.AsNew()
		fresh.Feedback = *f.Result
		s.rows[row.Key] = fresh
		s.changed = append(s.changed, loop.Change{Kind: loop.ChangeStep, Step: &fresh})
	}
	return nil
}

// planSteps lists the steps that are not finished, and the one that a person has asked to be
// worked on again: by priority, and those of one priority in the order of the file. What people
// have set by hand counts.
func (s *session) planSteps() {
	all := s.tasks.Steps()
	states, cycles := map[string]string{}, map[string]string{}
	if slices.ContainsFunc(all, func(st taskfile.Step) bool { return len(st.DependsOn) > 0 }) {
		for _, st := range all {
			states[st.Key] = st.Status
		}
		cycles = findCycles(all)
	}
	work := make([]workStep, 0, len(all))
	for _, st := range all {
		finished := st.Status == taskfile.StatusDone || st.Status == taskfile.StatusCancelled || st.Completed
		asked := st.Key == s.v.Run.Overrides.Step // Its work begins from what it depends on, like any other's.
		if st.Malformed || finished && !asked {
			continue
		}
		w := workStep{Step: st, row: s.rowOf(st)}
		switch {
		case st.Status == taskfile.StatusFailed && !asked:
			w.drop = "it has failed; write Status: open to let it be tried again"
		case cycles[st.Key] != "":
			w.drop = "its dependencies form a circle: " + cycles[st.Key]
		default:
			w.drop = unmetDependency(st, states)
		}
		work = append(work, w)
	}
	for i := range work { // To move pointers costs less, where there are thousands.
		s.work = append(s.work, &work[i])
	}
	slices.SortStableFunc(s.work, func(a, b *workStep) int { return rank(a.Priority) - rank(b.Priority) })
}

// unmetDependency says why a step has to wait for another one; empty: it does not.
func unmetDependency(st taskfile.Step, states map[string]string) string {
	for _, key := range st.DependsOn {
		state, there := states[key]
		switch {
		case !there:
			return fmt.Sprintf("it depends on %s, which is not in %s (line %d)", stepName(key), taskfile.TasksFile, st.Line)
		case state != taskfile.StatusDone:
			return fmt.Sprintf("it depends on %s, which is %s", stepName(key), orUnknown(state))
		}
	}
	return ""
}

// rowOf is the row of a step, in the state that the file gives it: whatever the row is, what a
// person has written is a fact. Only a step that waits for an answer goes on waiting for it.
func (s *session) rowOf(st taskfile.Step) loop.Step {
	row, known := s.rows[st.Key]
	if !known {
		row = loop.Step{ID: engine.StepID(s.v.Loop.ID, st.Key), LoopID: s.v.Loop.ID, Key: st.Key, Kind: loop.StepWork, State: loop.StepOpen}
	}
	row.Title = st.Title
	if row.State == loop.StepWaiting || row.State == loop.StepEscalated && row.WaitsFor != "" {
		return row // That it is blocked is how the file says this.
	}
	switch st.Status {
	case taskfile.StatusBlocked:
		if row.State != loop.StepBlocked { // A person blocked it: it waits from now on.
			row = row.AsNew()
			row.State, row.BlockedAt, row.Feedback = loop.StepBlocked, s.v.Run.N, st.BlockedReason
			s.changed = append(s.changed, loop.Change{Kind: loop.ChangeStep, Step: &row})
		}
	case taskfile.StatusOpen, taskfile.StatusInProgress:
		switch row.State {
		case loop.StepDone, loop.StepFailed, loop.StepDropped, loop.StepBlocked, loop.StepEscalated:
			row = row.AsNew() // A person wants it tried again.
		case loop.StepOpen, loop.StepClaimed, loop.StepWaiting:
		}
	}
	return row
}

// findCycles finds steps that depend on each other in a circle, each with the path.
func findCycles(steps []taskfile.Step) map[string]string {
	deps := map[string][]string{}
	for _, st := range steps {
		if len(st.DependsOn) > 0 {
			deps[st.Key] = st.DependsOn
		}
	}
	w := walk{deps: deps, known: map[string]bool{}, at: map[string]int{}, found: map[string]string{}}
	for _, st := range steps {
		w.visit(st.Key)
	}
	return w.found
}

// walk goes through steps by what they depend on.
type walk struct {
	deps  map[string][]string
	known map[string]bool // steps from which all were visited
	path  []string        // from the first step to the one that is visited
	at    map[string]int  // places on the path
	found map[string]string
}

func (w *walk) visit(key string) {
	if w.known[key] {
		return
	}
	if from, again := w.at[key]; again {
		circle := append(slices.Clone(w.path[from:]), key)
		names := make([]string, len(circle))
		for i, k := range circle {
			names[i] = stepName(k)
		}
		for _, k := range circle {
			w.found[k] = strings.Join(names, " → ")
		}
		return
	}
	w.at[key] = len(w.path)
	w.path = append(w.path, key)
	for _, next := range w.deps[key] {
		w.visit(next)
	}
	w.path = w.path[:len(w.path)-1]
	delete(w.at, key)
	w.known[key] = true
}

// readResults finds out what became of the results on which steps depend.
func (s *session) readResults(ctx context.Context) error {
	keys := map[string]string{} // by id
	for _, w := range s.work {
		for _, key := range w.DependsOn {
			if row, known := s.rows[key]; known && w.drop == "" {
				keys[row.ID] = key
			}
		}
	}
	ids := make([]string, 0, len(keys))
	for id := range keys {
		ids = append(ids, id)
	}
	found, err := s.v.Results.Of(ctx, ids...)
	for id, res := range found {
		s.results[keys[id]] = res
	}
	return err
}

// stackOf is what the work on a step starts from: the results of those that it depends on.
// Drop says why it cannot start.
func (s *session) stackOf(st taskfile.Step) (stack []loop.Lower, drop string) {
	var all [][]loop.Lower
	for _, key := range st.DependsOn {
		res := s.results[key]
		switch res.State {
		case engine.ResultRejected, engine.ResultVoid:
			return nil, fmt.Sprintf("it depends on %s, whose proposal %s will not land", stepName(key), res.Approval.Action.Branch)
		case engine.ResultWaits:
			all = append(all, res.Stack)
			if len(res.Stack) > len(stack) {
				stack = res.Stack
			}
		case engine.ResultLanded, "":
		}
	}
	for _, other := range all {
		top := other[len(other)-1]
		if !slices.ContainsFunc(stack, func(l loop.Lower) bool { return l.Commit == top.Commit }) {
			return nil, fmt.Sprintf("it depends on %s and %s, which are proposals of their own: it can start when one of them has landed", stack[len(stack)-1].Branch, top.Branch)
		}
	}
	return stack, ""
}

// Candidates implements engine.Session.
func (s *session) Candidates(_ engine.Sensed, _ time.Time) []plan.Candidate {
	var list []plan.Candidate
	open, dropped, more := 0, 0, 0
	for _, w := range s.work {
		c := plan.Candidate{Step: w.row, Memory: w.Text, TakenBack: true}
		if c.Step.State == loop.StepOpen && w.Priority != taskfile.PriorityMedium {
			c.Detail = "priority " + w.Priority
		}
		drop := w.drop
		if drop == "" {
			c.Stack, drop = s.stackOf(w.Step)
		}
		switch {
		case drop != "":
			c.Drop, c.Detail = loop.ReasonNotEligible, drop
			dropped++
		case w.row.State == loop.StepOpen:
			open++
		}
		if drop != "" && dropped > mostCandidates || w.row.State == loop.StepOpen && open > mostCandidates {
			more++
			continue
		}
		list = append(list, c)
	}
	if more > 0 {
		rest := loop.Step{Key: "MORE", Kind: loop.StepWork, State: loop.StepOpen, Title: fmt.Sprintf("%d other steps", more)}
		list = append(list, plan.Candidate{Step: rest, Drop: loop.ReasonNotEligible, Detail: "they come behind the first ones"})
	}
	return list
}
