package board

import "slices"

// Status is the column of a task.
type Status string

// The columns. A board shows failed tasks with those that are to be reviewed.
const (
	Backlog    Status = "backlog"
	Todo       Status = "todo"
	InProgress Status = "in_progress"
	Review     Status = "review"
	Done       Status = "done"
	Failed     Status = "failed"
)

// Statuses are all columns, from left to right.
func Statuses() []Status { return []Status{Backlog, Todo, InProgress, Review, Done, Failed} }

// Waits reports whether a task of the column waits for somebody to begin it.
func (s Status) Waits() bool { return s == Backlog || s == Todo }

// Priority says how important a task is.
type Priority string

// The priorities.
const (
	Low    Priority = "low"
	Medium Priority = "medium"
	High   Priority = "high"
	Urgent Priority = "urgent"
)

// Priorities are all priorities, the lowest first.
func Priorities() []Priority { return []Priority{Low, Medium, High, Urgent} }

// ExecutionStatus is where the work on a task stands.
type ExecutionStatus string

// The states of execution. The zero ExecutionStatus: nobody has begun.
const (
	ExecutionPending   ExecutionStatus = "pending"
	ExecutionRunning   ExecutionStatus = "running"
	ExecutionApproval  ExecutionStatus = "pending_approval"
	ExecutionCompleted ExecutionStatus = "completed"
	ExecutionFailed    ExecutionStatus = "failed"
)

// ExecutionStatuses are all states of execution.
func ExecutionStatuses() []ExecutionStatus {
	return []ExecutionStatus{ExecutionPending, ExecutionRunning, ExecutionApproval, ExecutionCompleted, ExecutionFailed}
}

// LogType is the kind of an entry of a task's log.
type LogType string

// The kinds of entries.
const (
	LogCommand LogType = "command"
	LogOutput  LogType = "output"
	LogError   LogType = "error"
	LogInfo    LogType = "info"
)

// LogTypes are all kinds of entries.
func LogTypes() []LogType { return []LogType{LogCommand, LogOutput, LogError, LogInfo} }

// AuthorType is the kind of who did something.
type AuthorType string

// The kinds. Only activity has the system as its author.
const (
	ByAgent  AuthorType = "agent"
	ByHuman  AuthorType = "human"
	BySystem AuthorType = "system"
)

// AuthorTypes are all kinds of authors.
func AuthorTypes() []AuthorType { return []AuthorType{ByAgent, ByHuman, BySystem} }

// AuthorOf returns the kind of an author by its handle.
func AuthorOf(who string) AuthorType {
	switch who {
	case Human:
		return ByHuman
	case "":
		return BySystem
	}
	return ByAgent
}

// ActionType is the kind of an activity.
type ActionType string

// The kinds of activities.
const (
	TaskCreated    ActionType = "task_created"
	TaskClaimed    ActionType = "task_claimed"
	TaskCompleted  ActionType = "task_completed"
	TaskMoved      ActionType = "task_moved"
	CommentAdded   ActionType = "comment_added"
	AgentMentioned ActionType = "agent_mentioned"
	AgentHeartbeat ActionType = "agent_heartbeat"
)

// ActionTypes are all kinds of activities.
func ActionTypes() []ActionType {
	return []ActionType{TaskCreated, TaskClaimed, TaskCompleted, TaskMoved, CommentAdded, AgentMentioned, AgentHeartbeat}
}

// MessageType is the kind of a message.
type MessageType string

// The kinds of messages. An answer is what comes back for one of the others.
const (
	Order      MessageType = "order"
	Report     MessageType = "report"
	Question   MessageType = "question"
	Suggestion MessageType = "suggestion"
	Answer     MessageType = "answer"
)

// MessageTypes are the kinds that somebody sends of their own accord, the most pressing
// first.
func MessageTypes() []MessageType { return []MessageType{Order, Question, Report, Suggestion} }

// Category is the kind of a resource.
type Category string

// The kinds of resources.
const (
	SOP           Category = "sop"
	Credential    Category = "credential"
	Documentation Category = "documentation"
	General       Category = "general"
)

// Categories are all kinds of resources.
func Categories() []Category { return []Category{SOP, Credential, Documentation, General} }

// Layer is the height of an agent in its hierarchy.
type Layer string

// The layers.
const (
	Strategic  Layer = "strategic"
	Analyst    Layer = "analyst"
	Lead       Layer = "lead"
	Specialist Layer = "specialist"
)

// Layers are all layers, the highest first.
func Layers() []Layer { return []Layer{Strategic, Analyst, Lead, Specialist} }

// height is greater for a higher layer, and 0 for an unknown one.
func (l Layer) height() int {
	if i := slices.Index(Layers(), l); i >= 0 {
		return len(Layers()) - i
	}
	return 0
}

// Presence is what an agent is doing.
type Presence string

// What agents do. The zero Presence: it has never had a heartbeat.
const (
	Online   Presence = "online"
	Working  Presence = "working"
	Idle     Presence = "idle"
	Sleeping Presence = "sleeping"
	Offline  Presence = "offline"
)

// Presences are all that agents do.
func Presences() []Presence { return []Presence{Online, Working, Idle, Sleeping, Offline} }
