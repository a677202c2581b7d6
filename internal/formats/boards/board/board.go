// Package board holds the nouns and the rules of heartbeat boards: boards and tasks, the
// agents that work on them, what these say to each other, which board an agent turns to,
// which task it may take, and why it takes no other.
//
// It performs no I/O, reads no clock and generates no ids: a caller passes the time in, and
// the same inputs always give the same answer. It changes nothing that it was given.
package board

import "github.com/pawl-run/pawl/internal/rules/loop"

// Sets of rows, and what begins the ids of those that have one. Members and minds are found
// by the handle of their agent; messages between agents are deliveries, and not rows.
const (
	SetBoards        = "boards"
	SetTasks         = "tasks"
	SetComments      = "comments"
	SetMembers       = "members"
	SetMinds         = "minds"
	SetActivity      = "activity"
	SetSubscriptions = "subscriptions"
	SetResources     = "resources"
	SetErrors        = "errors"
	SetLog           = "log"

	PrefixBoard        = "bd"
	PrefixTask         = "tk"
	PrefixComment      = "cm"
	PrefixActivity     = "ac"
	PrefixSubscription = "sb"
	PrefixResource     = "rs"
	PrefixError        = "er"
)

// Human is who a person is, where an agent would have its handle.
const Human = "human"

// Board is a set of tasks with what may be touched for them, and how results are checked.
type Board struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Slug        string `json:"slug"` // unique; a board is called by it or by its id
	Description string `json:"description,omitempty"`
	Icon        string `json:"icon,omitempty"`
	Color       string `json:"color,omitempty"`
	CreatedAt   Millis `json:"createdAt,omitempty"`

	Scope  []string       `json:"scope,omitempty"` // globs of the files that may be changed
	Verify string         `json:"verify,omitempty"`
	Guard  string         `json:"guard,omitempty"`
	WIP    map[Status]int `json:"wip,omitempty"`    // most tasks in a column; absent: any number
	Waived bool           `json:"waived,omitempty"` // tasks are ready without an SOP or documentation
}

// Task is one piece of work of a board. It belongs to nobody until it is claimed.
type Task struct {
	ID                 string          `json:"id"`
	BoardID            string          `json:"boardId"`
	Title              string          `json:"title"`
	Description        string          `json:"description,omitempty"`
	Status             Status          `json:"status"`
	Priority           Priority        `json:"priority"`
	AssigneeID         string          `json:"assigneeId,omitempty"`   // handle
	CreatedBy          string          `json:"createdBy,omitempty"`    // handle, or human
	ParentTaskID       string          `json:"parentTaskId,omitempty"` // that has to be done before
	AcceptanceCriteria string          `json:"acceptanceCriteria,omitempty"`
	RequiredSkills     []string        `json:"requiredSkills,omitempty"`
	ClaimedAt          Millis          `json:"claimedAt,omitempty"`
	CompletedAt        Millis          `json:"completedAt,omitempty"`
	DueDate            Millis          `json:"dueDate,omitempty"`
	Tags               []string        `json:"tags,omitempty"`
	Order              int             `json:"order"`
	ExecutionLog       []LogEntry      `json:"executionLog,omitempty"` // in a document; the store keeps entries apart
	ExecutionStatus    ExecutionStatus `json:"executionStatus,omitempty"`
	CreatedAt          Millis          `json:"createdAt,omitempty"`

	TextBy loop.Role `json:"textBy,omitempty"` // who wrote its texts, if one of them is not a person's; see Author

	Flagged string `json:"flagged,omitempty"` // what Digest was when its lead was told that it is not ready
}

// Author is the role of who wrote the texts of the task: a person only if all of them are
// a person's.
func (t Task) Author() loop.Role {
	switch {
	case t.TextBy != "":
		return t.TextBy
	case AuthorOf(t.CreatedBy) == ByAgent:
		return loop.RoleAgent
	}
	return loop.RoleHuman
}

// LogEntry is one line of what happened to a task.
type LogEntry struct {
	Timestamp Millis  `json:"timestamp"`
	Type      LogType `json:"type"`
	Content   string  `json:"content"`
}

// Comment is what somebody says below a task.
type Comment struct {
	ID         string     `json:"id"`
	TaskID     string     `json:"taskId"`
	ParentID   string     `json:"parentId,omitempty"` // the comment that it answers
	AuthorType AuthorType `json:"authorType"`
	AuthorID   string     `json:"authorId"` // handle, or who a person is
	Content    string     `json:"content"`
	Mentions   []string   `json:"mentions,omitempty"` // handles
	CreatedAt  Millis     `json:"createdAt,omitempty"`
}

// Activity is one line of what happened on a board.
type Activity struct {
	ID         string     `json:"id"`
	BoardID    string     `json:"boardId,omitempty"`
	ActorType  AuthorType `json:"actorType"`
	ActorID    string     `json:"actorId,omitempty"` // handle, or human
	ActionType ActionType `json:"actionType"`
	Message    string     `json:"message"`
	TaskID     string     `json:"taskId,omitempty"`
	CreatedAt  Millis     `json:"createdAt,omitempty"`
}

// Subscription is a mention that an agent has to answer.
type Subscription struct {
	ID           string `json:"id"`
	AgentID      string `json:"agentId"` // handle of who was mentioned
	TaskID       string `json:"taskId,omitempty"`
	CommentID    string `json:"commentId,omitempty"`
	MentionedAt  Millis `json:"mentionedAt"`
	Acknowledged bool   `json:"acknowledged"`
}

// Message is what one agent sends to another, or a person to an agent.
type Message struct {
	ID           string      `json:"id"`
	FromAgentID  string      `json:"fromAgentId"` // handle, or human
	ToAgentID    string      `json:"toAgentId"`   // handle, or human
	MessageType  MessageType `json:"messageType"`
	Content      string      `json:"content"`
	TaskID       string      `json:"taskId,omitempty"`
	Answers      string      `json:"answers,omitempty"` // id of the message that this one answers
	Acknowledged bool        `json:"acknowledged"`
	Response     string      `json:"response,omitempty"`
	SentAt       Millis      `json:"sentAt,omitempty"`
}

// Resource is something that agents of a board are to know.
type Resource struct {
	ID        string   `json:"id"`
	BoardID   string   `json:"boardId"`
	Title     string   `json:"title"`
	Content   string   `json:"content"` // of a credential: $NAME of the environment
	Category  Category `json:"category"`
	CreatedAt Millis   `json:"createdAt,omitempty"`
}

// Error is one thing that went wrong in a heartbeat.
type Error struct {
	ID        string `json:"id"`
	AgentID   string `json:"agentId"` // handle
	Phase     string `json:"phase"`
	Message   string `json:"message"`
	TaskID    string `json:"taskId,omitempty"`
	Timestamp Millis `json:"timestamp"`
}
