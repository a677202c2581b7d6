package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
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
	free func() error
}

// lockFiles waits for other writers of the loop's files.
func (e *Engine) lockFiles(loopID string) (*written, error) {
	dir := filepath.Join(e.Home, "written")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, loopID), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	w := &written{file: f}
	if w.free, err = lock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	text, err := io.ReadAll(io.LimitReader(f, 256))
	if w.run = string(text); err != nil {
		return nil, errors.Join(err, w.unlock())
	}
	return w, nil
}

// wrote notes that all changes of the run so far are written.
func (w *written) wrote(runID string) error {
	if w.run == runID {
		return nil
	}
	err := w.file.Truncate(0)
	if err == nil {
		_, err = w.file.WriteAt([]byte(runID), 0)
	}
	return err
}

func (w *written) unlock() error { return errors.Join(w.free(), w.file.Close()) }

// applyPending writes recorded file changes into the workspace.
func (c *cycle) applyPending(ctx context.Context) (err error) {
	if len(c.pending) == 0 {
		return nil
	}
	w, err := c.lockFiles(c.t.Loop.ID)
	if err != nil {
		return diskFault(err)
	}
	defer func() { err = errors.Join(err, w.unlock()) }()
	root, err := os.OpenRoot(c.t.Workspace.Root)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for len(c.pending) > 0 {
		p := c.pending[0]
		// A run's own changes come in several batches; those of another run that
		// the file names were all written, by a process that ended it.
		if p.RunID != w.run || p.RunID == c.run.ID {
			if err := apply(ctx, root, p.Change); err != nil {
				return fmt.Errorf("write %s: %w", p.Path, diskFault(err))
			}
		}
		c.applied = append(c.applied, p)
		c.pending = c.pending[1:]
	}
	if c.run.State != loop.RunEnded {
		return nil
	}
	return w.wrote(c.run.ID)
}

// finishFiles writes what the ended runs of a loop left unwritten.
func (e *Engine) finishFiles(ctx context.Context, t Target, pending []loop.PendingChange) error {
	if len(pending) == 0 {
		return nil
	}
	c := &cycle{Engine: e, t: t, pending: pending}
	if err := c.applyPending(ctx); err != nil {
		return err
	}
	return e.Store.Update(ctx, func(tx *store.Tx) error { return tx.Applied(ctx, c.applied) })
}
