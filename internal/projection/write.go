package projection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-run/pawl/internal/flock"
	"github.com/pawl-run/pawl/internal/loop"
)

// The rows of file changes outlive the writing of the files until the loop's
// next transaction, so that a quiet run is two transactions. Which run's changes
// were written last stands in a file of the loop, which is also the lock under
// which files are written: two processes never write one loop's files at once,
// and what was written is not merged again into what a person wrote since. A
// power cut may lose the file; then the changes are merged again, which leaves
// alone what is there.

type written struct {
	file *os.File
	run  string // id of the run whose changes were written last
}

// lockWait is how long another writer of the loop's files is waited for.
const lockWait = 10 * time.Second

// lock waits for other writers of the loop's files.
func (m Memory) lock(ctx context.Context) (*written, error) {
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
	text, _ := io.ReadAll(io.LimitReader(f, 256)) // What cannot be read names no run.
	return &written{file: f, run: string(text)}, nil
}

// wrote notes that all changes of the run so far are written.
func (w *written) wrote(runID string) error {
	err := w.file.Truncate(0)
	if err == nil {
		_, err = w.file.WriteAt([]byte(runID), 0)
	}
	return err
}

// Write writes recorded changes into the workspace, in their order up to the one
// that fails, and says how many of them are there now. All changes of a run that
// has ended are there once it returns without an error.
func (m Memory) Write(ctx context.Context, run loop.Run, changes []loop.PendingChange) (done int, err error) {
	if len(changes) == 0 {
		return 0, nil
	}
	w, err := m.lock(ctx)
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
		// A run's own changes come in several batches; those of another run that
		// the file names were all written, by a process that ended it.
		if p.RunID != w.run || p.RunID == run.ID {
			if err := m.apply(ctx, root, p.Change); err != nil {
				return i, fmt.Errorf("write %s: %w", p.Path, DiskFault(err))
			}
		}
	}
	if run.State != loop.RunEnded {
		return len(changes), nil
	}
	return len(changes), w.wrote(run.ID)
}
