package store

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// checkFile fails if the SQLite file is not the one that was opened: a connection
// still reads and writes a deleted file, and all of that is lost.
func (s *Store) checkFile() error {
	if s.file == nil {
		return nil
	}
	now, err := os.Stat(s.sql.place)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return goneFault(s.sql, "the file was deleted while it was in use")
	case err == nil && !os.SameFile(s.file, now):
		return goneFault(s.sql, "the file was replaced by another one while it was in use")
	}
	return nil
}

func goneFault(d dialect, why string) error {
	return &loop.Fault{
		Exit: loop.ExitError, What: "use the store " + d.place, Why: why, Err: loop.ErrStoreGone,
		Fix: "put the store back or restore it from a backup; without one, run the loop again with a new store",
	}
}
