// Package agent is the contract between the engine and the programs that act:
// what one turn is given, what happens in it, and what it gives back. Stream
// runs a program that prints its turn line by line; the leaves are the drivers.
//
// A driver starts its program through the Exec that it is handed, never by
// itself, and decides nothing: whether a turn succeeded is for gates to say,
// what an agent may do for policy, what may be spent for the meter. It never
// reads the host's files, environment or settings of the program.
package agent

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/policy"
	"github.com/pawl-run/pawl/internal/proc"
)

// Home is the folder that a program has for a home while its turn lasts. Names
// are relative to it and have forward slashes.
type Home interface {
	// Path is the folder as the program sees it.
	Path() string
	// Write puts a file there, for the program's user only, with the folders above it.
	Write(name string, content []byte) error
	// Read reads a file that the program may have left. It follows no link, and
	// reads no more than a mebibyte.
	Read(name string) ([]byte, error)
}

// Endpoint is where a program reaches its model. The zero Endpoint is the
// vendor itself, with the login that lies in the program's home.
type Endpoint struct {
	URL      string // http://127.0.0.1:PORT, without a path; empty: the vendor's own
	Key      string // stands where the program wants a key, and is none
	Provider string // whose shape of requests the endpoint forwards: anthropic openai gemini
}

// Request is one turn.
type Request struct {
	Purpose string // act reply review plan generate
	Prompt  string
	Command string        // of the definition or the roster, run by the shell: the program, and the beginning of its command line; empty: the driver's own
	Model   string        // empty: the program's own
	Effort  string        // how hard the model is to think, a level that the driver has; empty: the program's own
	Servers []loop.Server // MCP servers that it may use all tools of
	Session *loop.Session // the conversation to go on with; nil: a fresh one
	Keep    bool          // the conversation is to be gone on with later
	Exec    proc.Runner   // starts programs where the agent may work
	Dir     string        // the tree that the agent may change, as they see it
	Env     []string      // complete environment, PAWL_* included; drivers add theirs
	Tag     string        // NAME=VALUE in Env by which survivors are recognised
	Timeout time.Duration // wall-clock cap of the turn
	Silence time.Duration // a turn of which nothing is heard for so long hangs; 0: DefaultSilence
	Home    Home          // nil only for drivers whose Profile has no Home
	Models  Endpoint      // how the program reaches its model

	// Tools are what the model's vendor may do by itself. A driver switches the
	// program's other tools of that kind off, so that it asks for none in vain;
	// with a login of its own that is all that keeps it from them.
	Tools []loop.ModelTool

	// Judge answers what the agent asks leave for. It may block, for a person who
	// is there to answer. Never nil.
	Judge func(ctx context.Context, call policy.Call) policy.Answer
	// On is told what happens, in order, by one goroutine at a time. Never nil.
	On func(Event)
	// Output gets what the program prints beside its events, as it prints it.
	Output io.Writer
	// Used is told what the turn has used so far, as the program says it or else as
	// an estimate, whenever more is known. False means that nothing more may be used:
	// the turn is ended, and what the program prints from then on does not count. Nil
	// where an Endpoint counts.
	Used func(loop.Usage) bool
}

// DefaultSilence is how long nothing may be heard of an agent at work. A long
// command that it waits for is silence too.
const DefaultSilence = 8 * time.Minute

// Allows reports whether the model's vendor may do something by itself.
func (r Request) Allows(tool loop.ModelTool) bool { return slices.Contains(r.Tools, tool) }

// Ask is an action that the agent wants and may not do by itself.
type Ask struct {
	Argv []string
	Why  string
}

// Result is what a turn came to.
type Result struct {
	Exit    int
	Ended   proc.Ended
	Limit   proc.Limit    // that it ran into; empty: none
	Took    time.Duration // lifetime of the process
	Usage   loop.Usage    // as the program says, or else an estimate, and marked as such; never zero for a turn that reached its model
	Models  []loop.ModelUsage
	Message string        // the last thing that the agent said, whole; empty: nothing
	Claims  bool          // a turn without a failure is a claim of done, whatever the exit status
	Failure *loop.Failure // why it came to nothing; nil: it ended as turns end
	Session *loop.Session // by which a later turn can go on; nil: none
	Asks    []Ask
}

// Profile is what has to be known of a driver before it is given a turn.
type Profile struct {
	Name      string   // in the roster
	Program   string   // looked up in PATH where no command is given; empty: there is none
	Own       bool     // its program is pawl itself, which is shown to it and named by Request.Command
	Runtime   []string // programs that Program itself needs, such as node
	Home      bool     // it wants a Home
	Providers []string // whose models it can reach through an Endpoint, the usual one first; empty: it is not metered
	// AnyProvider is for a program that pawl knows nothing of. If a definition
	// names a provider, the program finds the Endpoint in the usual variables.
	AnyProvider bool
	// Asks is the model that the program asks where nobody names one, by provider, as
	// the version does that pawl was tried with. A provider that is not there is not
	// known, or needs a name.
	Asks map[string]string

	Login    Login    // how it signs in by itself; zero: it cannot be lent one
	Sessions []string // folders below Home that hold its conversations; empty: it cannot go on with one
	Install  string   // the command that installs it; empty: nothing has to be
	Attaches []string // names of instruction files that it adds when it reads a file beside them, and cannot be told not to
	Masks    []string // files and folders at the top of a tree from which it would start programs; it is shown none of them
}

// Login is where a program keeps the login that it signs in with by itself.
type Login struct {
	Files []string // below the user's home, with forward slashes; the first that is there counts
	// Variables may hold a token for the vendor that is not renewed, and go before
	// the files.
	Variables []string
	Hosts     []string // that it has to reach with it: the vendor's, HOST or *.HOST
	// Renews are those of Hosts that give a new token for an old one. A login that
	// changed in a turn in which none of them answered was not renewed. Empty: the
	// program renews nothing.
	Renews []string
}
