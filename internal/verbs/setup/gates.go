package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/ground/durable"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// GateTry is the result of one gate on the base, before any agent has worked.
type GateTry struct {
	runs.Gate
	Missing bool `json:"missing"` // its program is missing or cannot be executed

	Obstacle string `json:"obstacle,omitempty"` // why it could not work at all, so that a run would end before its first turn
	Fix      string `json:"fix,omitempty"`
}

// TryGates runs the gates of a loop on the tip of its base, as its next run would, and
// blocks until they have ended. Out gets what they print; nil discards it. A loop
// without gates has an empty list. If ctx ends, the results so far are returned with
// the error.
//
// It is not a run: it does not write to the store, which need not exist, and needs
// neither the agent nor the sandbox of the loop.
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

// removeIfNew returns a function that removes pawl's home if it does not exist now and
// has only the folders of a try then: the doctor leaves no home behind.
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
			_ = sandbox.RemoveTree(filepath.Join(home, cache)) // There are no runs that could use it.
		}
		for _, name := range own {
			_ = os.Remove(filepath.Join(home, name)) // It stays if it is not empty.
		}
		for _, dir := range folders {
			_ = os.Remove(dir)
		}
	}
}
