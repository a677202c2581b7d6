package engine

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/pawl-run/pawl/internal/loop"
)

// The row of a run knows the phase of the last transaction. Where its process
// really stands is marked in a file beside its prompts, which survives the
// process and costs no transaction. It is a help for people: nothing is
// decided by it, and so errors do not matter.

func (c *cycle) mark(phase loop.Phase) {
	_ = os.WriteFile(filepath.Join(c.runDir(c.run.ID), "phase"), []byte(phase), 0o600)
}

// marked is the phase in which a process died: what it marked, or what its last
// transaction said.
func (e *Engine) marked(r loop.Run) loop.Phase {
	file, err := readBounded(filepath.Join(e.runDir(r.ID), "phase"), 64)
	if phase := loop.Phase(file.Content); err == nil && slices.Contains(loop.Phases, phase) {
		return phase
	}
	return r.Phase
}
