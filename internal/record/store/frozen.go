package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// frozen is a SQLite file in a folder that this process may not write. SQLite
// would make files beside it even to read, unless another process has made them.
type frozen struct {
	path string
	seen stamp
	copy string // folder of the copy that is read instead; empty: the file itself
}

// stamp tells whether a store has changed: the file, and the write-ahead log beside
// it.
type stamp struct {
	size, wal int64
	changed   time.Time
}

func stampOf(path string) (stamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}, err
	}
	s := stamp{size: info.Size(), changed: info.ModTime()}
	wal, err := os.Stat(path + "-wal")
	if err == nil {
		s.wal = wal.Size()
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return s, err
}

// isUnwritable reports whether an error is that of a SQLite file, or its folder,
// that may not be written.
func isUnwritable(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return false
	}
	code := e.Code() & 0xff
	return code == sqlite3.SQLITE_CANTOPEN || code == sqlite3.SQLITE_READONLY
}

// connectFrozen opens a SQLite file without writing anything beside it. Without a log
// beside the file, all committed rows are in it, and it is read as it is; a View
// during which it changes fails. With a log, a copy of both is read.
func connectFrozen(o Options) (*Store, error) {
	f, err := newFrozen(o.Database)
	if err != nil {
		return nil, fmt.Errorf("read the store %s, whose folder cannot be written: %w", o.Database, err)
	}
	path, how := o.Database, "&immutable=1"
	if f.copy != "" {
		path, how = filepath.Join(f.copy, "pawl.db"), ""
	}
	r, err := openSQLite("file:" + (&url.URL{Path: path}).EscapedPath() + "?_pragma=foreign_keys(1)&_pragma=query_only(1)" + how)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", o.Database, err), f.close())
	}
	r.SetMaxIdleConns(2)
	return &Store{w: r, r: r, clock: newDatabaseClock(o, true), lease: cmp.Or(o.Lease, Lease), frozen: f, sql: sqliteDialect(o)}, nil
}

func newFrozen(path string) (*frozen, error) {
	const tries = 5
	for range tries {
		seen, err := stampOf(path)
		if err != nil {
			return nil, err
		}
		f := &frozen{path: path, seen: seen}
		if seen.wal == 0 {
			return f, nil
		}
		if f.copy, err = os.MkdirTemp("", "pawl-store-"); err != nil {
			return nil, err
		}
		for from, to := range map[string]string{path: "pawl.db", path + "-wal": "pawl.db-wal"} {
			err = errors.Join(err, copyFile(from, filepath.Join(f.copy, to)))
		}
		now, stampErr := stampOf(path)
		if err = errors.Join(err, stampErr); err == nil && now == seen {
			return f, nil
		}
		if closed := f.close(); err != nil || closed != nil {
			return nil, errors.Join(err, closed)
		}
	}
	return nil, errChanged(path)
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// checkUnchanged returns err, or that the file has changed during the View: the rows
// may then be of two times.
func (f *frozen) checkUnchanged(err error) error {
	if f == nil || f.copy != "" {
		return err
	}
	now, stampErr := stampOf(f.path)
	if stampErr != nil || now != f.seen {
		return errors.Join(errChanged(f.path), stampErr)
	}
	return err
}

func errChanged(path string) error {
	return &loop.Fault{
		Exit: loop.ExitHeld, What: "read the store " + path,
		Why: "its folder cannot be written here, and another process has written to it in the meantime",
		Fix: "run the command again, or run it where the folder is writable",
	}
}

// close removes the copy.
func (f *frozen) close() error {
	if f == nil || f.copy == "" {
		return nil
	}
	return os.RemoveAll(f.copy)
}

// openReadOnly opens a SQLite file for a reader, also where nothing can be
// written.
func openReadOnly(ctx context.Context, o Options) (*Store, error) {
	s, err := connectSQLite(o)
	if err != nil {
		return nil, err
	}
	err = s.prepare(ctx, o)
	if err == nil {
		return s, nil
	}
	err = errors.Join(err, s.Close())
	if !isUnwritable(err) {
		return nil, err
	}
	s, frozenErr := connectFrozen(o)
	if frozenErr != nil {
		return nil, errors.Join(err, frozenErr)
	}
	if err := s.prepare(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
