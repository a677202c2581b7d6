package policy

// Call is something that an agent wants to do, as its driver hears of it.
type Call struct {
	Kind    CallKind `json:"kind"`
	Tool    string   `json:"tool"`              // the agent's own name for it
	Paths   []string `json:"paths,omitempty"`   // files and folders, as the agent names them
	Command string   `json:"command,omitempty"` // a line for a shell
	Argv    []string `json:"argv,omitempty"`    // a program without a shell; Command is empty then
	Host    string   `json:"host,omitempty"`    // of a fetch
	Detail  string   `json:"detail,omitempty"`  // one line for people, where nothing above says it
}

// CallKind is what kind of thing a call does.
type CallKind string

// The kinds of calls.
const (
	CallRead  CallKind = "read"  // files, folders, searches
	CallEdit  CallKind = "edit"  // files are written, moved or removed
	CallRun   CallKind = "run"   // a command
	CallFetch CallKind = "fetch" // something from a network
	CallTalk  CallKind = "talk"  // plans, notes, sub-agents: nothing outside of the conversation
	CallOther CallKind = "other" // a tool that no driver knows
)

// Answer is what a policy says to a call.
type Answer struct {
	Allow bool   `json:"allow"`
	Ask   bool   `json:"ask,omitempty"` // a human has to say yes; Allow is false
	Rule  string `json:"rule"`          // stable code
	Words string `json:"words"`         // for the agent: why, and what to do instead
}
