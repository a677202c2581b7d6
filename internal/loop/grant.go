package loop

import (
	"slices"
	"strings"
)

// PawlTools says which of pawl's own tools the agent of a run has.
type PawlTools string

// The values. The zero value is none.
const (
	PawlToolsRead PawlTools = "read" // it looks at loops, runs, tasks and messages of its workspace
	PawlToolsPost PawlTools = "post" // it also writes in its own name, and makes loops below its own
)

// PawlServer is the name of the MCP server that has pawl's own tools inside of a run.
const PawlServer = "pawl"

// Bounds of the loops that agents make inside of runs.
const (
	MaxDepth       = 3  // loops of people have depth 0
	MaxChildrenDay = 10 // that the runs of one loop make in a day, UTC
)

// Grant says what an actor may reach beyond what its role allows. A nil Grant is no
// restriction.
type Grant struct {
	Loops  []string // names or ids of the loops that it reaches, outside of a run; empty with Inside
	Inside *Inside  // nil: outside of a run
}

// Names returns a copy of the loops, sorted, for messages.
func (g *Grant) Names() []string { return slices.Sorted(slices.Values(g.Loops)) }

// List returns the loops with commas between; empty without a grant, and inside of a run.
func (g *Grant) List() string {
	if g == nil {
		return ""
	}
	return strings.Join(g.Loops, ",")
}

// Within returns the run inside of which the actor is; nil if it is outside of runs.
func (g *Grant) Within() *Inside {
	if g == nil {
		return nil
	}
	return g.Inside
}

// Inside identifies the agent of a live run. What it writes counts only while the run
// has this fence.
type Inside struct {
	RunID     string
	Fence     int64
	LoopID    string
	Loop      string // name
	Workspace string // id
	Depth     int    // of the loop; 0: people made it
	Handle    string // in whose name it writes, without the @
	Tools     PawlTools
}

// Posts reports whether it may write.
func (in *Inside) Posts() bool { return in.Tools == PawlToolsPost }
