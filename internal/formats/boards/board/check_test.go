package board_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
)

func repeat[T any](n int, v T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = v
	}
	return all
}

func TestEachLimitIsSaidWithItsFieldAndTheValue(t *testing.T) {
	type fault = board.Invalid
	b := board.Board{ID: "bd_1", Name: "n", Slug: "n"}
	task := board.Task{ID: "tk_1", BoardID: "bd_1", Title: "t", Status: board.Todo, Priority: board.Low}
	member := board.Member{Handle: "ada", Name: "Ada", Role: "developer", Layer: board.Lead, BoardIDs: []string{"bd_1"}}
	comment := board.Comment{ID: "cm_1", TaskID: "tk_1", AuthorType: board.ByHuman, AuthorID: board.Human, Content: "c"}
	message := board.Message{FromAgentID: board.Human, ToAgentID: "ada", MessageType: board.Order, Content: "c"}
	resource := board.Resource{ID: "rs_1", BoardID: "bd_1", Title: "t", Content: "c", Category: board.SOP}
	for name, c := range map[string]struct{ got, want []fault }{
		"a board":   {b.Check(), nil},
		"a task":    {task.Check(), nil},
		"an agent":  {member.Check(), nil},
		"a comment": {comment.Check(), nil},
		"a message": {message.Check(), nil},
		"an answer to an answer": {with(message, func(m *board.Message) {
			m.MessageType, m.Answers = board.Answer, "answer/answer/ms_06h1gnk6cgb0arnsatvgs4433s"
		}).Check(), nil},
		"a resource":                 {resource.Check(), nil},
		"an activity":                {board.Activity{ID: "ac_1", ActorType: board.BySystem, ActionType: board.TaskMoved}.Check(), nil},
		"a mention":                  {board.Subscription{ID: "sb_1", AgentID: "ada"}.Check(), nil},
		"an error":                   {board.Error{ID: "er_1", AgentID: "ada", Phase: "route"}.Check(), nil},
		"a credential by reference":  {with(resource, func(r *board.Resource) { r.Category, r.Content = board.Credential, "$API_TOKEN" }).Check(), nil},
		"another form of one":        {with(resource, func(r *board.Resource) { r.Category, r.Content = board.Credential, "${API_TOKEN}" }).Check(), nil},
		"200 characters, not bytes":  {with(task, func(t *board.Task) { t.Title = strings.Repeat("é", 200) }).Check(), nil},
		"a long title":               {with(task, func(t *board.Task) { t.Title = strings.Repeat("x", 201) }).Check(), []fault{{"title", "it has 201 characters, and at most 200 are allowed"}}},
		"no title":                   {with(task, func(t *board.Task) { t.Title = " " }).Check(), []fault{{"title", "it is empty"}}},
		"a title of two lines":       {with(task, func(t *board.Task) { t.Title = "a\nb" }).Check(), []fault{{"title", "it has several lines"}}},
		"a long description":         {with(task, func(t *board.Task) { t.Description = strings.Repeat("x", 5001) }).Check(), []fault{{"description", "it has 5001 characters, and at most 5000 are allowed"}}},
		"long criteria":              {with(task, func(t *board.Task) { t.AcceptanceCriteria = strings.Repeat("x", 5001) }).Check(), []fault{{"acceptanceCriteria", "it has 5001 characters, and at most 5000 are allowed"}}},
		"many tags":                  {with(task, func(t *board.Task) { t.Tags = repeat(21, "x") }).Check(), []fault{{"tags", "it has 21 entries, and at most 20 are allowed"}}},
		"many skills":                {with(task, func(t *board.Task) { t.RequiredSkills = repeat(21, "x") }).Check(), []fault{{"requiredSkills", "it has 21 entries, and at most 20 are allowed"}}},
		"many skills of an agent":    {with(member, func(m *board.Member) { m.Skills = repeat(21, "x") }).Check(), []fault{{"skills", "it has 21 entries, and at most 20 are allowed"}}},
		"a long entry":               {board.LogEntry{Type: board.LogInfo, Content: strings.Repeat("x", 10_001)}.Check(), []fault{{"executionLog.content", "it has 10001 characters, and at most 10000 are allowed"}}},
		"many entries":               {with(task, func(t *board.Task) { t.ExecutionLog = repeat(1001, board.LogEntry{Type: board.LogInfo}) }).Check(), []fault{{"executionLog", "it has 1001 entries, and at most 1000 are kept"}}},
		"an unknown column":          {with(task, func(t *board.Task) { t.Status = "doing" }).Check(), []fault{{"status", `"doing" is not one of backlog, todo, in_progress, review, done, failed`}}},
		"an unknown priority":        {with(task, func(t *board.Task) { t.Priority = "asap" }).Check(), []fault{{"priority", `"asap" is not one of low, medium, high, urgent`}}},
		"an unknown layer":           {with(member, func(m *board.Member) { m.Layer = "boss" }).Check(), []fault{{"layer", `"boss" is not one of strategic, analyst, lead, specialist`}}},
		"an unknown kind of message": {with(message, func(m *board.Message) { m.MessageType = "hint" }).Check(), []fault{{"messageType", `"hint" is not one of order, question, report, suggestion, answer`}}},
		"an unknown category":        {with(resource, func(r *board.Resource) { r.Category = "secret" }).Check(), []fault{{"category", `"secret" is not one of sop, credential, documentation, general`}}},
		"a comment of the system":    {with(comment, func(c *board.Comment) { c.AuthorType = board.BySystem }).Check(), []fault{{"authorType", `"system" is not one of agent, human`}}},
		"a credential itself":        {with(resource, func(r *board.Resource) { r.Category = board.Credential }).Check(), []fault{{"content", "a credential is kept as a reference to the environment, such as $API_TOKEN, and never as what it is"}}},
		"no board":                   {with(member, func(m *board.Member) { m.BoardIDs = nil }).Check(), []fault{{"boardIds", "an agent works on one board at least"}}},
		"a board that it is not on":  {with(member, func(m *board.Member) { m.LeadBoardID = "bd_2" }).Check(), []fault{{"leadBoardId", "it does not work on bd_2, which it leads"}}},
		"its own lead":               {with(member, func(m *board.Member) { m.Lead = "ada" }).Check(), []fault{{"lead", "it is the agent itself"}}},
		"a person's handle":          {with(member, func(m *board.Member) { m.Handle = "human" }).Check(), []fault{{"handle", "@human means a person"}}},
		"no handle":                  {with(member, func(m *board.Member) { m.Handle = "Ada L" }).Check(), []fault{{"handle", `"Ada L" is not a handle: a to z, 0 to 9 and single dashes, beginning with a letter, at most 32 characters`}}},
		"a short interval":           {with(member, func(m *board.Member) { m.Interval = "59s" }).Check(), []fault{{"interval", `"59s" is not an interval from 1m to 7d, such as 20m`}}},
		"every command":              {with(member, func(m *board.Member) { m.Capabilities = []board.Prefix{{}} }).Check(), []fault{{"capabilities", "a prefix without a word allows every command"}}},
		"a column of zero":           {with(b, func(b *board.Board) { b.WIP = map[board.Status]int{board.Review: 0} }).Check(), []fault{{"wip", "review=0: write how many tasks the column may have, from 1"}}},
		"a slug that cannot be":      {with(b, func(b *board.Board) { b.Slug = "A b" }).Check(), []fault{{"slug", `"A b" is not a slug: a to z, 0 to 9 and single dashes, at most 60 characters`}}},
		"an id that cannot be":       {with(b, func(b *board.Board) { b.ID = "../x" }).Check(), []fault{{"id", `"../x" is not an id: letters, digits and _ . : / - only, at most 200`}}},
		"a time that cannot be":      {with(b, func(b *board.Board) { b.CreatedAt = -1 }).Check(), []fault{{"createdAt", "-1 is not a time from 1970 to 9999 in milliseconds"}}},
		"its own parent":             {with(task, func(t *board.Task) { t.ParentTaskID = "tk_1" }).Check(), []fault{{"parentTaskId", "it is the task itself"}}},
		"a zero byte":                {with(comment, func(c *board.Comment) { c.Content = "a\x00" }).Check(), []fault{{"content", "it is not text in UTF-8, or has a zero byte"}}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func with[T any](v T, change func(*T)) T {
	change(&v)
	return v
}

func TestTimesAreMillisecondsAndAreReadAsTextToo(t *testing.T) {
	for text, want := range map[string]board.Millis{
		`1777896000000`:                    board.At(noon),
		`1777896000000.75`:                 board.At(noon),
		`1.777896e12`:                      board.At(noon),
		`"2026-05-04T12:00:00Z"`:           board.At(noon),
		`"2026-05-04T14:00:00.0005+02:00"`: board.At(noon),
		`null`:                             0,
		`""`:                               0,
	} {
		var got board.Millis
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s is %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{`"soon"`, `true`, `1e300`, `[]`} {
		if err := json.Unmarshal([]byte(text), new(board.Millis)); err == nil {
			t.Errorf("%s is a time", text)
		}
	}
	if got := board.At(time.Time{}); got != 0 || !board.Millis(0).Time().IsZero() {
		t.Errorf("no time is %d", got)
	}
}

func TestASlugIsMadeOfAName(t *testing.T) {
	for name, want := range map[string]string{"Site  & Shop!": "site-shop", "été": "t", "!!": "", strings.Repeat("ab ", 40): strings.TrimSuffix(strings.Repeat("ab-", 20), "-")} {
		if got := board.SlugOf(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func TestRowsHoldWhatTheyAreMadeOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, _, _ := drawScene(t)
		for _, task := range s.Tasks {
			row := task.Row()
			if got, err := board.FromRow[board.Task](row); err != nil || !cmp.Equal(got, task) || row.Scope != task.BoardID || row.State != string(task.Status) || row.Owner != task.AssigneeID {
				t.Fatalf("%+v, %v", row, err)
			}
		}
		for _, m := range s.Members {
			if got, err := board.FromRow[board.Member](m.Row()); err != nil || !cmp.Equal(got, m) {
				t.Fatalf("%+v, %v", got, err)
			}
		}
		for _, m := range s.Messages {
			if got := board.FromDelivery(m.Delivery()); !cmp.Equal(got, m) {
				t.Fatalf("%+v is %+v", m, got)
			}
		}
	})
}
