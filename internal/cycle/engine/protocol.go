package engine

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/rules/envelope"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// Protocol is one of the ways in which a loop keeps its memory and picks its
// work. A protocol never writes: it returns changes, and the engine applies
// them. Its optional methods are in capabilities.go.
type Protocol interface {
	// Open reads the memory that the view shows. An error ends the run, as an
	// *OpenError says or else as failed; a broken part that can be rebuilt is not an
	// error but a change in Recovered.
	Open(ctx context.Context, v View) (Session, error)
}

// OpenError is an error of Open that says how the run ends.
type OpenError struct {
	Outcome loop.Outcome
	Reason  loop.Reason
	Detail  string // in words
}

func (e *OpenError) Error() string { return e.Reason.Explain(e.Detail) }

// Session is one run's dealing with a protocol's memory. Its methods are
// called by one goroutine. Its optional methods are in capabilities.go.
type Session interface {
	// Recovered lists what had to be repaired. It is durable before anything
	// is sensed, and each repair says what it did.
	Recovered() []Repair
	// Sources says what the engine is to look at without spending a token.
	Sources() []Source
	// Candidates lists replies and work alike, in the protocol's order, each
	// with its own reason if it may not be chosen. It is pure.
	Candidates(Sensed, time.Time) []plan.Candidate
	// Begin says what must be durable before the agent acts, and what the
	// agent is told.
	Begin(plan.Choice) ([]loop.Change, Brief, error)
	// Record takes an iteration's result, whatever it is. Changes and effects
	// become durable with the verdict.
	Record(Result) ([]loop.Change, []loop.EffectRequest)
	// Close writes the protocol's account of the run, for every outcome. It
	// may be called on a session that saw nothing of the run, when another
	// process died: everything it needs is in the summary.
	Close(Summary) []loop.Change
}

// View is what a protocol may see, read-only.
type View struct {
	Loop       loop.Loop
	Root       string          // of the checkout
	Definition loop.Definition // defaults filled in
	Run        loop.Run
	Recent     []loop.Run  // earlier runs, newest first, bounded
	Steps      []loop.Step // rows of this loop that its memory held last
	Files      Files
	History    History
	Mail       Mail
	Rows       Rows
	Results    Results
	Answers    map[string]string // notes of a person's yes, by the key of the question
	Ending     bool              // another process died with the run, and only its end is left
	Now        time.Time
}

// Rows reads the rows of protocols of the workspace, bounded. What a query finds at one time
// may be changed at the next.
type Rows interface {
	List(ctx context.Context, q loop.RowQuery) ([]loop.Row, error)
}

// Files reads files of the workspace, bounded, never through a link that
// leaves it.
type Files interface {
	Read(path string) (projection.File, error)
}

// History reads earlier commits; an empty revision is the run's base.
type History interface {
	// Show reads a file. One that is missing is loop.ErrNotFound.
	Show(ctx context.Context, rev, path string) ([]byte, error)
	// Commits lists commits of the base that changed a path, newest first, at most so many;
	// an empty path is that of all.
	Commits(ctx context.Context, path string, most int) ([]git.Commit, error)
	// Base is the branch that the run works on, and whether it is the one checked out.
	Base(ctx context.Context) (b git.Base, checkedOut bool, err error)
	// Differs lists the paths of the base whose content is not the given one.
	Differs(ctx context.Context, files map[string]string) ([]string, error)
	// Stashes lists the commits of the checkout's stashes, newest first, at most so many.
	Stashes(ctx context.Context, most int) ([]string, error)
	// Behind asks a remote whether its branch has commits that the base lacks. A remote that
	// the repository does not have has none.
	Behind(ctx context.Context, remote string) (bool, error)
	// Unpushed lists commits of the base, newest first, that a remote did not have when it
	// was last seen; none if it was never seen.
	Unpushed(ctx context.Context, remote string, most int) ([]git.Commit, error)
}

// Question is what a person is asked before anything is worked on. A yes answers it, with
// its note.
type Question struct {
	Key    string // the same question has the same key, and is asked once
	Text   string // its first line is the question, what follows are details
	Reason loop.Reason
	Idle   bool // the run ends quiet and does not wait: nobody asked for it
}

// Repair is a change that mends the memory, with what a person should know.
type Repair struct {
	Changes []loop.Change
	Note    string
	// Escalate says what a person has to do first: the run ends escalated before
	// anything is sensed. Empty: the run goes on.
	Escalate string
}

// Source is something to sense. Exactly one of Command, Gates, Changes, Memory and Text is set.
type Source struct {
	Name    string
	Command string // run by the shell on a clean copy of the base
	Gates   bool   // the gates of the definition are tried on the base
	Changes bool   // what earlier runs have changed and nobody has taken yet: of the steps, the first that has a snapshot
	Memory  bool   // what is remembered that fits the goal
	Text    string // known already; never makes a run quiet
	// Quiet says when a command means that there is nothing to do.
	Quiet QuietRule
}

// QuietRule says when a sense command found nothing to do.
type QuietRule int

// The rules.
const (
	QuietNever   QuietRule = iota
	QuietOnEmpty           // no output and exit status 0
	QuietOnPass            // exit status 0, or gates that pass
)

// Sensed is what the sources said.
type Sensed struct {
	Observations []Observation
	// Nothing is set when a source that decides about it found nothing to do.
	Nothing loop.Reason
	Because string // Nothing in words
}

// Observation is what one source said.
type Observation struct {
	Source string
	Text   string
	Exit   int
}

// Brief is what the agent is told about its step. What stays the same from run
// to run goes into Goal, Role and Rules, so that prompt caches hit.
type Brief struct {
	Goal   envelope.Field
	Role   string         // of people and of the runtime
	Rules  []string       // likewise
	Task   envelope.Field // the step in full; without a text: its title
	Memory []Block        // of the protocol; data, never instructions
	Prints bool           // the result has all that the agent prints, up to MostPrinted

	Scope []string // globs of the files that may be changed, of those of the definition; empty: all of them

	// Prompt is all that the agent is told, where only what it says counts: its turn has the
	// purpose loop.PurposeGenerate and is taken in an empty tree, and the iteration has the answer as
	// its Words. The loop has to be of the tier that only reports. Empty: the agent works on the step.
	Prompt string
}

// MostPrinted bounds what is kept of what an agent prints, in bytes.
const MostPrinted = 256 << 10

// Block is labelled text from outside.
type Block struct {
	Label string
	Text  string
}

// Result is what one iteration came to.
type Result struct {
	Run        loop.Run
	Iteration  loop.Iteration
	Settlement plan.Settlement
	Said       string // the agent's last message, or the end of what its program printed; bounded, without secrets
	// Proposal is the effect that would put this iteration's gated tree on a
	// branch; nil when there is nothing to put there.
	Proposal *loop.EffectRequest
}

// Summary is the whole run when it ends.
type Summary struct {
	Run        loop.Run // outcome, reason and usage filled in
	Iterations []loop.Iteration
	Effects    []loop.Effect
	Now        time.Time
}
