package board_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// scene is an agent, ada, on a board with one task that she may take.
func scene(change ...func(*board.Scene)) board.Scene {
	s := board.Scene{
		Member: board.Member{Handle: "ada", Layer: board.Specialist, Skills: []string{"Go"}, BoardIDs: []string{"bd_1"}},
		Board:  board.Board{ID: "bd_1", Slug: "one", Waived: true, WIP: map[board.Status]int{board.InProgress: 2}},
		Tasks:  []board.Task{{ID: "tk_1", BoardID: "bd_1", Title: "t", Description: "d", Status: board.Todo, Priority: board.Medium, CreatedAt: ago(time.Hour)}},
		Minds:  map[string]board.Mind{},
		Lapsed: map[string]bool{},
		Now:    noon,
	}
	s.Members = []board.Member{
		s.Member,
		{Handle: "bob", Layer: board.Specialist, BoardIDs: []string{"bd_1"}},
		{Handle: "lead", Layer: board.Lead, BoardIDs: []string{"bd_1"}, LeadBoardID: "bd_1"},
		{Handle: "chief", Layer: board.Strategic, BoardIDs: []string{"bd_2"}},
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func TestEachTaskThatIsDroppedSaysWhy(t *testing.T) {
	task := func(change func(*board.Task)) func(*board.Scene) { return func(s *board.Scene) { change(&s.Tasks[0]) } }
	also := func(other board.Task) func(*board.Scene) {
		return func(s *board.Scene) { other.BoardID = "bd_1"; s.Tasks = append(s.Tasks, other) }
	}
	message := func(kind board.MessageType, from, to string) func(*board.Scene) {
		return func(s *board.Scene) {
			s.Messages = append(s.Messages, board.Message{ID: "ms_" + from + to, MessageType: kind, FromAgentID: from, ToAgentID: to, TaskID: "tk_1", SentAt: ago(time.Hour)})
		}
	}
	inProgress := func(t *board.Task) { t.Status = board.InProgress }
	type changes = []func(*board.Scene)
	for name, c := range map[string]struct {
		change changes
		want   loop.Reason
		words  string
	}{
		"nothing is in the way":       {nil, "", "urgency 0.50, priority medium"},
		"the backlog":                 {changes{task(func(t *board.Task) { t.Status = board.Backlog })}, "", "urgency 0.50, priority medium"},
		"another board":               {changes{func(s *board.Scene) { s.Member.BoardIDs = []string{"bd_2"} }}, loop.ReasonNotOnBoard, "@ada does not work on this board"},
		"done":                        {changes{task(func(t *board.Task) { t.Status = board.Done })}, loop.ReasonStepDone, ""},
		"in review":                   {changes{task(func(t *board.Task) { t.Status = board.Review })}, loop.ReasonNotWaiting, "it is in review"},
		"failed":                      {changes{task(func(t *board.Task) { t.Status = board.Failed })}, loop.ReasonNotWaiting, "it is in failed"},
		"claimed":                     {changes{task(inProgress), task(func(t *board.Task) { t.AssigneeID = "bob" })}, loop.ReasonStepClaimed, "@bob works on it"},
		"the claim is over":           {changes{task(inProgress), task(func(t *board.Task) { t.AssigneeID = "bob" }), func(s *board.Scene) { s.Lapsed["tk_1"] = true }}, "", "urgency 0.50, priority medium"},
		"its own":                     {changes{task(inProgress), task(func(t *board.Task) { t.AssigneeID = "ada"; t.Description = "" })}, "", "it has begun it"},
		"its own waits for a person":  {changes{task(inProgress), task(func(t *board.Task) { t.AssigneeID, t.ExecutionStatus = "ada", board.ExecutionApproval })}, loop.ReasonApproval, "a command of it waits for a person"},
		"in progress without anybody": {changes{task(inProgress)}, "", "urgency 0.50, priority medium"},
		"assigned to another":         {changes{task(func(t *board.Task) { t.AssigneeID = "bob" })}, loop.ReasonAssigned, "it is assigned to @bob"},
		"assigned to it":              {changes{task(func(t *board.Task) { t.AssigneeID = "ada" })}, "", "it is assigned to it"},
		"dormant":                     {changes{func(s *board.Scene) { s.Member.Dormant = true }}, loop.ReasonDormant, "@ada is dormant"},
		"cool-off":                    {changes{func(s *board.Scene) { s.Mind = s.Mind.Erred(noon).Erred(noon).Erred(noon) }}, loop.ReasonCoolOff, "after 3 errors in a row it works again at 2026-05-04T12:30:00Z"},
		"ordered":                     {changes{message(board.Order, "lead", "ada")}, "", "@lead has ordered it"},
		"another was ordered":         {changes{message(board.Order, "lead", "bob")}, loop.ReasonOrdered, "@lead has ordered @bob to do it"},
		"the higher order counts":     {changes{message(board.Order, "lead", "bob"), message(board.Order, board.Human, "ada")}, "", "a person has ordered it"},
		"an order from below is none": {changes{message(board.Order, "bob", "lead")}, "", "urgency 0.50, priority medium"},
		"nor one to who cannot":       {changes{message(board.Order, "lead", "bob"), func(s *board.Scene) { s.Members[1].Dormant = true }}, "", "urgency 0.50, priority medium"},
		"nor one to who is gone":      {changes{message(board.Order, "lead", "bob"), func(s *board.Scene) { s.Minds["bob"] = board.Mind{Status: board.Idle, LastHeartbeat: ago(time.Hour)} }}, "", "urgency 0.50, priority medium"},
		"a question is open":          {changes{message(board.Question, "bob", "lead")}, loop.ReasonQuestion, "a question of @bob to @lead has no answer yet"},
		"it has a response":           {changes{message(board.Question, "bob", "lead"), func(s *board.Scene) { s.Messages[0].Response = "yes" }}, "", "urgency 0.50, priority medium"},
		"it has an answer": {changes{message(board.Question, "bob", "lead"), func(s *board.Scene) {
			s.Messages = append(s.Messages, board.Message{ID: "ms_2", MessageType: board.Answer, Answers: "ms_boblead"})
		}}, "", "urgency 0.50, priority medium"},
		"its parent is open":         {changes{task(func(t *board.Task) { t.ParentTaskID = "tk_0" }), also(board.Task{ID: "tk_0", Status: board.Review})}, loop.ReasonParent, "tk_0 has to be done before, and is in review"},
		"its parent is done":         {changes{task(func(t *board.Task) { t.ParentTaskID = "tk_0" }), also(board.Task{ID: "tk_0", Status: board.Done})}, "", "urgency 0.50, priority medium"},
		"it works on another":        {changes{also(board.Task{ID: "tk_2", Status: board.InProgress, AssigneeID: "ada"})}, loop.ReasonAgentTask, "@ada works on tk_2, and one works on one task at a time"},
		"another waits for a person": {changes{also(board.Task{ID: "tk_2", Status: board.InProgress, AssigneeID: "ada", ExecutionStatus: board.ExecutionApproval})}, "", "urgency 0.50, priority medium"},
		"it works on another board":  {changes{func(s *board.Scene) { s.Mind.CurrentTaskID = "tk_9" }}, loop.ReasonAgentTask, "@ada works on tk_9, and one works on one task at a time"},
		"its last one is done":       {changes{func(s *board.Scene) { s.Mind.CurrentTaskID = "tk_2" }, also(board.Task{ID: "tk_2", Status: board.Done, AssigneeID: "ada"})}, "", "urgency 0.50, priority medium"},
		"the column is full":         {changes{also(board.Task{ID: "tk_2", Status: board.InProgress}), also(board.Task{ID: "tk_3", Status: board.InProgress, AssigneeID: "bob"})}, loop.ReasonColumnFull, "2 tasks are in progress, and 2 may be"},
		"nobody says what it is":     {changes{task(func(t *board.Task) { t.Description = " \n" })}, loop.ReasonNotReady, "it has neither a description nor acceptance criteria"},
		"criteria say what it is":    {changes{task(func(t *board.Task) { t.Description, t.AcceptanceCriteria = "", "it works" })}, "", "urgency 0.50, priority medium"},
		"a skill is missing":         {changes{task(func(t *board.Task) { t.RequiredSkills = []string{"go", "SQL", "css"} })}, loop.ReasonNotReady, "@ada lacks SQL, css"},
		"no document":                {changes{func(s *board.Scene) { s.Board.Waived = false }}, loop.ReasonNotReady, "its board has no SOP and no documentation"},
		"a credential is no document": {changes{func(s *board.Scene) {
			s.Board.Waived = false
			s.Resources = []board.Resource{{BoardID: "bd_1", Category: board.Credential}, {BoardID: "bd_2", Category: board.SOP}}
		}}, loop.ReasonNotReady, "its board has no SOP and no documentation"},
		"documentation": {changes{func(s *board.Scene) {
			s.Board.Waived = false
			s.Resources = []board.Resource{{BoardID: "bd_1", Category: board.Documentation}}
		}}, "", "urgency 0.50, priority medium"},
		"nothing is ready": {changes{task(func(t *board.Task) { t.Description, t.RequiredSkills = "", []string{"css"} }), func(s *board.Scene) { s.Board.Waived = false }}, loop.ReasonNotReady, "it has neither a description nor acceptance criteria; @ada lacks css; its board has no SOP and no documentation"},
	} {
		all := scene(c.change...).Candidates()
		i := slices.IndexFunc(all, func(c board.Candidate) bool { return c.Task.ID == "tk_1" })
		if all[i].Drop != c.want || all[i].Detail != c.words {
			t.Errorf("%s: %q, %q, want %q, %q", name, all[i].Drop, all[i].Detail, c.want, c.words)
		}
	}
}

func TestTasksComeInTheOrderOfWhoWantsThemAndHowMuch(t *testing.T) {
	s := scene()
	add := func(id string, change func(*board.Task)) {
		t := board.Task{ID: id, BoardID: "bd_1", Title: "t", Description: "d", Status: board.Todo, Priority: board.Medium, CreatedAt: ago(time.Hour)}
		change(&t)
		s.Tasks = append(s.Tasks, t)
	}
	s.Tasks = nil
	add("12-low", func(t *board.Task) { t.Priority = board.Low })
	add("11-backlog", func(t *board.Task) { t.Status = board.Backlog })
	add("10-later id", func(*board.Task) {})
	add("09-newer", func(t *board.Task) { t.CreatedAt = ago(2 * time.Hour) })
	add("10-order", func(t *board.Task) { t.Order = 1 })
	add("08-high", func(t *board.Task) { t.Priority = board.High })
	add("07-overdue low", func(t *board.Task) { t.Priority, t.DueDate = board.Low, ago(time.Hour) })
	add("06-overdue high", func(t *board.Task) { t.Priority, t.DueDate = board.High, ago(time.Hour) })
	add("05-assigned", func(t *board.Task) { t.Priority, t.AssigneeID = board.Low, "ada" })
	add("04-lead", func(t *board.Task) { t.Priority = board.Low })
	add("03-chief later", func(t *board.Task) { t.Priority = board.Low })
	add("02-chief", func(t *board.Task) { t.Priority = board.Low })
	add("01-person", func(t *board.Task) { t.Priority = board.Low })
	add("00-begun", func(t *board.Task) { t.Priority, t.Status, t.AssigneeID = board.Low, board.InProgress, "ada" })
	order := func(id, from string, at time.Duration) {
		s.Messages = append(s.Messages, board.Message{ID: id, MessageType: board.Order, FromAgentID: from, ToAgentID: "ada", TaskID: id, SentAt: ago(at)})
	}
	order("04-lead", "lead", 9*time.Hour)
	order("03-chief later", "chief", time.Hour)
	order("02-chief", "chief", 2*time.Hour)
	order("01-person", board.Human, 0)
	var got []string
	for _, c := range s.Candidates() {
		got = append(got, c.Task.ID)
	}
	want := []string{
		"00-begun", "01-person", "02-chief", "03-chief later", "04-lead", "05-assigned", "06-overdue high", "07-overdue low", "08-high", "09-newer", "10-later id", "10-order", "11-backlog", "12-low",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestOnlyWhatALeadCanMendIsToldToIt(t *testing.T) {
	task := board.Task{ID: "tk_1", BoardID: "bd_1", Title: "t", RequiredSkills: []string{"css"}}
	ada := board.Member{Handle: "ada", BoardIDs: []string{"bd_1"}}
	able := board.Member{Handle: "bob", BoardIDs: []string{"bd_1"}, Skills: []string{"CSS"}}
	gaps := board.Gaps(task, ada, board.Board{ID: "bd_1", Waived: true}, nil)
	if got := board.GapWords(board.Flags(task, gaps, []board.Member{ada, able})); got != "it has neither a description nor acceptance criteria" {
		t.Errorf("flagged: %s", got)
	}
	able.Dormant = true
	if got := board.Flags(task, gaps, []board.Member{ada, able}); !cmp.Equal(got, gaps) {
		t.Errorf("flagged: %v, want %v", got, gaps)
	}
	before := board.Digest(task, gaps)
	task.Status, task.Order, task.ExecutionStatus, task.Flagged = board.Todo, 7, board.ExecutionFailed, before
	if board.Digest(task, gaps) != before {
		t.Error("a task that was moved is told again")
	}
	if task.Description = "d"; board.Digest(task, gaps) == before {
		t.Error("a task that was changed is not told again")
	}
}

func TestWhatAnAgentMayTakeIsWaitingAndItsOwnAndReady(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, _, _ := drawScene(t)
		all := s.Candidates()
		if n := len(slices.DeleteFunc(slices.Clone(s.Tasks), func(t board.Task) bool { return t.BoardID != s.Board.ID })); len(all) != n {
			t.Fatalf("%d of %d tasks", len(all), n)
		}
		for _, c := range all {
			if c.Drop != "" {
				if c.Drop.Sentence() == "" {
					t.Fatalf("the reason %s has no words", c.Drop)
				}
				continue
			}
			lapsed := s.Lapsed[c.Task.ID] && c.Task.Status == board.InProgress
			begun := c.Task.Status == board.InProgress && c.Task.AssigneeID == s.Member.Handle
			switch {
			case s.Member.Dormant || !s.Member.On(s.Board.ID):
				t.Fatalf("@%s may take %s", s.Member.Handle, c.Task.ID)
			case c.Task.AssigneeID != "" && c.Task.AssigneeID != s.Member.Handle && !lapsed:
				t.Fatalf("%s of @%s may be taken", c.Task.ID, c.Task.AssigneeID)
			case !c.Task.Status.Waits() && c.Task.Status != board.InProgress:
				t.Fatalf("%s in %s may be taken", c.Task.ID, c.Task.Status)
			case !begun && len(c.Gaps) > 0:
				t.Fatalf("%s may be taken, and has gaps %v", c.Task.ID, c.Gaps)
			case slices.ContainsFunc(s.Messages, func(m board.Message) bool { return m.MessageType == board.Question && m.TaskID == c.Task.ID }):
				t.Fatalf("%s may be taken, and a question is open", c.Task.ID)
			}
		}
	})
}
