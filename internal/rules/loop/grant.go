package loop

import (
	"fmt"
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
	Loops  []GrantedLoop // that it reaches, outside of a run; empty with Inside
	Inside *Inside       // nil: outside of a run
}

// GrantedLoop is a loop of a grant. A name alone is none: loops of several workspaces have it.
type GrantedLoop struct {
	Workspace string // id
	Loop      string // name or id
}

// NamesIn returns the loops of the grant in a workspace, sorted.
func (g *Grant) NamesIn(workspace string) (names []string) {
	for _, l := range g.Loops {
		if l.Workspace == workspace {
			names = append(names, l.Loop)
		}
	}
	slices.Sort(names)
	return names
}

// List returns the loops as ParseGrant reads them; empty without a grant, and inside of a run.
// A grant of no loop is a text that ParseGrant refuses: it is not the same as no grant.
func (g *Grant) List() string {
	switch {
	case g == nil || g.Inside != nil:
		return ""
	case len(g.Loops) == 0:
		return "none"
	}
	var list []string
	for _, l := range g.Loops {
		list = append(list, l.Workspace+"/"+l.Loop)
	}
	return strings.Join(list, ",")
}

// ParseGrant reads the loops of a grant: WORKSPACE/LOOP, with commas between, where WORKSPACE
// is the id of a workspace. The error is a *Fault.
func ParseGrant(text string) (*Grant, error) {
	g := &Grant{}
	for item := range strings.SplitSeq(text, ",") {
		workspace, name, both := strings.Cut(strings.TrimSpace(item), "/")
		if !both || workspace == "" || name == "" {
			return nil, &Fault{
				Exit: ExitUsage, What: fmt.Sprintf("%q is not a loop of a grant", item), Why: "it does not say of which workspace the loop is",
				Fix: "write WORKSPACE/LOOP with the id of the workspace, like ws_1a2b/ci",
			}
		}
		g.Loops = append(g.Loops, GrantedLoop{workspace, name})
	}
	return g, nil
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
