package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// The row of a run knows the phase of the last transaction. From its first copy
// on, which is when a run begins to take time, where its process really stands
// is marked in a file: that survives the process and costs no transaction. It
// is a help for people, nothing is decided by it, and so errors do not matter.

const markSuffix = ".phase"

func (e *Engine) markFile(runID string) string { return e.runDir(runID) + markSuffix }

// markWidth is more than the longest phase, so that a mark overwrites the one
// before it.
const markWidth = 16

func (j *journal) markPhase(phase loop.Phase) {
	_, _ = j.marks.WriteAt(fmt.Appendf(nil, "%-*s", markWidth, phase), 0)
}

func (j *journal) openMarks() {
	name := j.engine.markFile(j.id.ID)
	if j.marks != nil || os.MkdirAll(filepath.Dir(name), 0o700) != nil {
		return
	}
	j.marks, _ = os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
	j.markPhase(j.said.Phase())
}

func (j *journal) closeMarks() {
	_, _ = j.marks.Close(), j.turns.file.Close()
	j.marks, j.turns.file = nil, nil
}

// dropMarks removes the files of a run that has ended.
func (c *cycle) dropMarks() error {
	if !c.tree.copied {
		return nil
	}
	var all error
	for _, name := range []string{c.markFile(c.run.ID), c.notesFile(c.run.ID)} {
		if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, err)
		}
	}
	return all
}

// markedPhase is the phase in which a process died: what it marked, or what its last
// transaction said.
func (e *Engine) markedPhase(r loop.Run) loop.Phase {
	file, err := projection.ReadFile(e.markFile(r.ID), markWidth)
	phase := loop.Phase(strings.TrimSpace(file.Content))
	if err == nil && slices.Contains(loop.Phases, phase) {
		return phase
	}
	return r.Phase
}
