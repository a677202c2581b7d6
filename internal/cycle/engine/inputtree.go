package engine

import (
	"context"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// inputTree is the tree that the results of a run depend on: without the memory of loops,
// whose commits change nothing that is worked on.
func (h *heldRun) inputTree(ctx context.Context, tree string) (string, error) {
	if known := h.inputTrees[tree]; known != "" {
		return known, nil
	}
	inLoops := func(dir string) bool {
		for _, top := range []string{".loops", loop.AgentsDir} {
			below, in := strings.CutPrefix(dir, top)
			if in && (below == "" || below[0] == '/' && strings.Count(below, "/") == 1) {
				return true
			}
		}
		return false
	}
	without, err := h.target.Repo.TreeWithout(ctx, tree, inLoops, loop.IsMemoryFile)
	if err == nil {
		if h.inputTrees == nil {
			h.inputTrees = map[string]string{}
		}
		h.inputTrees[tree] = without
	}
	return without, err
}
