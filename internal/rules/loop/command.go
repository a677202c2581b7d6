package loop

import "time"

// PlannedCommand is a command that an agent wants the runtime to run when its turn is
// over, and what policy said of it.
type PlannedCommand struct {
	Argv   []string      `json:"argv"`
	Why    string        `json:"why,omitempty"`    // in the agent's words
	Exit   int           `json:"exit"`             // the exit status that it expects
	Output string        `json:"output,omitempty"` // the text that it expects in the output; empty: any
	Answer CommandAnswer `json:"answer"`
	Rule   string        `json:"rule"`  // stable code of why
	Words  string        `json:"words"` // the same for people
}

// CommandAnswer is what policy says to a command.
type CommandAnswer string

// The answers.
const (
	CommandRun    CommandAnswer = "run"
	CommandAsk    CommandAnswer = "ask" // a human has to say yes
	CommandRefuse CommandAnswer = "refuse"
)

// CommandResult is what became of a command of a plan.
type CommandResult struct {
	N      int           `json:"n"` // its place in the plan, from 1
	Argv   []string      `json:"argv"`
	State  CommandState  `json:"state"`
	Exit   int           `json:"exit"`             // of one that ended
	Output string        `json:"output,omitempty"` // both streams, its beginning and its end, without secrets
	Detail string        `json:"detail,omitempty"` // why it is not as expected, or was not run
	Took   time.Duration `json:"took,omitempty"`
}

// CommandState is how far a command has come.
type CommandState string

// The states of a command. One that has only started when its run died may have done
// all, some or nothing of what it does.
const (
	CommandStarted CommandState = "started"
	CommandMet     CommandState = "met"     // it ended as the agent expected
	CommandUnmet   CommandState = "unmet"   // it ended otherwise, was stopped, or could not start
	CommandAsked   CommandState = "asked"   // a human is asked; it was not run
	CommandRefused CommandState = "refused" // it was not run
	CommandSkipped CommandState = "skipped" // it was not run, because an earlier one ended the plan
)
