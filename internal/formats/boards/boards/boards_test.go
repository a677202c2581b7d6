package boards_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/formats/boards/boards"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/roster"
)

func TestATaskIsMadeMovedGivenAndCommented(t *testing.T) {
	onBoth(t, func(t *testing.T, r rig) {
		ctx, ann := t.Context(), verbtest.Ann
		b := r.addBoard(t, "My Site")
		if b.Slug != "my-site" || !strings.HasPrefix(b.ID, "bd_") {
			t.Errorf("board %+v", b)
		}
		r.addAgent(t, "@ada", boards.AgentChange{Boards: []string{"my-site"}})
		first, second := r.addTask(t, "my-site", "first"), r.addTask(t, b.ID, "second")
		if first.Status != board.Backlog || first.Order != 0 || second.Order != 1 || first.CreatedBy != board.Human || first.Priority != board.Medium {
			t.Errorf("tasks %+v and %+v", first, second)
		}
		moved := must[boards.TaskView](t)(r.MoveTask(ctx, ann, first.ID, "done"))
		if moved.Status != board.Done || moved.CompletedAt == 0 || moved.ExecutionStatus != board.ExecutionCompleted {
			t.Errorf("a task that was moved to done is %+v", moved)
		}
		again := must[boards.TaskView](t)(r.MoveTask(ctx, ann, first.ID, "todo"))
		if again.CompletedAt != 0 || again.ExecutionStatus != "" {
			t.Errorf("a task that was moved back is %+v", again)
		}
		given := must[boards.TaskView](t)(r.AssignTask(ctx, ann, first.ID, "@ada"))
		if given.AssigneeID != "ada" {
			t.Errorf("a task that was assigned is %+v", given)
		}
		set := must[boards.TaskView](t)(r.SetTask(ctx, ann, first.ID, boards.TaskChange{Priority: new("urgent"), Due: new("2026-05-04"), Tags: []string{"a"}}))
		if set.Priority != board.Urgent || set.DueDate != board.At(time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)) || set.AssigneeID != "ada" {
			t.Errorf("a task that was changed is %+v", set)
		}
		if set.Author() != loop.RoleHuman {
			t.Errorf("a task of a person is that of %q", set.Author())
		}
		agent := loop.Actor{Who: "agent of Ann", Role: loop.RoleAgent, From: "mcp"}
		if said := must[boards.TaskView](t)(r.SetTask(ctx, agent, first.ID, boards.TaskChange{Priority: new("low")})); said.Author() != loop.RoleHuman {
			t.Errorf("a task whose priority an agent has set is that of %q", said.Author())
		}
		if said := must[boards.TaskView](t)(r.SetTask(ctx, agent, first.ID, boards.TaskChange{Criteria: new("# Rules")})); said.Author() != loop.RoleAgent {
			t.Errorf("a task whose criteria an agent has written is that of %q", said.Author())
		}
		made := must[boards.Commented](t)(r.Comment(ctx, ann, boards.CommentRequest{Task: first.ID, By: "Ann", Text: "@ada and @zoe, look"}))
		if !slices.Equal(made.Mentions, []string{"ada"}) || !slices.Equal(made.Unknown, []string{"zoe"}) || made.AuthorType != board.ByHuman || made.AuthorID != "Ann" {
			t.Errorf("comment %+v", made)
		}
		own := must[boards.Commented](t)(r.Comment(ctx, ann, boards.CommentRequest{Task: first.ID, By: "@ada", Text: "@ada notes", Parent: made.ID}))
		if own.AuthorType != board.ByAgent || own.AuthorID != "ada" {
			t.Errorf("comment %+v", own)
		}
		var waits []loop.Row
		var actions []board.ActionType
		for _, row := range r.allRows(t) {
			switch row.Set {
			case board.SetSubscriptions:
				waits = append(waits, row)
			case board.SetActivity:
				a, err := board.FromRow[board.Activity](row)
				if actions = append(actions, a.ActionType); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(waits) != 1 || waits[0].Owner != "ada" || waits[0].State != board.SubscriptionWaits || waits[0].Scope != first.ID {
			t.Errorf("mentions to answer: %+v", waits)
		}
		slices.Sort(actions)
		if diff := cmp.Diff([]board.ActionType{"agent_mentioned", "comment_added", "comment_added", "task_created", "task_created", "task_moved", "task_moved"}, actions); diff != "" {
			t.Errorf("activity (-want +got):\n%s", diff)
		}
		list := must[[]boards.TaskRow](t)(r.ListTasks(ctx, boards.TaskQuery{Board: "my-site", Assignee: "@ada", Status: "todo", Limit: 9}))
		if len(list) != 1 || list[0].ID != first.ID || list[0].Slug != "my-site" {
			t.Errorf("list %+v", list)
		}
		shown := must[boards.Shown](t)(r.ShowBoard(ctx, "my-site", 1))
		if shown.Columns[0].Count != 1 || shown.Columns[1].Count != 1 || len(shown.Agents) != 1 {
			t.Errorf("board %+v", shown)
		}
		all := must[[]boards.BoardRow](t)(r.ListBoards(ctx))
		if len(all) != 1 || all[0].Tasks[board.Todo] != 1 || all[0].Agents != 1 {
			t.Errorf("boards %+v", all)
		}
	})
}

func TestWhatIsWrongIsRefusedAndChangesNothing(t *testing.T) {
	r := newRig(t, verbtest.New(t))
	ctx, ann := t.Context(), verbtest.Ann
	r.addBoard(t, "one")
	r.addBoard(t, "two")
	r.addAgent(t, "ada", boards.AgentChange{Boards: []string{"one"}})
	r.addAgent(t, "bob", boards.AgentChange{Boards: []string{"two"}, Lead: new("@ada")})
	task, elsewhere := r.addTask(t, "one", "t"), r.addTask(t, "two", "u")
	before := r.allRows(t)
	title := strings.Repeat("x", 201)
	create := func(c boards.CreateTaskRequest) error {
		if c.Title == nil {
			c.Title = new("t")
		}
		_, err := r.CreateTask(ctx, ann, c)
		return err
	}
	agent := func(handle string, c boards.AgentChange) error {
		_, err := r.CreateAgent(ctx, ann, handle, c)
		return err
	}
	resource := func(c boards.ResourceChange) error {
		c.Title = new("t")
		_, err := r.CreateResource(ctx, ann, boards.CreateResourceRequest{Board: "one", ResourceChange: c})
		return err
	}
	send := func(m boards.SendRequest) error {
		if m.Content == "" {
			m.Content = "c"
		}
		_, err := r.Send(ctx, ann, m)
		return err
	}
	for name, c := range map[string]struct {
		err  error
		exit int
		says string
	}{
		"a long title":              {create(boards.CreateTaskRequest{Board: "one", TaskChange: boards.TaskChange{Title: &title}}), loop.ExitUsage, "title: it has 201 characters, and at most 200 are allowed"},
		"an unknown priority":       {create(boards.CreateTaskRequest{Board: "one", TaskChange: boards.TaskChange{Priority: new("asap")}}), loop.ExitUsage, `priority: "asap" is not one of low, medium, high, urgent`},
		"an unknown column":         {create(boards.CreateTaskRequest{Board: "one", Status: "doing"}), loop.ExitUsage, `status: "doing" is not one of backlog, todo`},
		"an unknown board":          {create(boards.CreateTaskRequest{Board: "none"}), loop.ExitNotFound, `there is no board "none"`},
		"no board":                  {create(boards.CreateTaskRequest{}), loop.ExitNotFound, `there is no board ""`},
		"an unknown agent":          {create(boards.CreateTaskRequest{Board: "one", Assignee: "@zoe"}), loop.ExitNotFound, `there is no agent "@zoe"`},
		"an agent of another board": {create(boards.CreateTaskRequest{Board: "one", Assignee: "@bob"}), loop.ExitUsage, "@bob does not work on this board"},
		"an unknown parent":         {create(boards.CreateTaskRequest{Board: "one", TaskChange: boards.TaskChange{Parent: new("tk_x")}}), loop.ExitNotFound, `there is no task "tk_x"`},
		"a parent of another board": {create(boards.CreateTaskRequest{Board: "one", TaskChange: boards.TaskChange{Parent: new(elsewhere.ID)}}), loop.ExitUsage, "a task of another board"},
		"an invalid time":           {create(boards.CreateTaskRequest{Board: "one", TaskChange: boards.TaskChange{Due: new("soon")}}), loop.ExitUsage, `"soon" is not a time`},
		"a secret":                  {create(boards.CreateTaskRequest{Board: "one", TaskChange: boards.TaskChange{Description: new("use hunter2hunter2")}}), loop.ExitUsage, "description: it has a secret in it"},
		"the same slug":             {second(r.CreateBoard(ctx, ann, "ONE", boards.BoardChange{})), loop.ExitMissing, `another board has the slug "one"`},
		"no name":                   {second(r.CreateBoard(ctx, ann, "", boards.BoardChange{})), loop.ExitUsage, "name: it is empty"},
		"a scope of everything up":  {second(r.CreateBoard(ctx, ann, "x", boards.BoardChange{Scope: []string{"../x"}})), loop.ExitUsage, "scope: "},
		"a scope of everything":     {second(r.CreateBoard(ctx, ann, "x", boards.BoardChange{Scope: []string{"**"}})), loop.ExitUsage, "scope: "},
		"the same handle":           {agent("@ada", boards.AgentChange{Boards: []string{"one"}}), loop.ExitMissing, "another agent of the boards has this handle"},
		"an agent without a board":  {agent("cyd", boards.AgentChange{}), loop.ExitUsage, "boardIds: an agent works on one board at least"},
		"a lead who is no agent":    {agent("cyd", boards.AgentChange{Boards: []string{"one"}, Lead: new("@zoe")}), loop.ExitUsage, "cyd reports to zoe, which is not an agent"},
		"a circle":                  {second(r.SetAgent(ctx, ann, "ada", boards.AgentChange{Lead: new("bob")})), loop.ExitUsage, "reports_to goes around in a cycle"},
		"a shell as capability":     {agent("cyd", boards.AgentChange{Boards: []string{"one"}, Capabilities: []string{"go test; rm x"}}), loop.ExitUsage, "is not the beginning of one command"},
		"a short interval":          {agent("cyd", boards.AgentChange{Boards: []string{"one"}, Interval: new("5s")}), loop.ExitUsage, `interval: "5s" is not an interval from 1m to 7d`},
		"a handle that cannot be":   {agent("@Cyd_1", boards.AgentChange{Boards: []string{"one"}}), loop.ExitUsage, "is not a handle"},
		"an unknown driver":         {agent("cyd", boards.AgentChange{Boards: []string{"one"}, Driver: &roster.Change{Driver: new("gpt")}}), loop.ExitUsage, `there is no driver "gpt"`},
		"an agent that is not":      {second(r.SetAgent(ctx, ann, "zoe", boards.AgentChange{})), loop.ExitNotFound, `there is no agent of a board "@zoe"`},
		"a credential itself":       {resource(boards.ResourceChange{Category: new("credential"), Content: new("abc")}), loop.ExitUsage, "never as what it is"},
		"a secret in a document":    {resource(boards.ResourceChange{Content: new("hunter2hunter2")}), loop.ExitUsage, "content: it has a secret in it"},
		"an unknown category":       {resource(boards.ResourceChange{Category: new("key"), Content: new("c")}), loop.ExitUsage, `"key" is not one of sop, credential, documentation, general`},
		"an order upward":           {send(boards.SendRequest{From: "@bob", To: "@ada", Kind: "order"}), loop.ExitRefused, "an order goes down only"},
		"an unknown kind":           {send(boards.SendRequest{To: "@ada", Kind: "hint"}), loop.ExitUsage, `"hint" is not one of order, question`},
		"to nobody":                 {send(boards.SendRequest{To: "@zoe", Kind: "order"}), loop.ExitNotFound, "@zoe is not an agent of these boards"},
		"about an unknown task":     {send(boards.SendRequest{To: "@ada", Kind: "order", Task: "tk_x"}), loop.ExitNotFound, `there is no task "tk_x"`},
		"a long message":            {send(boards.SendRequest{To: "@ada", Kind: "order", Content: strings.Repeat("x", 10_001)}), loop.ExitUsage, "it has 10001 characters, and at most 10000 are allowed"},
		"a comment of nobody":       {second(r.Comment(ctx, ann, boards.CommentRequest{Task: task.ID, By: "@zoe", Text: "x"})), loop.ExitNotFound, `there is no agent "@zoe"`},
		"a comment below nothing":   {second(r.Comment(ctx, ann, boards.CommentRequest{Task: "tk_x", Text: "x"})), loop.ExitNotFound, `there is no task "tk_x"`},
		"an empty comment":          {second(r.Comment(ctx, ann, boards.CommentRequest{Task: task.ID, Text: " "})), loop.ExitUsage, "content: it is empty"},
		"an answer to nothing":      {second(r.Comment(ctx, ann, boards.CommentRequest{Task: task.ID, Text: "x", Parent: "cm_x"})), loop.ExitNotFound, "cm_x"},
		"a move to an unknown one":  {second(r.MoveTask(ctx, ann, task.ID, "doing")), loop.ExitUsage, `"doing" is not one of backlog`},
		"a limit":                   {second(r.ListTasks(ctx, boards.TaskQuery{})), loop.ExitUsage, "write a limit of 1 to 1000"},
		"a list of no column":       {second(r.ListTasks(ctx, boards.TaskQuery{Status: "doing", Limit: 1})), loop.ExitUsage, `"doing" is not one of backlog`},
		"a board that is not":       {second(r.ShowBoard(ctx, "none", 9)), loop.ExitNotFound, `there is no board "none"`},
		"a message that is not":     {second(r.ShowMessage(ctx, "ms_x")), loop.ExitNotFound, `there is no message "ms_x"`},
		"a resource that is not":    {second(r.ShowResource(ctx, "rs_x")), loop.ExitNotFound, `there is no resource "rs_x"`},
		"a task that is not":        {second(r.ShowTask(ctx, "tk_x")), loop.ExitNotFound, `there is no task "tk_x"`},
	} {
		t.Run(name, func(t *testing.T) { wantFault(t, c.err, c.exit, c.says) })
	}
	if diff := cmp.Diff(before, r.allRows(t)); diff != "" {
		t.Errorf("what was refused has changed something:\n%s", diff)
	}
}

// second is the error of a call.
func second[T any](_ T, err error) error { return err }

func TestAnAgentIsALoopThatFollowsItsBoardsAndTheRoster(t *testing.T) {
	onBoth(t, func(t *testing.T, r rig) {
		ctx, ann := t.Context(), verbtest.Ann
		r.addBoard(t, "one")
		must[boards.BoardView](t)(r.CreateBoard(ctx, ann, "two", boards.BoardChange{Scope: []string{"docs/**"}, Verify: new("make docs")}))
		v := r.addAgent(t, "@ada", boards.AgentChange{Boards: []string{"two", "one"}, Role: new("writer"), Interval: new("1m"), Capabilities: []string{"go test"}})
		d, l := r.definition(t, "ada")
		want := loop.Definition{
			Name: "@ada", Protocol: loop.ProtocolBoard, Pattern: "custom", Tier: loop.TierAssisted, Group: loop.AgentsGroup, Cadence: "1m", Goal: "Work as writer on the tasks of one, two",
			Scope: []string{"docs/**", "src/**"}, Verify: "( make docs\n) && ( true\n)", Capabilities: [][]string{{"go", "test"}},
		}
		if diff := cmp.Diff(want, d); diff != "" || v.Agent != "" {
			t.Errorf("the definition (-want +got):\n%s", diff)
		}
		if l.Registered.Due.IsZero() {
			t.Error("an agent that never had a heartbeat is not due")
		}
		must[boards.BoardView](t)(r.SetBoard(ctx, ann, "one", boards.BoardChange{Verify: new("make check")}))
		if d, _ := r.definition(t, "ada"); d.Verify != "( make check\n) && ( make docs\n)" {
			t.Errorf("after a change of its board it verifies by %q", d.Verify)
		}
		set := must[boards.AgentView](t)(r.SetAgent(ctx, ann, "ada", boards.AgentChange{Driver: &roster.Change{Command: new("true")}, Boards: []string{"one"}}))
		if d, _ := r.definition(t, "ada"); d.Agent != "ada" || set.Agent != "ada" || d.Verify != "make check" {
			t.Errorf("with an entry of the roster it is %+v", d)
		}
		must[boards.AgentView](t)(r.SetAgent(ctx, ann, "ada", boards.AgentChange{Dormant: new(bool)}))
		dormant := true
		must[boards.AgentView](t)(r.SetAgent(ctx, ann, "ada", boards.AgentChange{Dormant: &dormant}))
		if _, l := r.definition(t, "ada"); !l.Registered.Due.IsZero() {
			t.Errorf("a dormant agent is due at %s", l.Registered.Due)
		}
		r.addAgent(t, "command", boards.AgentChange{Boards: []string{"one"}})
		if d, _ := r.definition(t, "command"); d.Agent != "command" {
			t.Errorf("an agent with the name of a driver acts by %q", d.Agent)
		}
		must[boards.BoardView](t)(r.CreateBoard(ctx, ann, "looks", boards.BoardChange{}))
		r.addAgent(t, "eye", boards.AgentChange{Boards: []string{"looks"}})
		if d, _ := r.definition(t, "eye"); d.Tier != loop.TierReport || d.Verify != "" || d.Cadence != "20m" {
			t.Errorf("an agent of a board without a scope is %+v", d)
		}
	})
}

func TestATaskThatSomebodyHasIsNotTakenAwayByTheWay(t *testing.T) {
	r := newRig(t, verbtest.New(t))
	ctx, ann := t.Context(), verbtest.Ann
	r.addBoard(t, "one")
	r.addAgent(t, "ada", boards.AgentChange{Boards: []string{"one"}})
	task := r.addTask(t, "one", "t")
	r.claim(t, task.ID, "ada")
	_, err := r.AssignTask(ctx, ann, task.ID, "")
	wantFault(t, err, loop.ExitHeld, "@ada has claimed it", "{1}")
	back := must[boards.TaskView](t)(r.MoveTask(ctx, ann, task.ID, "todo"))
	if back.AssigneeID != "" || back.ClaimedAt != 0 || back.ExecutionStatus != "" {
		t.Errorf("a task that was taken back is %+v", back)
	}
	must[boards.BoardView](t)(r.SetBoard(ctx, ann, "one", boards.BoardChange{WIP: map[board.Status]int{board.Review: 1}}))
	other := r.addTask(t, "one", "u")
	must[boards.TaskView](t)(r.MoveTask(ctx, ann, task.ID, "review"))
	_, err = r.MoveTask(ctx, ann, other.ID, "review")
	wantFault(t, err, loop.ExitRefused, "the column review of one is full", "1 may be in it")
	must[boards.BoardView](t)(r.SetBoard(ctx, ann, "one", boards.BoardChange{WIP: map[board.Status]int{board.Review: 0}}))
	must[boards.TaskView](t)(r.MoveTask(ctx, ann, other.ID, "review"))
}

func TestOneOfManyAgentsThatClaimATaskAtOnceGetsIt(t *testing.T) {
	onBoth(t, func(t *testing.T, r rig) {
		r.addBoard(t, "one")
		const agents = 32
		for i := range agents {
			r.addAgent(t, fmt.Sprintf("a%d", i), boards.AgentChange{Boards: []string{"one"}})
		}
		task := r.addTask(t, "one", "t")
		var claims [agents]error
		var all sync.WaitGroup
		for i := range agents {
			all.Go(func() { _, claims[i] = r.ClaimTask(t.Context(), verbtest.Ann, task.ID, fmt.Sprintf("a%d", i)) })
		}
		all.Wait()
		shown := must[boards.TaskView](t)(r.ShowTask(t.Context(), task.ID))
		var won []string
		for i, err := range claims {
			if err == nil {
				won = append(won, fmt.Sprintf("a%d", i))
				continue
			}
			wantFault(t, err, loop.ExitHeld, "@"+shown.AssigneeID+" has claimed it", "{1}")
		}
		if shown.Status != board.InProgress || shown.ExecutionStatus != board.ExecutionPending || !slices.Equal(won, []string{shown.AssigneeID}) {
			t.Errorf("%v won, and the task is %+v", won, shown.Task)
		}
	})
}

func TestATaskIsClaimedOnceAndOnlyIfNobodyElseHasIt(t *testing.T) {
	r := newRig(t, verbtest.New(t))
	ctx, ann := t.Context(), verbtest.Ann
	r.addBoard(t, "one")
	r.addAgent(t, "ada", boards.AgentChange{Boards: []string{"one"}})
	r.addAgent(t, "bob", boards.AgentChange{Boards: []string{"one"}})
	task := r.addTask(t, "one", "t")
	must[boards.TaskView](t)(r.AssignTask(ctx, ann, task.ID, "ada"))
	_, err := r.ClaimTask(ctx, ann, task.ID, "@bob")
	wantFault(t, err, loop.ExitHeld, "it is assigned to @ada", "{1}")
	rows := 0
	for range 2 {
		got := must[boards.TaskView](t)(r.ClaimTask(ctx, ann, task.ID, "@ada"))
		if all := len(r.allRows(t)); got.Status != board.InProgress || got.AssigneeID != "ada" || rows != 0 && all != rows {
			t.Errorf("a task that was claimed is %+v, and there are %d rows of %d", got.Task, all, rows)
		} else {
			rows = all
		}
	}
	must[boards.TaskView](t)(r.MoveTask(ctx, ann, task.ID, "done"))
	_, err = r.ClaimTask(ctx, ann, task.ID, "ada")
	wantFault(t, err, loop.ExitHeld, "it is in done", "{2}")
	_, err = r.ClaimTask(ctx, ann, task.ID, "")
	wantFault(t, err, loop.ExitUsage, "no agent is named")
	_, err = r.ClaimTask(ctx, ann, r.addTask(t, "one", "u").ID, "zoe")
	wantFault(t, err, loop.ExitNotFound, "zoe")
}

func TestWhySaysWhoTakesATaskAndWhyNobodyDoes(t *testing.T) {
	onBoth(t, func(t *testing.T, r rig) {
		ctx, ann := t.Context(), verbtest.Ann
		r.addBoard(t, "one")
		task := r.addTask(t, "one", "first")
		words := func(id string) string { return must[boards.TaskWhy](t)(r.WhyTask(ctx, id)).Words }
		if got := words(task.ID); got != "no agent works on its board" {
			t.Errorf("without an agent: %s", got)
		}
		r.addAgent(t, "ada", boards.AgentChange{Boards: []string{"one"}})
		if got := words(task.ID); got != "@ada would take it next; whoever has its heartbeat first does" {
			t.Errorf("with an agent: %s", got)
		}
		urgent := r.addTask(t, "one", "urgent")
		must[boards.TaskView](t)(r.SetTask(ctx, ann, urgent.ID, boards.TaskChange{Priority: new("urgent")}))
		why := must[boards.TaskWhy](t)(r.WhyTask(ctx, task.ID))
		if a := why.Agents[0]; a.Reason != loop.ReasonOutranked || a.Detail != urgent.ID+" goes first" || len(a.Routes) != 1 || !strings.HasPrefix(a.Routes[0], "one 1.100 = 1 × urgency 1.00 ("+urgent.ID+")") {
			t.Errorf("of an outranked task: %+v", why)
		}
		must[boards.MessageView](t)(r.Send(ctx, ann, boards.SendRequest{To: "ada", Kind: "question", Content: "which?", Task: task.ID}))
		if got := words(task.ID); got != "nobody takes it: a question of a person to the agent has no answer yet" {
			t.Errorf("with an open question: %s", got)
		}
		r.claim(t, urgent.ID, "ada")
		if got := words(urgent.ID); got != "@ada would take it next; whoever has its heartbeat first does" {
			t.Errorf("of a task whose claim is over: %s", got)
		}
		r.claim(t, urgent.ID, "ada", func(t *board.Task) { t.ExecutionStatus = board.ExecutionApproval })
		if got := words(urgent.ID); got != "@ada works on it" {
			t.Errorf("of a task that waits for a person: %s", got)
		}
	})
}

func TestMessagesAreDeliveredToTheLoopOfTheAgent(t *testing.T) {
	onBoth(t, func(t *testing.T, r rig) {
		ctx, ann := t.Context(), verbtest.Ann
		r.addBoard(t, "one")
		r.addAgent(t, "ada", boards.AgentChange{Boards: []string{"one"}})
		r.addAgent(t, "lee", boards.AgentChange{Boards: []string{"one"}, Layer: new("lead"), Leads: new("one")})
		task := r.addTask(t, "one", "t")
		m := must[boards.MessageView](t)(r.Send(ctx, ann, boards.SendRequest{From: "@lee", To: "@ada", Kind: "order", Content: "first", Task: task.ID}))
		var waits []loop.Delivery
		err := r.Store.View(ctx, func(rd *store.Reader) (err error) {
			waits, err = rd.Undelivered(ctx, r.Workspace.ID, "@ada", 9)
			return err
		})
		if err != nil || len(waits) != 1 || waits[0].From != "@lee" || waits[0].Kind != "order" || waits[0].Topic != task.ID || waits[0].Key != m.ID {
			t.Errorf("%+v waits, %v", waits, err)
		}
		shown := must[boards.MessageView](t)(r.ShowMessage(ctx, m.ID))
		if shown.Acknowledged || shown.Content != "first" || shown.FromAgentID != "lee" {
			t.Errorf("message %+v", shown)
		}
		if all := must[[]boards.MessageView](t)(r.ListMessages(ctx, boards.MessageQuery{To: "ada", Limit: 9})); len(all) != 1 {
			t.Errorf("messages %+v", all)
		}
		if all := must[[]boards.MessageView](t)(r.ListMessages(ctx, boards.MessageQuery{From: "ada", Limit: 9})); len(all) != 0 {
			t.Errorf("messages from ada %+v", all)
		}
		for range 9 {
			must[boards.MessageView](t)(r.Send(ctx, ann, boards.SendRequest{From: "@ada", To: "@lee", Kind: "question", Content: "and now?", Task: task.ID}))
		}
		_, err = r.Send(ctx, ann, boards.SendRequest{From: "@ada", To: "@lee", Kind: "question", Content: "and now?", Task: task.ID})
		wantFault(t, err, loop.ExitRefused, "have sent each other 10 messages on this within an hour")
	})
}

func TestEveryWriteIsInTheAuditChain(t *testing.T) {
	r := newRig(t, verbtest.New(t))
	ctx, ann := t.Context(), verbtest.Ann
	r.addBoard(t, "one")
	r.addAgent(t, "ada", boards.AgentChange{Boards: []string{"one"}})
	task := r.addTask(t, "one", "t")
	must[boards.TaskView](t)(r.MoveTask(ctx, ann, task.ID, "todo"))
	must[boards.TaskView](t)(r.AssignTask(ctx, ann, task.ID, "ada"))
	must[boards.TaskView](t)(r.ClaimTask(ctx, ann, task.ID, "ada"))
	must[boards.TaskView](t)(r.SetTask(ctx, ann, task.ID, boards.TaskChange{Title: new("u")}))
	must[boards.Commented](t)(r.Comment(ctx, ann, boards.CommentRequest{Task: task.ID, Text: "x"}))
	must[boards.MessageView](t)(r.Send(ctx, ann, boards.SendRequest{To: "ada", Kind: "order", Content: "c"}))
	made := must[boards.ResourceView](t)(r.CreateResource(ctx, ann, boards.CreateResourceRequest{Board: "one", ResourceChange: boards.ResourceChange{Title: new("t"), Content: new("c")}}))
	must[boards.ResourceView](t)(r.SetResource(ctx, ann, made.ID, boards.ResourceChange{Content: new("d")}))
	must[boards.BoardView](t)(r.SetBoard(ctx, ann, "one", boards.BoardChange{Name: new("One")}))
	must[boards.AgentView](t)(r.SetAgent(ctx, ann, "ada", boards.AgentChange{Role: new("dev")}))
	must[boards.Imported](t)(r.Import(ctx, ann, boards.ImportRequest{Document: `{"boards":[{"name":"two"}]}`}))
	var verbs []string
	err := r.Store.View(ctx, func(rd *store.Reader) error {
		links, err := rd.Chain(ctx, r.Workspace.ID)
		for _, l := range links {
			var body struct {
				Verb  string     `json:"verb"`
				Actor loop.Actor `json:"actor"`
			}
			if l.Kind != loop.LinkBoard {
				continue
			}
			if err := json.Unmarshal([]byte(l.Body), &body); err != nil || body.Actor != ann {
				t.Errorf("link %s: %v", l.Body, err)
			}
			verbs = append(verbs, body.Verb)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"board create", "agent create", "task create", "task move", "task assign", "task claim", "task set", "task comment", "msg send", "resource create", "resource set", "board set", "agent set", "board import"}
	if diff := cmp.Diff(want, verbs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWithoutAStoreThereIsNothingAndNothingFails(t *testing.T) {
	r := newRig(t, verbtest.New(t))
	bare := newRig(t, r.WithoutStore())
	ctx := t.Context()
	if all := must[[]boards.BoardRow](t)(bare.ListBoards(ctx)); len(all) != 0 {
		t.Errorf("boards %v", all)
	}
	if all := must[[]boards.TaskRow](t)(bare.ListTasks(ctx, boards.TaskQuery{Limit: 9})); len(all) != 0 {
		t.Errorf("tasks %v", all)
	}
	if all := must[[]boards.AgentView](t)(bare.ListAgents(ctx)); len(all) != 0 {
		t.Errorf("agents %v", all)
	}
	if d := must[board.Document](t)(bare.Export(ctx, boards.ExportQuery{})); len(d.Boards) != 0 || d.Boards == nil {
		t.Errorf("document %v", d)
	}
	plan := must[boards.Imported](t)(bare.PlanImport(ctx, boards.ImportRequest{Document: `{"boards":[{"name":"one"}]}`}))
	if plan.Added != 1 {
		t.Errorf("plan %+v", plan)
	}
	wantFault(t, second(bare.ShowBoard(ctx, "one", 9)), loop.ExitNotFound, `there is no board "one"`)
	wantFault(t, second(bare.ShowTask(ctx, "tk_1")), loop.ExitNotFound, `there is no task "tk_1"`)
	wantFault(t, second(bare.WhyTask(ctx, "tk_1")), loop.ExitNotFound, `there is no task "tk_1"`)
	wantFault(t, second(bare.Activity(ctx, boards.Page{Board: "one", Limit: 9})), loop.ExitNotFound, `there is no board "one"`)
}
