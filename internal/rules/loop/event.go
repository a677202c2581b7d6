package loop

import "time"

// Event is one thing that happened in a run. Seq grows by one within a run, and only
// the holder of the run writes, so that a reader that remembers the last Seq misses
// nothing.
type Event struct {
	RunID string    `json:"run_id"`
	Seq   int64     `json:"seq"`
	At    time.Time `json:"at"`
	Phase Phase     `json:"phase"`
	Kind  string    `json:"kind"`
	Text  string    `json:"text"`
}

// Kinds of events.
const (
	EventPhase   = "phase"   // a phase began
	EventNote    = "note"    // something a person should read
	EventOutput  = "output"  // what an agent or gate printed, in pieces
	EventTool    = "tool"    // a tool that an agent used, and with what
	EventGate    = "gate"    // a gate's verdict
	EventOutcome = "outcome" // how the run ended
	// EventPawlTool is a call of one of pawl's own tools by the agent, and what became of it,
	// without its arguments; or a connection to them that was refused.
	EventPawlTool = "pawl_tool"
	EventRefused  = "refused" // a call to a model that no budget pays for, and why
	EventPrompt   = "prompt"  // the prompt of a turn, in full

	// EventConsidered carries the reasons of a decision, as JSON of []Considered.
	EventConsidered = "considered"
	// EventInstructions carries the list of the repository's instructions that the
	// agent is given, as JSON.
	EventInstructions = "instructions"
	// EventCommands carries the commands that an agent wants the runtime to run, with what
	// policy said of each, as JSON of []PlannedCommand. None of them has run before it is
	// durable.
	EventCommands = "commands"
	// EventCommand says that a command of the plan has started, or what became of it, as
	// JSON of a CommandResult.
	EventCommand = "command"
	// EventRewritable says that the agent can rewrite a gate of the run, because its
	// files are in the scope: its verdict proves less than it seems to. There is one
	// event for each such gate.
	EventRewritable = "rewritable"
)

// NoteDenied begins the text of a note about a request that was not forwarded: to a
// host that is not allowed, or for a tool of the vendor that is not allowed.
const NoteDenied = "network: pawl denied "

// Kinds of links of an audit chain.
const (
	LinkRun        = "run"        // how a run ended
	LinkOwed       = "owed"       // the node of a run that another node had ended has written its files
	LinkEffect     = "effect"     // how an effect ended
	LinkApproval   = "approval"   // asked for, answered, void, expired
	LinkDefinition = "definition" // the definition changed
	LinkKill       = "kill"       // the kill switch was set or cleared, or a run was asked to stop
	LinkLog        = "log"        // a run log was written again
	LinkBudget     = "budget"     // a cap was set or removed
	LinkSnapshot   = "snapshot"   // a snapshot is removed, or was put on a branch
	LinkGitConfig  = "git_config" // a change of what git would execute was accepted
	LinkNode       = "node"       // a node does not have the workspace any more
	LinkForget     = "forget"     // the loop is not listed any more
	LinkMissing    = "missing"    // runs that a restored store does not have, though branches or files tell of them
	LinkMemory     = "memory"     // an entry of the memory was added, approved or forgotten
	LinkBoard      = "board"      // a board, or a task, agent, message or resource of one, was made or changed by a person
	LinkLogin      = "login"      // how the use of a lent login ended, or two logins were exchanged
)

// Missing is the body of a LinkMissing: the numbers of those runs.
type Missing struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// Link is one entry of an audit chain. Hash covers all other fields and the
// hash of the entry before it.
type Link struct {
	Chain string    `json:"chain"` // loop id, or workspace id for what belongs to no loop
	Seq   int64     `json:"seq"`   // from 1, without gaps
	At    time.Time `json:"at"`
	Kind  string    `json:"kind"` // one of the Link constants
	RunID string    `json:"run_id,omitempty"`
	Body  string    `json:"body"` // JSON
	Prev  string    `json:"prev"`
	Hash  string    `json:"hash"`
}
