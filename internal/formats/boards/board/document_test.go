package board_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// problemsOf are the problems of a document, notes marked.
func problemsOf(text string) (all []string) {
	_, found := board.ReadDocument([]byte(text), board.Known{Boards: map[string]string{"there": "bd_there", "bd_there": "bd_there"}, Agents: map[string]bool{"kim": true}})
	for _, p := range found {
		mark := ""
		if p.Note {
			mark = "note: "
		}
		all = append(all, mark+p.String())
	}
	return all
}

func TestWhatCannotBeTakenOverIsNamedWithItsPlace(t *testing.T) {
	long := strings.Repeat("x", 201)
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"nothing":                 {`{}`, nil},
		"what is there already":   {`{"tasks":[{"boardId":"there","title":"t","assigneeId":"@Kim"}]}`, nil},
		"not JSON":                {`{"boards":[}`, []string{"document: byte 12: invalid character '}' looking for beginning of value"}},
		"not an object":           {`[]`, []string{"document: it is not an object with lists of boards, agents, tasks and so on: json: cannot unmarshal array into Go value of type map[string]json.RawMessage"}},
		"more behind it":          {`{} {}`, []string{"document: more follows behind the object"}},
		"not a list":              {`{"boards":{}}`, []string{"boards: it is not a list of objects: json: cannot unmarshal object into Go value of type []board.record"}},
		"a wrong type":            {`{"boards":[{"name":7}]}`, []string{"boards[0].name: number is not what belongs there"}},
		"a long title":            {`{"tasks":[{"boardId":"there","title":"` + long + `"}]}`, []string{"tasks[0].title: it has 201 characters, and at most 200 are allowed"}},
		"an unknown word":         {`{"tasks":[{"boardId":"there","title":"t","status":"doing"}]}`, []string{`tasks[0].status: "doing" is not one of backlog, todo, in_progress, review, done, failed`}},
		"an unknown board":        {`{"tasks":[{"boardId":"x","title":"t"}]}`, []string{`tasks[0].boardId: there is no board "x"`}},
		"an unknown agent":        {`{"tasks":[{"boardId":"there","title":"t","assigneeId":"x"}]}`, []string{`tasks[0].assigneeId: there is no agent "x"`}},
		"an unknown task":         {`{"comments":[{"taskId":"x","content":"c"}]}`, []string{`comments[0].taskId: there is no task "x"`}},
		"two with one id":         {`{"tasks":[{"id":"t1","boardId":"there","title":"t"},{"id":"t1","boardId":"there","title":"u"}]}`, []string{`tasks[1].id: tasks[0] has the id "t1", too`}},
		"two with one handle":     {`{"agents":[{"handle":"@Ada","boardIds":["there"]},{"handle":"ada","boardIds":["there"]}]}`, []string{"agents[1].handle: agents[0] has the handle @ada, too"}},
		"an agent without boards": {`{"agents":[{"handle":"ada"}]}`, []string{"agents[0].boardIds: an agent works on one board at least"}},
		"a lead who is not there": {`{"agents":[{"handle":"ada","boardIds":["there"],"lead":"x"}]}`, []string{`agents[0].lead: there is no agent "x"`}},
		"a credential itself":     {`{"resources":[{"boardId":"there","title":"t","category":"credential","content":"hunter2"}]}`, []string{"resources[0].content: a credential is kept as a reference to the environment, such as $API_TOKEN, and never as what it is"}},
		"a circle":                {`{"tasks":[{"id":"a","boardId":"there","title":"t","parentTaskId":"b"},{"id":"b","boardId":"there","title":"u","parentTaskId":"a"}]}`, []string{"tasks[0].parentTaskId: the task would have to be done before itself", "tasks[1].parentTaskId: the task would have to be done before itself"}},
		"an unknown field":        {`{"boards":[{"name":"n","mood":1},{"name":"m","mood":2}]}`, []string{"note: boards[0].mood: pawl has no such field; it is left, here and further on"}},
		"an unknown list":         {`{"moods":[],"notificationQueue":[]}`, []string{"note: moods: it is not a list of boards, and is left", "note: notificationQueue: pawl has its own notices; it is left"}},
		"a person with an id":     {`{"tasks":[{"boardId":"there","title":"t","createdBy":"user_7"}]}`, []string{`note: tasks[0].createdBy: no agent is called "user_7"; it counts as a person`}},
		"a log that is too long":  {`{"tasks":[{"boardId":"there","title":"t","executionLog":[` + strings.TrimSuffix(strings.Repeat(`{"timestamp":1,"type":"info","content":"c"},`, 1001), ",") + `]}]}`, []string{"note: tasks[0].executionLog: it has 1001 entries; the newest 1000 are kept"}},
	} {
		if diff := cmp.Diff(c.want, problemsOf(c.text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNamesAndIDsOfOtherProgramsAreRead(t *testing.T) {
	d, problems := board.ReadDocument([]byte(`{
		"boards": [{"_id": "b9", "_creationTime": 1777896000000.5, "name": "My Site"}],
		"agents": [{"_id": "j57", "handle": "@Lelouch", "boardIds": ["b9"], "interval": "1m"}, {"name": "Kallen", "boardIds": ["my-site"], "lead": "j57"}],
		"tasks": [{"boardId": "b9", "title": "one", "assigneeId": "j57"}, {"boardId": "my-site", "title": "one"}, {"boardId": "b9", "title": "two", "order": 7}],
		"agentMessages": [{"fromAgentId": "human", "toAgentId": "j57", "messageType": "order", "content": "go", "_creationTime": 1777896000000}]
	}`), board.Known{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if b := d.Boards[0]; b.ID != "b9" || b.Slug != "my-site" || b.CreatedAt != board.At(noon) {
		t.Errorf("board %+v", b)
	}
	if a := d.Agents[0]; a.Handle != "lelouch" || a.Layer != board.Specialist || a.Every().String() != "1m0s" {
		t.Errorf("agent %+v", a)
	}
	if a := d.Agents[1]; a.Handle != "kallen" || a.Lead != "lelouch" || a.BoardIDs[0] != "b9" {
		t.Errorf("agent %+v", a)
	}
	one, same, two := d.Tasks[0], d.Tasks[1], d.Tasks[2]
	if one.AssigneeID != "lelouch" || one.Status != board.Backlog || one.Priority != board.Medium || one.CreatedBy != board.Human || one.ID == same.ID || same.Order != 1 || two.Order != 7 {
		t.Errorf("tasks %+v", d.Tasks)
	}
	if m := d.AgentMessages[0]; m.ToAgentID != "lelouch" || m.SentAt != board.At(noon) || m.ID == "" {
		t.Errorf("message %+v", m)
	}
}

func TestADocumentReadsAsWhatItWasWrittenFrom(t *testing.T) {
	d := readScenario(t)
	d.Sort()
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	again, problems := board.ReadDocument(text, board.Known{})
	if again.Sort(); len(problems) > 0 {
		t.Fatal(problems)
	}
	if diff := cmp.Diff(d, again); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
	for _, b := range d.Boards {
		one := d.Only(b.ID)
		text, err := json.Marshal(one.Filled())
		if err != nil {
			t.Fatal(err)
		}
		if _, problems := board.ReadDocument(text, board.Known{}); len(problems) > 0 {
			t.Errorf("%s alone: %v", b.Slug, problems)
		}
	}
}

func TestNoDocumentMakesTheReaderPanicAndWhatItAcceptsCanBeStored(t *testing.T) {
	values := []string{`null`, `0`, `-1`, `1e99`, `"x"`, `"@x"`, `"human"`, `""`, `[]`, `["x"]`, `[["go","test"]]`, `{}`, `{"a":1}`, `true`, `"2026-05-04T12:00:00Z"`}
	fields := strings.Fields("id _id _creationTime name handle boardId boardIds title status priority assigneeId createdBy parentTaskId executionLog taskId content authorId authorType mentions agentId fromAgentId toAgentId messageType capabilities workingMemory lead wip category interval")
	rapid.Check(t, func(t *rapid.T) {
		var lists []string
		for _, list := range rapid.SliceOfN(rapid.SampledFrom([]string{"boards", "agents", "tasks", "comments", "activity", "subscriptions", "agentMessages", "resources", "errors"}), 0, 4).Draw(t, "lists") {
			var records []string
			for range rapid.IntRange(0, 3).Draw(t, "records") {
				var of []string
				for _, field := range rapid.SliceOfN(rapid.SampledFrom(fields), 0, 6).Draw(t, "fields") {
					of = append(of, fmt.Sprintf("%q:%s", field, rapid.SampledFrom(values).Draw(t, "value")))
				}
				records = append(records, "{"+strings.Join(of, ",")+"}")
			}
			lists = append(lists, fmt.Sprintf("%q:[%s]", list, strings.Join(records, ",")))
		}
		d, problems := board.ReadDocument([]byte("{"+strings.Join(lists, ",")+"}"), board.Known{Boards: map[string]string{"x": "x"}, Agents: map[string]bool{"x": true}, Tasks: map[string]bool{"x": true}})
		for _, p := range problems {
			if !p.Note {
				return
			}
		}
		for _, task := range d.Tasks {
			if found := task.Check(); len(found) > 0 {
				t.Fatalf("%+v: %v", task, found)
			}
		}
		for _, a := range d.Agents {
			if found := a.Check(); len(found) > 0 {
				t.Fatalf("%+v: %v", a, found)
			}
		}
	})
}

func TestListedTasksBecomeTasksOfABoard(t *testing.T) {
	known := board.Known{Agents: map[string]bool{"dev": true, "boss": true}}
	listed := []loop.ListedTask{
		{Key: "step-1", Line: 5, Title: "Write the parser", State: loop.StepDone, Status: "done", Priority: "critical", Number: 1, Result: "it parses"},
		{Key: "step-2", Line: 9, Title: "Test it", State: loop.StepClaimed, Status: "in-progress", Priority: "high", Number: 2, DependsOn: []string{"step-1", "step-9"}, Tags: []string{"tests", "go"}, From: "boss"},
		{Key: "step-3", Line: 15, Title: "Wait", State: loop.StepBlocked, Status: "blocked", Number: 3, BlockedReason: "no token"},
		{Key: "step-4", Line: 18, Title: "Leave it", Status: "cancelled", Number: 4},
		{Key: "step-5", Line: 20, Title: "After it", State: loop.StepOpen, Status: "open", Number: 5, DependsOn: []string{"step-4"}},
	}
	wrong := []readiness.Finding{{Line: 18, Column: 3, Message: "cancelled is no status"}}
	tasks, problems := board.FromListed("TASKS.md", "dev", "bd_1", listed, wrong, known)
	var got []string
	for _, task := range tasks {
		parent := ""
		for _, p := range tasks {
			if p.ID == task.ParentTaskID {
				parent = p.Title
			}
		}
		got = append(got, strings.Join([]string{task.Title, string(task.Status), string(task.Priority), task.AssigneeID, task.CreatedBy, parent, task.Description, strings.Join(task.Tags, "+")}, "|"))
	}
	want := []string{
		"Write the parser|done|urgent|dev|human||Result: it parses|",
		"Test it|todo|high|dev|boss|Write the parser|Also waits for: step-9|tests+go",
		"Wait|backlog|medium|dev|human||Blocked: no token|",
		"After it|todo|medium|dev|human|||",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	left := false
	for _, p := range problems {
		if !p.Note {
			t.Errorf("problem %s", p)
		}
		left = left || strings.Contains(p.Message, "step-4 is cancelled; it is left")
	}
	if !left {
		t.Errorf("nothing says that step 4 is left: %v", problems)
	}
	again, _ := board.FromListed("TASKS.md", "dev", "bd_1", listed, wrong, known)
	if diff := cmp.Diff(tasks, again); diff != "" {
		t.Errorf("the same file gives other tasks:\n%s", diff)
	}
}
