package board

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// FromListed returns listed tasks, and what was wrong with their file, as tasks of a board.
// Agent is whose file it is; its tasks are assigned to it if the workspace has it. File is how
// problems name the file.
func FromListed(file, agent, boardID string, listed []loop.ListedTask, wrong []readiness.Finding, known Known) (tasks []Task, problems []Problem) {
	keys := map[string]bool{}
	for _, l := range listed {
		keys[l.Key] = true
	}
	for _, p := range wrong {
		problems = append(problems, Problem{Path: fmt.Sprintf("%s:%d:%d", file, p.Line, p.Column), Message: p.Message, Note: true})
	}
	idOf := func(key string) string { return madeID(PrefixTask, boardID, cmp.Or(agent, file), key) }
	for _, step := range listed {
		at := fmt.Sprintf("%s:%d", file, step.Line)
		status, taken := columnOf[step.State]
		if !taken {
			problems = append(problems, Problem{Path: at, Message: fmt.Sprintf("%s is %s; it is left", step.Key, cmp.Or(step.Status, "not readable")), Note: true})
			continue
		}
		t := Task{
			ID: idOf(step.Key), BoardID: boardID, Title: step.Title, Status: status, Priority: priorityOf[step.Priority], Tags: step.Tags, Order: max(0, step.Number), CreatedBy: Human,
		}
		t.Priority = cmp.Or(t.Priority, Medium)
		if from := strings.ToLower(strings.TrimPrefix(step.From, "@")); known.Agents[from] {
			t.CreatedBy = from
		}
		if known.Agents[agent] {
			t.AssigneeID = agent
		}
		var waits []string
		for _, on := range step.DependsOn {
			if keys[on] && t.ParentTaskID == "" {
				t.ParentTaskID = idOf(on)
			} else {
				waits = append(waits, on)
			}
		}
		lines := []string{strings.TrimSpace(step.Text)}
		for _, f := range []struct{ name, value string }{{"Blocked: ", step.BlockedReason}, {"Result: ", step.Result}, {"Also waits for: ", strings.Join(waits, ", ")}} {
			if f.value != "" {
				lines = append(lines, f.name+f.value)
			}
		}
		t.Description = strings.TrimSpace(strings.Join(lines, "\n"))
		if status == Done || status == Failed {
			t.ExecutionStatus = map[Status]ExecutionStatus{Done: ExecutionCompleted, Failed: ExecutionFailed}[status]
		}
		for _, bad := range t.Check() {
			problems = append(problems, Problem{Path: at + " " + step.Key + "." + bad.Field, Message: bad.Problem})
		}
		tasks = append(tasks, t)
	}
	kept := map[string]bool{}
	for _, t := range tasks {
		kept[t.ID] = true
	}
	for i := range tasks {
		if !kept[tasks[i].ParentTaskID] {
			tasks[i].ParentTaskID = "" // What it waits for was left.
		}
	}
	var r reader
	r.checkCircles(tasks)
	return tasks, append(problems, r.problems...)
}

// columnOf are the columns of steps. Whoever had begun one has no claim on it here.
var columnOf = map[loop.StepState]Status{
	loop.StepOpen: Todo, loop.StepClaimed: Todo, loop.StepBlocked: Backlog, loop.StepDone: Done, loop.StepFailed: Failed,
}

var priorityOf = map[string]Priority{
	"critical": Urgent, "high": High, "medium": Medium, "low": Low,
}
