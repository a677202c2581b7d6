package board

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/rules/schedule"
)

// Limits of what boards hold, in characters and entries.
const (
	MostTitle    = 200 // also of names, roles and phases
	MostText     = 5000
	MostContent  = 10_000 // of an entry of a log, a comment, a message, an error
	MostResource = 100_000
	MostTags     = 20 // also of skills
	MostTag      = 100
	MostLog      = 1000 // entries of a task's log; the oldest are dropped
	MostBoards   = 50   // of one agent
	MostPrefixes = 100  // of one agent, and words of each
	MostGlobs    = 200
)

// mostInterval is the longest time between two heartbeats.
const mostInterval = 7 * 24 * time.Hour

// Invalid is one field that cannot be stored as it is.
type Invalid struct {
	Field   string // by its name in JSON
	Problem string // with the value and the limit
}

// String is the problem with its field.
func (i Invalid) String() string { return i.Field + ": " + i.Problem }

type checker []Invalid

func (c *checker) report(field, format string, args ...any) {
	*c = append(*c, Invalid{field, fmt.Sprintf(format, args...)})
}

// text checks a text of at most so many characters.
func (c *checker) text(field, text string, most int) {
	if n := utf8.RuneCountInString(text); n > most {
		c.report(field, "it has %d characters, and at most %d are allowed", n, most)
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		c.report(field, "it is not text in UTF-8, or has a zero byte")
	}
}

// line checks a text in one line that has to be there.
func (c *checker) line(field, text string, most int) {
	if strings.TrimSpace(text) == "" {
		c.report(field, "it is empty")
	}
	if strings.ContainsAny(text, "\r\n") {
		c.report(field, "it has several lines")
	}
	c.text(field, text, most)
}

func (c *checker) list(field string, list []string, most, mostEach int) {
	if len(list) > most {
		c.report(field, "it has %d entries, and at most %d are allowed", len(list), most)
	}
	for _, entry := range list {
		c.line(field, entry, mostEach)
	}
}

func (c *checker) handle(field, text string, or ...string) {
	if !IsHandle(text) && !slices.Contains(or, text) {
		c.report(field, "%.60q is not a handle: a to z, 0 to 9 and single dashes, beginning with a letter, at most %d characters", text, LongestHandle)
	}
}

// idForm is what can be an id: those of other programs are kept.
var idForm = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,199}$`)

func (c *checker) id(field, text string) {
	if !idForm.MatchString(text) {
		c.report(field, "%.60q is not an id: letters, digits and _ . : / - only, at most 200", text)
	}
}

func (c *checker) optionalID(field, text string) {
	if text != "" {
		c.id(field, text)
	}
}

// oneOf checks a word of a fixed list.
func oneOf[T ~string](c *checker, field string, value T, all []T) {
	if slices.Contains(all, value) {
		return
	}
	var words []string
	for _, v := range all {
		words = append(words, string(v))
	}
	c.report(field, "%.60q is not one of %s", string(value), strings.Join(words, ", "))
}

func (c *checker) times(field string, all ...Millis) {
	for _, t := range all {
		if t < 0 || t.Time().Year() > 9999 {
			c.report(field, "%d is not a time from 1970 to 9999 in milliseconds", t)
		}
	}
}

var slugForm = lazyregexp.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Check returns what is wrong with a board in itself.
func (b Board) Check() []Invalid {
	var c checker
	c.id("id", b.ID)
	c.line("name", b.Name, MostTitle)
	if !slugForm.MatchString(b.Slug) || len(b.Slug) > 60 {
		c.report("slug", "%.80q is not a slug: a to z, 0 to 9 and single dashes, at most 60 characters", b.Slug)
	}
	c.text("description", b.Description, MostText)
	c.text("icon", b.Icon, MostTag)
	c.text("color", b.Color, MostTag)
	c.list("scope", b.Scope, MostGlobs, MostText)
	c.text("verify", b.Verify, MostText)
	c.text("guard", b.Guard, MostText)
	for _, s := range slices.Sorted(maps.Keys(b.WIP)) {
		oneOf(&c, "wip", s, Statuses())
		if b.WIP[s] < 1 {
			c.report("wip", "%s=%d: write how many tasks the column may have, from 1", s, b.WIP[s])
		}
	}
	c.times("createdAt", b.CreatedAt)
	return c
}

// Check returns what is wrong with a task in itself.
func (t Task) Check() []Invalid {
	var c checker
	c.id("id", t.ID)
	c.id("boardId", t.BoardID)
	c.line("title", t.Title, MostTitle)
	c.text("description", t.Description, MostText)
	oneOf(&c, "status", t.Status, Statuses())
	oneOf(&c, "priority", t.Priority, Priorities())
	if t.AssigneeID != "" {
		c.handle("assigneeId", t.AssigneeID)
	}
	if t.CreatedBy != "" {
		c.handle("createdBy", t.CreatedBy)
	}
	c.optionalID("parentTaskId", t.ParentTaskID)
	if t.ParentTaskID == t.ID && t.ID != "" {
		c.report("parentTaskId", "it is the task itself")
	}
	c.text("acceptanceCriteria", t.AcceptanceCriteria, MostText)
	c.list("requiredSkills", t.RequiredSkills, MostTags, MostTag)
	c.list("tags", t.Tags, MostTags, MostTag)
	c.times("claimedAt, completedAt, dueDate or createdAt", t.ClaimedAt, t.CompletedAt, t.DueDate, t.CreatedAt)
	if t.Order < 0 {
		c.report("order", "%d is less than 0", t.Order)
	}
	if t.ExecutionStatus != "" {
		oneOf(&c, "executionStatus", t.ExecutionStatus, ExecutionStatuses())
	}
	if n := len(t.ExecutionLog); n > MostLog {
		c.report("executionLog", "it has %d entries, and at most %d are kept", n, MostLog)
	}
	for _, e := range t.ExecutionLog {
		c = append(c, e.Check()...)
	}
	return c
}

// Check returns what is wrong with an entry of a log.
func (e LogEntry) Check() []Invalid {
	var c checker
	oneOf(&c, "executionLog.type", e.Type, LogTypes())
	c.text("executionLog.content", e.Content, MostContent)
	c.times("executionLog.timestamp", e.Timestamp)
	return c
}

// Check returns what is wrong with a comment in itself.
func (m Comment) Check() []Invalid {
	var c checker
	c.id("id", m.ID)
	c.id("taskId", m.TaskID)
	c.optionalID("parentId", m.ParentID)
	oneOf(&c, "authorType", m.AuthorType, []AuthorType{ByAgent, ByHuman})
	if m.AuthorType == ByHuman {
		c.line("authorId", m.AuthorID, MostTitle)
	} else {
		c.handle("authorId", m.AuthorID)
	}
	c.content(m.Content, MostContent)
	for _, h := range m.Mentions {
		c.handle("mentions", h)
	}
	c.times("createdAt", m.CreatedAt)
	return c
}

func (c *checker) content(text string, most int) {
	if strings.TrimSpace(text) == "" {
		c.report("content", "it is empty")
	}
	c.text("content", text, most)
}

// Check returns what is wrong with an agent in itself. Whether its lead and its boards are
// there is not asked.
func (m Member) Check() []Invalid {
	var c checker
	c.handle("handle", m.Handle)
	if m.Handle == Human || m.Handle == "owner" {
		c.report("handle", "@%s means a person", m.Handle)
	}
	c.line("name", m.Name, MostTitle)
	c.line("role", m.Role, MostTitle)
	oneOf(&c, "layer", m.Layer, Layers())
	c.list("skills", m.Skills, MostTags, MostTag)
	if len(m.Capabilities) > MostPrefixes {
		c.report("capabilities", "it has %d entries, and at most %d are allowed", len(m.Capabilities), MostPrefixes)
	}
	for _, p := range m.Capabilities {
		if len(p) == 0 {
			c.report("capabilities", "a prefix without a word allows every command")
		}
		c.list("capabilities", p, MostPrefixes, MostTitle)
	}
	if len(m.BoardIDs) == 0 {
		c.report("boardIds", "an agent works on one board at least")
	}
	c.list("boardIds", m.BoardIDs, MostBoards, MostTag)
	c.optionalID("leadBoardId", m.LeadBoardID)
	if m.LeadBoardID != "" && !m.On(m.LeadBoardID) {
		c.report("leadBoardId", "it does not work on %s, which it leads", m.LeadBoardID)
	}
	if m.Lead != "" {
		c.handle("lead", m.Lead)
	}
	if m.Lead != "" && m.Lead == m.Handle {
		c.report("lead", "it is the agent itself")
	}
	if m.Interval != "" {
		cadence, err := schedule.Parse(m.Interval)
		if d, ok := cadence.Interval(); err != nil || !ok || d > mostInterval {
			c.report("interval", "%.40q is not an interval from 1m to 7d, such as 20m", m.Interval)
		}
	}
	c.times("createdAt", m.CreatedAt)
	return c
}

// Check returns what is wrong with a message in itself.
func (m Message) Check() []Invalid {
	var c checker
	c.handle("fromAgentId", m.FromAgentID)
	c.handle("toAgentId", m.ToAgentID)
	oneOf(&c, "messageType", m.MessageType, append(MessageTypes(), Answer))
	c.content(m.Content, MostContent)
	c.optionalID("taskId", m.TaskID)
	c.optionalID("answers", m.Answers)
	c.text("response", m.Response, MostContent)
	c.times("sentAt", m.SentAt)
	return c
}

// referenceForm is a variable of the environment.
var referenceForm = lazyregexp.New(`^\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})$`)

// Check returns what is wrong with a resource in itself.
func (r Resource) Check() []Invalid {
	var c checker
	c.id("id", r.ID)
	c.id("boardId", r.BoardID)
	c.line("title", r.Title, MostTitle)
	oneOf(&c, "category", r.Category, Categories())
	c.content(r.Content, MostResource)
	if r.Category == Credential && !referenceForm.MatchString(strings.TrimSpace(r.Content)) {
		c.report("content", "a credential is kept as a reference to the environment, such as $API_TOKEN, and never as what it is")
	}
	c.times("createdAt", r.CreatedAt)
	return c
}

// Check returns what is wrong with an activity in itself.
func (a Activity) Check() []Invalid {
	var c checker
	c.id("id", a.ID)
	c.optionalID("boardId", a.BoardID)
	c.optionalID("taskId", a.TaskID)
	oneOf(&c, "actorType", a.ActorType, AuthorTypes())
	oneOf(&c, "actionType", a.ActionType, ActionTypes())
	c.text("message", a.Message, MostContent)
	c.times("createdAt", a.CreatedAt)
	return c
}

// Check returns what is wrong with a mention in itself.
func (s Subscription) Check() []Invalid {
	var c checker
	c.id("id", s.ID)
	c.handle("agentId", s.AgentID)
	c.optionalID("taskId", s.TaskID)
	c.optionalID("commentId", s.CommentID)
	c.times("mentionedAt", s.MentionedAt)
	return c
}

// Check returns what is wrong with an error in itself.
func (e Error) Check() []Invalid {
	var c checker
	c.id("id", e.ID)
	c.handle("agentId", e.AgentID)
	c.line("phase", e.Phase, MostTitle)
	c.text("message", e.Message, MostContent)
	c.optionalID("taskId", e.TaskID)
	c.times("timestamp", e.Timestamp)
	return c
}

// SlugOf makes a slug of a name; empty if nothing of the name can be in one.
func SlugOf(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	text := strings.Join(words, "-")
	return strings.Trim(text[:min(len(text), 60)], "-")
}
