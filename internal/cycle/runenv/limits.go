package runenv

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

// What real builds live with, and what ends a program that has lost its way.
const (
	mostProcesses = 4096
	mostOutput    = 256 << 20
	mostFile      = 16 << 30
)

// limited starts programs within limits and under guard, whatever confines them.
type limited struct {
	proc.Runner
	guard *proc.Guard
}

// Run starts s.
func (l limited) Run(ctx context.Context, s proc.Spec) (proc.Result, error) {
	l.guard.Prepare(s.Tag) // Its process starts while the sandbox is made.
	s.Guard = l.guard
	s.Limits = proc.Limits{Processes: mostProcesses, Memory: proc.MachineMemory() / 4 * 3, Output: mostOutput, FileBytes: mostFile}
	return l.Runner.Run(ctx, s)
}

// PrepareStarts starts in the background what the start of several programs takes: the
// process that guards them and, where each is in namespaces of its own, the one that makes
// these. Programs start without it, too, and the first ones later.
func (s Env) PrepareStarts() {
	s.Guard.Prepare(Tag(s.ID))
	if s.Tier().HasOwnRoot() {
		proc.PrepareSpawner()
	}
}

// LimitText says which limit a program ran into, empty for none.
func LimitText(l proc.Limit, took time.Duration) string {
	switch l {
	case proc.ProcessesLimit:
		return fmt.Sprintf("it ran into the limit of %d processes", mostProcesses)
	case proc.MemoryLimit:
		return fmt.Sprintf("it ran into the limit of %d MiB of memory", proc.MachineMemory()/4*3>>20)
	case proc.OutputLimit:
		return fmt.Sprintf("it ran into the limit of %d MiB of output", mostOutput>>20)
	case proc.FileSizeLimit:
		return fmt.Sprintf("it ran into the limit of %d GiB for one file", mostFile>>30)
	case proc.TimeLimit:
		return fmt.Sprintf("its time was over after %s", took.Round(time.Millisecond))
	}
	return ""
}
