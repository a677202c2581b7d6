package projection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-run/pawl/internal/ground/flock"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// The rows of file changes stay until the loop's next transaction, also after the
// files are written, so that a quiet run needs only two transactions. A file of the
// loop names the run whose changes were written last. It is also the lock for
// writing: two processes never write one loop's files at once, and changes that were
// written are not merged again into what a person wrote since. If a power cut loses
// the file, the changes are merged again, which leaves alone what is there.

// writeLock is that file, locked.
type writeLock struct {
	file *os.File
	run  string // id of the run whose changes were written last
}

// lockWait is how long lockFiles waits for another writer.
const lockWait = 10 * time.Second

// lockFiles locks the loop's files for writing.
func (m Memory) lockFiles(ctx context.Context) (*writeLock, error) {
	path := filepath.Join(m.Home, "written", m.Loop)
	held := &loop.Fault{
		Exit: loop.ExitHeld, What: "write the files of loop " + m.Loop,
		Why: fmt.Sprintf("another process has had %s locked for %s", path, lockWait),
		Fix: "find it with {1}; if it is stopped, continue it with {2} or end it with {3}, then repeat",
		Actions: []loop.Command{
			loop.HostCommand("fuser", path), loop.HostCommand("kill", "-CONT", "PID").WithBlanks("PID"), loop.HostCommand("kill", "-9", "PID").WithBlanks("PID"),
		},
	}
	ctx, cancel := context.WithTimeoutCause(ctx, lockWait, held)
	defer cancel()
	f, err := flock.Wait(ctx, path)
	if err != nil {
		return nil, err
	}
	text, _ := io.ReadAll(io.LimitReader(f, 256)) // If it cannot be read, no run is named.
	return &writeLock{file: f, run: string(text)}, nil
}

// recordRun records that all changes of a run are written.
func (w *writeLock) recordRun(runID string) error {
	err := w.file.Truncate(0)
	if err == nil {
		_, err = w.file.WriteAt([]byte(runID), 0)
	}
	return err
}

// Write writes recorded changes into the workspace, in their order, up to the first
// that fails, and returns how many of them are there now. If run has ended and there
// is no error, all of its changes are there.
func (m Memory) Write(ctx context.Context, run loop.Run, changes []loop.PendingChange) (done int, err error) {
	if len(changes) == 0 {
		return 0, nil
	}
	w, err := m.lockFiles(ctx)
	if err != nil {
		return 0, DiskFault(err)
	}
	defer func() { err = errors.Join(err, w.file.Close()) }()
	root, err := os.OpenRoot(m.Root)
	if err != nil {
		return 0, err
	}
	defer func() { _ = root.Close() }()
	for i, p := range changes {
		// A run writes its own changes in several batches. Those of another run that
		// the file names were all written, by the process that ended that run.
		if p.RunID != w.run || p.RunID == run.ID {
			if err := m.applyChange(ctx, root, p.Change); err != nil {
				return i, fmt.Errorf("write %s: %w", p.Path, DiskFault(err))
			}
		}
	}
	if run.State != loop.RunEnded {
		return len(changes), nil
	}
	return len(changes), w.recordRun(run.ID)
}
