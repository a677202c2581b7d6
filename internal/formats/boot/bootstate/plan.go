package bootstate

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Decision is what a run works on, or what it asks.
type Decision struct {
	Reason   loop.Reason
	Task     string    // the id of the task; empty: none
	Detail   string    // why, beside the reason; often empty
	Question *Question // nothing is worked on before it is answered; nil: there is none
	Passed   []Passed  // every other task, and why it is not the one
}

// Passed is a task that is not worked on now.
type Passed struct {
	Task   string
	Reason loop.Reason
	Detail string
}

// Question is a conflict that a person settles. Its key is the same for the same
// conflict.
type Question struct {
	Key     string
	Text    string   // names both sides
	Answers []string // one of them settles it; empty: any text does, as a request
}

// Answers are what people have said, by the keys of questions. An answer holds for as
// long as its conflict does.
type Answers map[string]string

// planner decides about one memory. Its tasks are changed by what was asked and answered.
type planner struct {
	state   State
	todo    Todo
	answers Answers
	now     time.Time

	tasks []Task
	byID  map[string]int
}

// Plan decides what is worked on: the request, else the next intent, else a task that was
// begun, else the highest priority, in the order of the file. It returns the tasks with
// the request among them. The phase, the task's status and the plan are set by Begin.
func Plan(s State, t Todo, request string, answers Answers, now time.Time) (Decision, Todo) {
	p := &planner{state: s, todo: t.Clone(), answers: answers, now: now}
	p.read()
	d := p.decide(strings.TrimSpace(request))
	for _, task := range p.tasks {
		if task.ID != d.Task {
			d.Passed = append(d.Passed, p.whyNot(task, d))
		}
	}
	return d, p.todo
}

func (p *planner) read() {
	p.tasks, p.byID = p.todo.Tasks(), map[string]int{}
	for i, task := range p.tasks {
		p.byID[task.ID] = i
	}
}

func (p *planner) whyNot(task Task, d Decision) Passed {
	reason, detail := p.ineligible(task)
	if reason == "" && d.Question == nil {
		reason, detail = loop.ReasonOutranked, d.Task+" comes first"
	}
	if reason == "" {
		reason, detail = loop.ReasonStepWaiting, "a question is open"
	}
	return Passed{task.ID, reason, detail}
}

// ineligible says why a task cannot be worked on; empty if it can.
func (p *planner) ineligible(task Task) (loop.Reason, string) {
	switch task.Status {
	case StatusDone:
		return loop.ReasonStepDone, ""
	case StatusBlocked:
		return loop.ReasonNotEligible, cmp.Or(task.BlockedReason, "it is blocked")
	case StatusPending, StatusInProgress:
	}
	for _, id := range task.Dependencies {
		if i, there := p.byID[id]; !there || p.tasks[i].Status != StatusDone {
			return loop.ReasonNotEligible, "it depends on " + id + ", which is not done"
		}
	}
	return "", ""
}

func (p *planner) isEligible(task Task) bool {
	reason, _ := p.ineligible(task)
	return reason == ""
}

func (p *planner) decide(request string) Decision {
	if d, settled := p.settleProgress(); !settled {
		return d
	}
	if request != "" {
		if d, taken := p.takeRequest(request); taken {
			return d
		}
	}
	if d, taken := p.takeIntent(); taken {
		return d
	}
	for _, task := range p.tasks {
		if task.Status == StatusInProgress && p.isEligible(task) {
			return Decision{Reason: loop.ReasonPlanUnfinished, Task: task.ID}
		}
	}
	if id := p.highest(); id != "" {
		return Decision{Reason: loop.ReasonPlanPriority, Task: id, Detail: string(p.tasks[p.byID[id]].Priority)}
	}
	q := &Question{
		Key: questionKey("nothing", string(p.todo.Encode())), Text: "No task can be worked on, and there is no next intent. What should be done?",
	}
	if answer := strings.TrimSpace(p.answers[q.Key]); answer != "" {
		if d, taken := p.takeRequest(answer); taken {
			return d
		}
	}
	return Decision{Reason: loop.ReasonPlanNothing, Question: q}
}

// highest returns the eligible task of the highest priority that comes first in the file.
func (p *planner) highest() string {
	var best *Task
	for i, task := range p.tasks {
		if p.isEligible(task) && (best == nil || task.Priority.Rank() < best.Priority.Rank()) {
			best = &p.tasks[i]
		}
	}
	if best == nil {
		return ""
	}
	return best.ID
}

// settleProgress asks which of several tasks in progress goes on. The others are pending
// then.
func (p *planner) settleProgress() (Decision, bool) {
	var ids []string
	for _, task := range p.tasks {
		if task.Status == StatusInProgress {
			ids = append(ids, task.ID)
		}
	}
	if len(ids) < 2 {
		return Decision{}, true
	}
	q := &Question{
		Key:     questionKey("progress", ids...),
		Text:    fmt.Sprintf("The tasks %s are in progress at once. Which one goes on?", p.namedAll(ids)),
		Answers: ids,
	}
	answer := p.answers[q.Key]
	if !slices.Contains(ids, answer) {
		return Decision{Reason: loop.ReasonConflictProgress, Question: q}, false
	}
	for _, id := range ids {
		if id != answer {
			p.todo.SetStatus(id, StatusPending, "", p.now)
		}
	}
	p.read()
	return Decision{}, true
}

// named is a task for a question: its id and its title.
func (p *planner) named(id string) string {
	task := p.tasks[p.byID[id]]
	return fmt.Sprintf("%s (%s)", id, shortened(oneLine(task.Title), 60))
}

func (p *planner) namedAll(ids []string) string {
	var names []string
	for _, id := range ids {
		names = append(names, p.named(id))
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// Answers to a question about a request for a task that is blocked or done.
const (
	AnswerReopen = "reopen" // it is worked on again
	AnswerLeave  = "leave"  // the request is dropped
)

// takeRequest makes the request a task, unless it names one, and takes it. It reports
// false if a person has dropped the request.
func (p *planner) takeRequest(request string) (Decision, bool) {
	id := p.taskNamed(request)
	if id == "" {
		id = RequestID(request)
	}
	i, there := p.byID[id]
	if !there {
		p.addTask(id, request)
		return Decision{Reason: loop.ReasonPlanRequest, Task: id}, true
	}
	task := p.tasks[i]
	what := "which is " + string(task.Status)
	if task.Status == StatusPending || task.Status == StatusInProgress {
		if d, taken := p.takeFirst(loop.ReasonPlanRequest, task); taken {
			return d, true
		}
		_, what = p.ineligible(task)
		what = "and " + what
	} else if task.BlockedReason != "" && task.Status == StatusBlocked {
		what += ": " + task.BlockedReason
	}
	what = shortened(oneLine(what), 100)
	q := &Question{
		Key: questionKey("request", request, id, what),
		Text: fmt.Sprintf("The request %q names the task %s, %s. Should it be worked on all the same?",
			shortened(oneLine(request), 100), p.named(id), what),
		Answers: []string{AnswerReopen, AnswerLeave},
	}
	switch p.answers[q.Key] {
	case AnswerReopen:
		return p.reopen(loop.ReasonPlanRequest, task), true
	case AnswerLeave:
		return Decision{}, false
	}
	return Decision{Reason: loop.ReasonConflictRequest, Question: q}, true
}

// reopen takes a task that a person has chosen although it is blocked, done or waits for
// others.
func (p *planner) reopen(reason loop.Reason, task Task) Decision {
	if task.Status == StatusBlocked || task.Status == StatusDone {
		p.todo.SetStatus(task.ID, StatusPending, "", p.now)
		p.read()
	}
	if d, taken := p.takeFirst(reason, p.tasks[p.byID[task.ID]]); taken {
		return d
	}
	return Decision{Reason: reason, Task: task.ID, Detail: "a person chose it, although it waits for others"}
}

// takeFirst takes a task, or what it depends on and can be worked on. It reports false
// if neither can.
func (p *planner) takeFirst(reason loop.Reason, task Task) (Decision, bool) {
	if p.isEligible(task) {
		return Decision{Reason: reason, Task: task.ID}, true
	}
	seen := map[string]bool{task.ID: true}
	for queue := task.Dependencies; len(queue) > 0; queue = queue[1:] {
		i, there := p.byID[queue[0]]
		if !there || seen[queue[0]] {
			continue
		}
		seen[queue[0]] = true
		if p.isEligible(p.tasks[i]) {
			return Decision{Reason: reason, Task: queue[0], Detail: task.ID + " depends on it"}, true
		}
		queue = append(slices.Clone(queue), p.tasks[i].Dependencies...)
	}
	return Decision{}, false
}

// RequestID is the id of the task that a request becomes. White space and case do not
// make another request.
func RequestID(request string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(oneLine(request))))
	return "request-" + hex.EncodeToString(sum[:4])
}

// questionKey is a short name for a conflict.
func questionKey(kind string, sides ...string) string {
	h := sha256.New()
	for _, side := range sides {
		fmt.Fprintf(h, "%d:%s", len(side), side)
	}
	return kind + "-" + hex.EncodeToString(h.Sum(nil)[:6])
}

func (p *planner) addTask(id, text string) {
	title := shortened(oneLine(text), 200)
	task := Task{ID: id, Title: title, Status: StatusPending, Priority: PriorityHigh}
	if title != text {
		task.Description = text
	}
	p.todo.Add(task, p.now)
	p.read()
}

// taskNamed returns the task that a text names: by its id alone, by its title, or by one id
// in a sentence. In a sentence an id counts only if it does not look like a common word
// or a number.
func (p *planner) taskNamed(text string) string {
	text = strings.TrimSpace(text)
	if _, there := p.byID[text]; there {
		return text
	}
	for _, task := range p.tasks {
		if strings.EqualFold(oneLine(task.Title), oneLine(text)) {
			return task.ID
		}
	}
	isID := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
	}
	found, before := "", ""
	for word := range strings.FieldsFuncSeq(text, func(c rune) bool { return !isID(c) && c != '#' }) {
		id := strings.Trim(word, "#")
		marked := strings.HasPrefix(word, "#") || strings.EqualFold(before, "task")
		plain := strings.Trim(id, "0123456789") == "" || strings.IndexFunc(id, func(c rune) bool { return c < 'A' || c > 'z' || c == '_' }) < 0
		before = word
		if _, there := p.byID[id]; !there || plain && !marked {
			continue
		}
		if found != "" && found != id {
			return ""
		}
		found = id
	}
	return found
}

// takeIntent takes what the last session left to do: a task that the intent names, else
// what the last plan has left, else the intent itself as a task.
func (p *planner) takeIntent() (Decision, bool) {
	intent := strings.TrimSpace(p.state.NextIntent())
	if intent == "" {
		return Decision{}, false
	}
	id := p.taskNamed(intent)
	if id == "" {
		for _, planned := range p.state.Plan() {
			if i, there := p.byID[planned.Task]; there && p.isEligible(p.tasks[i]) {
				return Decision{Reason: loop.ReasonPlanIntent, Task: planned.Task, Detail: shortened(oneLine(intent), 200)}, true
			}
		}
		id = RequestID(intent)
		if _, there := p.byID[id]; !there {
			p.addTask(id, intent)
			return Decision{Reason: loop.ReasonPlanIntent, Task: id}, true
		}
	}
	task := p.tasks[p.byID[id]]
	if p.isEligible(task) {
		return Decision{Reason: loop.ReasonPlanIntent, Task: id}, true
	}
	critical := p.highest()
	if critical == "" || p.tasks[p.byID[critical]].Priority != PriorityCritical {
		return Decision{}, false
	}
	_, why := p.ineligible(task)
	if task.Status == StatusDone {
		why = "it is done"
	}
	q := &Question{
		Key: questionKey("intent", id, why, critical),
		Text: fmt.Sprintf("The next intent is the task %s, which cannot be worked on (%s), and the task %s is critical. Which one goes first?",
			p.named(id), shortened(oneLine(why), 100), p.named(critical)),
		Answers: []string{id, critical},
	}
	switch p.answers[q.Key] {
	case critical:
		return Decision{Reason: loop.ReasonPlanPriority, Task: critical, Detail: "a person chose it over the next intent"}, true
	case id:
		return p.reopen(loop.ReasonPlanIntent, task), true
	}
	return Decision{Reason: loop.ReasonConflictIntent, Question: q}, true
}

// PlanItem is what is to be done about one task.
type PlanItem struct {
	Task  string
	Steps []string
}

// Plan returns the plan that the state records. What does not have its form is ignored.
func (s State) Plan() []PlanItem {
	var items []PlanItem
	list := s.Metadata("plan")
	if list == nil {
		return nil
	}
	for _, v := range list.Items {
		item := PlanItem{Task: v.GetText("task")}
		if steps := v.Get("steps"); steps != nil {
			for _, step := range steps.Items {
				if step.Kind == jsontree.Text {
					item.Steps = append(item.Steps, step.Text)
				}
			}
		}
		if item.Task != "" {
			items = append(items, item)
		}
	}
	return items
}

// SetPlan records a plan.
func (s State) SetPlan(items []PlanItem) {
	list := jsontree.NewList()
	for _, item := range items {
		steps := jsontree.NewList()
		for _, step := range item.Steps {
			steps.Items = append(steps.Items, jsontree.NewText(step))
		}
		list.Items = append(list.Items, jsontree.NewObject(
			jsontree.Member{Name: "task", Value: jsontree.NewText(item.Task)}, jsontree.Member{Name: "steps", Value: steps},
		))
	}
	s.SetMetadata("plan", list)
}

// Begin returns the memory of a run that has begun to work on a task: the task is in
// progress and no other one is, and the plan has its steps.
func Begin(s State, t Todo, id string, now time.Time) (State, Todo) {
	s, t = s.Clone(), t.Clone()
	for _, task := range t.Tasks() {
		if task.Status == StatusInProgress && task.ID != id {
			t.SetStatus(task.ID, StatusPending, "", now)
		}
	}
	t.SetStatus(id, StatusInProgress, "", now)
	task, _ := t.Task(id)
	s.SetPlan([]PlanItem{{Task: id, Steps: stepsOf(task)}})
	s.SetPhase(PhaseImplementing)
	s.SetLastUpdated(now)
	return s, t
}

// stepsOf returns the list in a task's description, or else its title.
func stepsOf(task Task) []string {
	var steps []string
	for text := range strings.Lines(task.Description) {
		text = strings.TrimSpace(text)
		for _, mark := range []string{"- [ ] ", "- ", "* "} {
			if step, is := strings.CutPrefix(text, mark); is && strings.TrimSpace(step) != "" {
				steps = append(steps, strings.TrimSpace(step))
				break
			}
		}
	}
	if len(steps) == 0 {
		return []string{task.Title}
	}
	return steps
}

// NextTask returns the id of the task that Plan would choose by priority, which a run
// leaves as the next intent if nobody has named another. Empty: no task can be worked on.
func NextTask(t Todo) string {
	p := &planner{todo: t}
	p.read()
	return p.highest()
}
