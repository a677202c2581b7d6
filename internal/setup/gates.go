package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/pawl-run/pawl/internal/durable"
	"github.com/pawl-run/pawl/internal/gate"
	"github.com/pawl-run/pawl/internal/runs"
	"github.com/pawl-run/pawl/internal/sandbox"
)

// GateTry is what one gate says of the base, before any agent has worked.
type GateTry struct {
	runs.Gate
	Missing bool `json:"missing"` // its program is not there, or cannot be executed

	Obstacle string `json:"obstacle,omitempty"` // why it could not do its work at all, so that no run comes to a turn
	Fix      string `json:"fix,omitempty"`
}

// TryGates tries the gates of a loop on the tip of its base, as its next run
// would, and blocks until they have ended. Out gets what they print; nil
// discards it. A loop without gates has an empty list; when ctx ends, what is
// known so far comes beside the error.
//
// It is not a run: the store is not written, and need not exist. Agent and
// sandbox of the loop may be such that no run could start.
func (s *Service) TryGates(ctx context.Context, name string, out io.Writer) ([]GateTry, error) {
	if s.engine == nil {
		return nil, fmt.Errorf("try the gates of %s: %w", name, errNoEngine)
	}
	def, _, err := s.ws.Definition(ctx, name)
	if err != nil {
		return nil, err
	}
	results, err := s.engine.TryGates(ctx, s.ws.Target(def), out)
	tries := []GateTry{}
	for _, g := range results {
		why, fix := gate.Obstacle(g, def)
		tries = append(tries, GateTry{Gate: runs.GateOf(g), Missing: gate.Missing(g), Obstacle: why, Fix: fix})
	}
	return tries, err
}

// errNoEngine means that the service was made without the part that starts
// programs.
var errNoEngine = errors.New("this service only reads")

// removeIfNew returns what takes pawl's home away again if it is not there now and
// holds nothing but the empty folders of a try then: who only looks leaves no
// home behind.
func removeIfNew(home string) func() {
	folders := durable.MissingFolders(home)
	if len(folders) == 0 {
		return func() {}
	}
	own := []string{"runs", "trees", "layers", "toolsets", "caches", "setups", "filled", "mirrors"}
	return func() {
		entries, err := os.ReadDir(home)
		if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !slices.Contains(own, e.Name()) }) {
			return
		}
		for _, cache := range own[2:] {
			_ = sandbox.RemoveTree(filepath.Join(home, cache)) // For runs that there are none of.
		}
		for _, name := range own {
			_ = os.Remove(filepath.Join(home, name)) // Stays if somebody else has put something into it.
		}
		for _, dir := range folders {
			_ = os.Remove(dir)
		}
	}
}
