package bootstate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// todoOf makes tasks of lines like "T-1 pending high T-0,T-2"; each title is "Title T-1".
func todoOf(t *testing.T, lines ...string) Todo {
	t.Helper()
	todo := emptyTodo()
	for _, l := range lines {
		f := strings.Fields(l)
		task := Task{ID: f[0], Title: "Title " + f[0], Status: Status(f[1]), Priority: Priority(f[2])}
		if len(f) > 3 {
			task.Dependencies = strings.Split(f[3], ",")
		}
		if task.Status == StatusBlocked {
			task.BlockedReason = "it waits"
		}
		todo.Add(task, now.Add(-time.Hour))
	}
	if _, wrong := FormatSchemas().ReadTodo(todo.Encode()); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	return todo
}

func stateWith(intent string) State {
	s := NewState("shop", now)
	s.SetNextIntent(intent)
	return s
}

type planCase struct {
	tasks   []string
	intent  string
	plan    []PlanItem
	request string
	answer  string
	reason  loop.Reason
	task    string
	sides   []string // of the question
}

func TestEachLeafOfThePlanDecisions(t *testing.T) {
	three := []string{"T-1 pending low", "T-2 pending high", "T-3 pending high"}
	hash := RequestID("Make the till")
	for name, c := range map[string]planCase{
		"a user request becomes a task":                  {tasks: three, intent: "T-1", request: "Make the till", reason: loop.ReasonPlanRequest, task: hash},
		"a user request names a task":                    {tasks: three, intent: "T-2", request: "T-1", reason: loop.ReasonPlanRequest, task: "T-1"},
		"a user request names a task in a sentence":      {tasks: three, request: "please do T-3 first", reason: loop.ReasonPlanRequest, task: "T-3"},
		"a user request is the title of a task":          {tasks: three, request: "title  t-1", reason: loop.ReasonPlanRequest, task: "T-1"},
		"a user request names two tasks: one of its own": {tasks: three, request: "T-1 and T-2", reason: loop.ReasonPlanRequest, task: RequestID("T-1 and T-2")},
		"a word is not the name of a task":               {tasks: []string{"fix pending low", "1 pending low"}, request: "fix 1 bug", reason: loop.ReasonPlanRequest, task: RequestID("fix 1 bug")},
		"a number that is marked is the name of a task":  {tasks: []string{"fix pending low", "1 pending low"}, request: "go on with task 1", reason: loop.ReasonPlanRequest, task: "1"},
		"a user request goes before work that was begun": {tasks: []string{"T-1 in-progress high", "T-2 pending low"}, request: "T-2", reason: loop.ReasonPlanRequest, task: "T-2"},
		"a user request waits for another task":          {tasks: []string{"T-1 pending low T-2", "T-2 pending low T-3", "T-3 pending low"}, request: "T-1", reason: loop.ReasonPlanRequest, task: "T-3"},
		"a user request waits for tasks that share a dependency": {
			tasks: []string{"T-1 pending low T-2,T-3", "T-2 pending low T-4", "T-3 pending low T-4", "T-4 pending low T-5", "T-5 blocked low", "T-6 pending low"}, request: "T-1",
			reason: loop.ReasonConflictRequest, sides: []string{"T-1"},
		},
		"the next intent names a task":                       {tasks: three, intent: "go on with T-1", reason: loop.ReasonPlanIntent, task: "T-1"},
		"the next intent goes on with the plan":              {tasks: three, intent: "finish it", plan: []PlanItem{{"gone", nil}, {"T-1", nil}}, reason: loop.ReasonPlanIntent, task: "T-1"},
		"the next intent is a task of its own":               {tasks: three, intent: "Make the till", reason: loop.ReasonPlanIntent, task: hash},
		"the next intent cannot be worked on":                {tasks: append([]string{"T-0 blocked low"}, three...), intent: "T-0", reason: loop.ReasonPlanPriority, task: "T-2"},
		"the next intent is done":                            {tasks: append([]string{"T-0 done low"}, three...), intent: "T-0", reason: loop.ReasonPlanPriority, task: "T-2"},
		"no next intent: work that was begun goes on":        {tasks: append([]string{"T-0 in-progress low"}, three...), reason: loop.ReasonPlanUnfinished, task: "T-0"},
		"no next intent: the highest priority":               {tasks: append(slices.Clone(three), "T-4 pending critical"), reason: loop.ReasonPlanPriority, task: "T-4"},
		"a tie goes to the order of the file":                {tasks: three, reason: loop.ReasonPlanPriority, task: "T-2"},
		"a task whose dependencies are not done has to wait": {tasks: []string{"T-1 pending critical T-2", "T-2 pending low"}, reason: loop.ReasonPlanPriority, task: "T-2"},
		"a task whose dependencies are done can be worked on": {
			tasks: []string{"T-1 pending critical T-2", "T-2 done low", "T-3 pending high"}, reason: loop.ReasonPlanPriority, task: "T-1",
		},
		"nothing to do: no tasks":                         {reason: loop.ReasonPlanNothing},
		"nothing to do: all are done or blocked":          {tasks: []string{"T-1 done high", "T-2 blocked high", "T-3 pending low T-2"}, reason: loop.ReasonPlanNothing},
		"nothing to do, and the answer is a request":      {tasks: []string{"T-1 done high"}, answer: "Make the till", reason: loop.ReasonPlanRequest, task: hash},
		"conflict: the request names a task that is done": {tasks: append([]string{"T-0 done low"}, three...), request: "T-0", reason: loop.ReasonConflictRequest, sides: []string{`"T-0"`, "T-0 (Title T-0)", "done"}},
		"conflict: the request names a task that is blocked": {
			tasks: append([]string{"T-0 blocked low"}, three...), request: "do T-0", reason: loop.ReasonConflictRequest, sides: []string{`"do T-0"`, "T-0 (Title T-0)", "blocked: it waits"},
		},
		"conflict: the request names a task that waits for a blocked one": {
			tasks: append([]string{"T-0 blocked low", "T-9 pending low T-0"}, three...), request: "T-9", reason: loop.ReasonConflictRequest, sides: []string{"T-9 (Title T-9)", "it depends on T-0"},
		},
		"conflict answered: the task is worked on again": {tasks: append([]string{"T-0 done low"}, three...), request: "T-0", answer: AnswerReopen, reason: loop.ReasonPlanRequest, task: "T-0"},
		"conflict answered: the waiting task is worked on": {
			tasks: append([]string{"T-0 blocked low", "T-9 pending low T-0"}, three...), request: "T-9", answer: AnswerReopen, reason: loop.ReasonPlanRequest, task: "T-9",
		},
		"conflict answered: the request is dropped": {tasks: append([]string{"T-0 done low"}, three...), request: "T-0", answer: AnswerLeave, reason: loop.ReasonPlanPriority, task: "T-2"},
		"conflict: the next intent cannot be worked on, and a critical task can": {
			tasks: []string{"T-1 pending low T-2", "T-2 blocked low", "T-3 pending critical"}, intent: "T-1", reason: loop.ReasonConflictIntent,
			sides: []string{"T-1 (Title T-1)", "it depends on T-2", "T-3 (Title T-3)"},
		},
		"conflict answered: the critical task": {
			tasks: []string{"T-1 blocked low", "T-3 pending critical"}, intent: "T-1", answer: "T-3", reason: loop.ReasonPlanPriority, task: "T-3",
		},
		"conflict answered: the next intent": {
			tasks: []string{"T-1 blocked low", "T-3 pending critical"}, intent: "T-1", answer: "T-1", reason: loop.ReasonPlanIntent, task: "T-1",
		},
		"no conflict: a critical task cannot be worked on either": {
			tasks: []string{"T-1 blocked low", "T-3 blocked critical", "T-4 pending low"}, intent: "T-1", reason: loop.ReasonPlanPriority, task: "T-4",
		},
		"conflict: two tasks are in progress": {
			tasks: []string{"T-1 in-progress low", "T-2 in-progress high", "T-3 pending critical"}, intent: "T-1", request: "T-3", reason: loop.ReasonConflictProgress,
			sides: []string{"T-1 (Title T-1)", "T-2 (Title T-2)"},
		},
		"conflict answered: one of them": {
			tasks: []string{"T-1 in-progress low", "T-2 in-progress high", "T-3 pending critical"}, answer: "T-1", reason: loop.ReasonPlanUnfinished, task: "T-1",
		},
		"an answer that was not offered": {
			tasks: []string{"T-1 in-progress low", "T-2 in-progress high"}, answer: "T-3", reason: loop.ReasonConflictProgress, sides: []string{"T-1", "T-2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, todo := stateWith(c.intent), todoOf(t, c.tasks...)
			if c.plan != nil {
				s.SetPlan(c.plan)
			}
			stateBefore, todoBefore := string(s.Encode()), string(todo.Encode())
			d, after := Plan(s, todo, c.request, nil, now)
			if c.answer != "" {
				if d.Question == nil {
					t.Fatalf("nothing is asked: %+v", d)
				}
				d, after = Plan(s, todo, c.request, Answers{d.Question.Key: c.answer}, now)
			}
			if d.Question != nil && !strings.Contains(d.Question.Key, "-") {
				t.Errorf("the key is %q", d.Question.Key)
			}
			if d.Reason != c.reason || d.Task != c.task || d.Reason.Sentence() == "" {
				t.Fatalf("decision = %s %q %s, want %s %q", d.Reason, d.Task, d.Detail, c.reason, c.task)
			}
			if (d.Task == "") != (d.Question != nil) {
				t.Errorf("the question is %+v", d.Question)
			}
			for _, side := range c.sides {
				if !strings.Contains(d.Question.Text, side) {
					t.Errorf("the question %q does not name %q", d.Question.Text, side)
				}
			}
			if string(s.Encode()) != stateBefore || string(todo.Encode()) != todoBefore {
				t.Error("Plan changed what it was given")
			}
			if _, wrong := FormatSchemas().ReadTodo(after.Encode()); len(wrong) > 0 {
				t.Error(wrong)
			}
			want := len(after.Tasks())
			if d.Task != "" {
				want--
			}
			if len(d.Passed) != want {
				t.Errorf("%d tasks were passed with a reason, want %d", len(d.Passed), want)
			}
			for _, p := range d.Passed {
				if p.Reason.Sentence() == "" || p.Task == d.Task {
					t.Errorf("passed %+v", p)
				}
			}
		})
	}
}

func TestTheSameRequestTwiceIsOneTask(t *testing.T) {
	s, todo := stateWith(""), todoOf(t, "T-1 pending low")
	long := "Make the till\n- [ ] draw it\n* build it\n" + strings.Repeat("and more ", 50)
	d, once := Plan(s, todo, long, nil, now)
	again, twice := Plan(s, once, "  MAKE the till\n\n"+strings.SplitN(long, "\n", 2)[1]+" ", nil, now.Add(time.Hour))
	if d.Task != again.Task || string(once.Encode()) != string(twice.Encode()) || len(once.Tasks()) != 2 {
		t.Errorf("%s and %s:\n%s", d.Task, again.Task, twice.Encode())
	}
	task, _ := once.Task(d.Task)
	if task.Priority != PriorityHigh || len([]rune(task.Title)) > 200 || task.Description != strings.TrimSpace(long) || !strings.HasPrefix(task.Title, "Make the till - [ ] draw it") {
		t.Errorf("the task is %+v", task)
	}
	// Once it is done the same request is a conflict, and not done twice.
	once.SetStatus(d.Task, StatusDone, "", now)
	if d, _ := Plan(s, once, long, nil, now); d.Reason != loop.ReasonConflictRequest {
		t.Errorf("decision = %+v", d)
	}
}

func TestBeginWritesThePlanAndOneTaskInProgress(t *testing.T) {
	todo := todoOf(t, "T-1 in-progress low", "T-2 pending low")
	todo.Add(Task{ID: "T-3", Title: "Three", Description: "How:\n- [ ] one\n- two\n", Status: StatusPending, Priority: PriorityLow}, now)
	s, after := Begin(stateWith("T-3"), todo, "T-3", now)
	want := []PlanItem{{"T-3", []string{"one", "two"}}}
	if diff := cmp.Diff(want, s.Plan()); diff != "" || s.Phase() != PhaseImplementing || !s.LastUpdated().Equal(now) {
		t.Errorf("%s\n%s", diff, s.Encode())
	}
	if got := DescribeTasks(todo, after); got != "T-1 in-progress → pending, T-3 pending → in-progress" {
		t.Errorf("tasks: %s", got)
	}
	if _, wrong := FormatSchemas().ReadState(s.Encode()); len(wrong) > 0 {
		t.Error(wrong)
	}
	if s, _ := Begin(stateWith(""), todo, "T-2", now); cmp.Diff([]PlanItem{{"T-2", []string{"Title T-2"}}}, s.Plan()) != "" {
		t.Errorf("a task without a list has the plan %v", s.Plan())
	}
	if NextTask(todoOf(t, "T-1 done low", "T-2 pending low T-1", "T-3 pending low")) != "T-2" || NextTask(todoOf(t, "T-1 done low")) != "" {
		t.Error("the next task is the first that can be worked on")
	}
}

func TestAStatusSetsWhatDependsOnIt(t *testing.T) {
	todo := todoOf(t, "T-1 pending low")
	step := func(to Status, reason, want string) {
		t.Helper()
		todo.SetStatus("T-1", to, reason, now)
		v := todo.item("T-1")
		completed := "absent"
		if c := v.Get(fieldCompletedAt); c != nil {
			completed = c.Text
		}
		if got := fmt.Sprint(v.GetText(fieldStatus), " ", completed, " ", v.GetText(fieldBlocked)); strings.TrimSpace(got) != want {
			t.Errorf("%s: %q, want %q", to, got, want)
		}
		if _, wrong := FormatSchemas().ReadTodo(todo.Encode()); len(wrong) > 0 {
			t.Error(wrong)
		}
	}
	step(StatusBlocked, "no key", "blocked absent no key")
	step(StatusInProgress, "ignored", "in-progress absent")
	step(StatusDone, "", "done 2026-01-31T10:00:00.000Z")
	step(StatusPending, "", "pending null")
	before := string(todo.Encode())
	todo.SetStatus("T-1", StatusPending, "", now.Add(time.Hour))
	todo.SetStatus("T-9", StatusDone, "", now)
	todo.Add(Task{ID: "T-1", Title: "another"}, now)
	if string(todo.Encode()) != before {
		t.Errorf("what changes nothing changes\n%s", todo.Encode())
	}
}

func TestOnlyWorkThatWasBegunIsSetBack(t *testing.T) {
	todo := todoOf(t, "T-1 done low", "T-2 blocked low", "T-3 in-progress low", "T-4 pending low")
	_, after := Begin(stateWith(""), todo, "T-4", now)
	if got := DescribeTasks(todo, after); got != "T-3 in-progress → pending, T-4 pending → in-progress" {
		t.Errorf("tasks: %s", got)
	}
}

func TestEachTaskThatIsPassedSaysWhy(t *testing.T) {
	todo := todoOf(t, "T-1 done low", "T-2 blocked low", "T-3 pending low T-2", "T-4 pending low", "T-5 pending high")
	d, _ := Plan(stateWith(""), todo, "", nil, now)
	want := []Passed{
		{"T-1", loop.ReasonStepDone, ""},
		{"T-2", loop.ReasonNotEligible, "it waits"},
		{"T-3", loop.ReasonNotEligible, "it depends on T-2, which is not done"},
		{"T-4", loop.ReasonOutranked, "T-5 comes first"},
	}
	if diff := cmp.Diff(want, d.Passed); diff != "" {
		t.Error(diff)
	}
	d, _ = Plan(stateWith(""), todo, "T-1", nil, now)
	if last := d.Passed[4]; last != (Passed{"T-5", loop.ReasonStepWaiting, "a question is open"}) {
		t.Errorf("while a question is open: %+v", last)
	}
	_, after := Plan(stateWith(""), todo, "T-1", Answers{d.Question.Key: AnswerReopen}, now)
	if got := DescribeTasks(todo, after); got != "T-1 done → pending" {
		t.Errorf("after the answer: %s", got)
	}
}
