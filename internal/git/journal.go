package git

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/git/gitdir"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/ground/safeopen"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// journalName is a file in the git directory of a checkout. It is empty unless
// an Advance has begun and not ended, and is locked while one runs.
const journalName = "pawl-advance"

// journal is what the next process needs to finish an Advance.
type journal struct{ file *os.File }

// openJournal opens the journal and locks it against other processes.
func openJournal(dirs gitdir.Dirs, a Advance) (*journal, error) {
	f, err := os.OpenFile(filepath.Join(dirs.GitDir, journalName), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("advance %s: %w", a.Branch, err)
	}
	if err := lockFile(f); err != nil {
		f.Close()
		return nil, &loop.Fault{
			Exit: loop.ExitHeld, What: dirs.Root + " is being advanced by another process", Why: gitdir.Reason(err),
			Fix: "wait until it is done, then repeat", Err: err,
		}
	}
	return &journal{f}, nil
}

func (j *journal) close() {
	_ = unlockFile(j.file) // Closing it does so too, if no program is being started.
	j.file.Close()
}

// write makes the journal durable before the ref moves.
func (j *journal) write(ctx context.Context, a Advance) error {
	if err := beforeJournal.Hit(ctx); err != nil {
		return fmt.Errorf("advance %s: %w", a.Branch, err)
	}
	text, err := json.Marshal(a)
	if err == nil {
		_, err = j.file.WriteAt(text, 0)
	}
	if err = errors.Join(err, j.file.Sync(), afterJournal.Hit(ctx)); err != nil {
		return fmt.Errorf("advance %s: write journal: %w", a.Branch, err)
	}
	return nil
}

// clear says that nothing is unfinished.
func (j *journal) clear() error {
	info, err := j.file.Stat()
	if err == nil && info.Size() > 0 {
		err = j.file.Truncate(0)
	}
	if err != nil {
		return fmt.Errorf("clear journal: %w", err)
	}
	return nil
}

// readJournal returns what the journal holds. One that is damaged was never
// completely written, so its ref was not moved.
func readJournal(dirs gitdir.Dirs, format object.Format) (Advance, bool) {
	f, _, err := safeopen.Open(filepath.Join(dirs.GitDir, journalName))
	if err != nil {
		return Advance{}, false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 16<<10))
	var a Advance
	if err != nil || json.Unmarshal(text, &a) != nil || a.check(format) != nil {
		return Advance{}, false
	}
	return a, true
}
