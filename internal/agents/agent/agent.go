// Package agent is the contract between the engine and the programs that act:
// what one turn is given, what happens in it, and what it returns. RunStream runs
// a program that prints its turn line by line; the packages below are the
// drivers.
//
// A driver starts its program only through the Exec that it is given, and decides
// nothing: gates decide whether a turn succeeded, policy what an agent may do,
// the meter what may be spent. It never reads the host's files, environment or
// settings of the program.
package agent

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// Home is the home directory of a program during its turn. Names are relative to
// it and have forward slashes.
type Home interface {
	// Path returns the directory as the program sees it.
	Path() string
	// Write writes a file that only the program's user can read, and makes
	// its parent directories.
	Write(name string, content []byte) error
	// Read reads a file that the program may have written. It follows no
	// link, and refuses files of more than a mebibyte.
	Read(name string) ([]byte, error)
}

// Endpoint is where a program reaches its model. The zero Endpoint is the vendor
// itself, with the login in the program's home.
type Endpoint struct {
	URL      string // http://127.0.0.1:PORT, without a path; empty means the vendor's own
	Key      string // a placeholder for programs that require a key; the real key is never passed
	Provider string // whose API the endpoint forwards: anthropic openai gemini
}

// Request is the input of one turn.
type Request struct {
	Purpose string // act reply review plan generate
	Prompt  string
	Command string        // from the definition or the roster, run by the shell: the program and the beginning of its command line; empty means the driver's program
	Model   string        // empty means the program's default
	Effort  string        // how much the model should think, a level of the driver's; empty means the program's default
	Servers []loop.Server // MCP servers; all of their tools are allowed
	Session *loop.Session // the conversation to continue; nil starts a new one
	Keep    bool          // the conversation will be continued later
	Exec    proc.Runner   // starts programs in the agent's sandbox
	Dir     string        // the tree that the agent may change, as its programs see it
	Env     []string      // the complete environment, including PAWL_*; drivers add their own variables
	Tag     string        // NAME=VALUE in Env that identifies processes which survive
	Timeout time.Duration // wall-clock cap of the turn
	Silence time.Duration // a turn without output for so long hangs; 0 means DefaultSilence
	Home    Home          // nil only for drivers whose Profile has no Home
	Models  Endpoint      // how the program reaches its model

	// Tools are the model vendor's own tools that may be used. A driver disables
	// the program's other tools of that kind, so that no request for them fails;
	// if the program has a login of its own, nothing else prevents their use.
	Tools []loop.ModelTool

	// Judge answers the agent's requests for permission. It may block while a
	// person decides. Never nil.
	Judge func(ctx context.Context, call policy.Call) policy.Answer
	// OnEvent is called with the events of the turn, in order, by one goroutine at a
	// time. Never nil.
	OnEvent func(Event)
	// Output gets what the program prints in addition to its events, as it prints it.
	Output io.Writer
	// OnUsage is called with the turn's usage so far, whenever more is known: as the
	// program reports it, or else an estimate. If it returns false, nothing more may
	// be used: the turn is ended, and later output of the program does not count.
	// Nil if an Endpoint counts.
	OnUsage func(loop.Usage) bool
}

// DefaultSilence is how long an agent at work may be silent. Waiting for a long
// command is silence too.
const DefaultSilence = 8 * time.Minute

// Allows reports whether a tool of the model's vendor may be used.
func (r Request) Allows(tool loop.ModelTool) bool { return slices.Contains(r.Tools, tool) }

// Ask is an action that the agent wants to take and may not take by itself.
type Ask struct {
	Argv []string
	Why  string
}

// Result is the outcome of a turn.
type Result struct {
	Exit    int
	Ended   proc.Ended
	Limit   proc.Limit    // that stopped it; empty if none did
	Took    time.Duration // lifetime of the process
	Usage   loop.Usage    // as the program reports it, or else an estimate, marked as such; never zero for a turn that reached its model
	Models  []loop.ModelUsage
	Message string        // the last text of the agent, complete; empty if missing
	Claims  bool          // a turn without a failure claims that the work is done, whatever the exit status
	Failure *loop.Failure // why the turn failed; nil if it ended normally
	Session *loop.Session // with which a later turn can continue; nil if it cannot
	Asks    []Ask
}

// Profile is what must be known of a driver before its first turn.
type Profile struct {
	Name      string   // in the roster
	Program   string   // looked up in PATH if no command is given; empty if there is no such program
	Own       bool     // the program is pawl itself, which the sandbox shows and Request.Command names
	Runtime   []string // programs that Program itself needs, such as node
	Home      bool     // it needs a Home
	Providers []string // whose models it can reach through an Endpoint, the default one first; empty if it cannot be metered
	// AnyProvider is set for a program that pawl knows nothing about. If a definition
	// names a provider, the program finds the Endpoint in the provider's usual
	// variables.
	AnyProvider bool
	// Asks is the program's default model for each provider, in the version that pawl
	// was tested with. If a provider is missing, its default is not known, or a model
	// must be named.
	Asks map[string]string

	Login    Login    // its own login; zero if it cannot be lent one
	Sessions []string // directories below Home that contain its conversations; empty if it cannot continue one
	Install  string   // the command that installs it; empty if none is needed
	Attaches []string // names of instruction files that it always adds when it reads a file in the same directory
	Masks    []string // files and directories at the top of a tree from which it would start programs; the sandbox hides them
}

// Login is where a program keeps its own login.
type Login struct {
	Files []string // below the user's home, with forward slashes; the first that exists is used
	// Variables may contain a token for the vendor that is not renewed. They take
	// precedence over the files.
	Variables []string
	Hosts     []string // that it must reach with this login: the vendor's, HOST or *.HOST
	// Renews are those of Hosts that exchange an old token for a new one. If none of
	// them answered during a turn, a login that changed was not renewed. Empty means
	// that the program renews nothing.
	Renews []string
}
