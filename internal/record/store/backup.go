package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// A backup is a SQLite file with the tables of a store, whatever database the store is.

// Backup writes all rows of the store, as they are at one moment, into a new file.
func (s *Store) Backup(ctx context.Context, file string, o Options, tell func(table string)) (c Copied, err error) {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = &loop.Fault{Exit: loop.ExitMissing, What: "there is a file " + file + " already", Why: "a backup replaces no file", Fix: "name another file, or remove it first"}
		}
		return c, err
	}
	part, err := partOf(file)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, removeSQLite(part)) }()
	o.Database = part
	target, err := Open(ctx, o)
	if err != nil {
		return c, err
	}
	c, err = s.CopyTo(ctx, target, false, tell)
	if err = errors.Join(err, target.Close()); err != nil {
		return c, err
	}
	return c, moveInto(part, file)
}

// partOf makes an empty file beside another one, in which that is made.
func partOf(file string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".part-*")
	if err != nil {
		return "", fmt.Errorf("make a file beside %s: %w", file, err)
	}
	return f.Name(), f.Close()
}

// removeSQLite removes a SQLite file and what SQLite has made beside it, if they are there.
func removeSQLite(path string) error {
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(path + suffix); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// moveInto gives a finished file its name, so that it is there after a power cut or not
// at all.
func moveInto(part, file string) error {
	err := syncPath(part)
	if err == nil {
		err = os.Rename(part, file)
	}
	if err == nil {
		err = syncPath(filepath.Dir(file))
	}
	if err != nil {
		return fmt.Errorf("put %s in its place: %w", file, err)
	}
	return nil
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Restored says what Restore has done.
type Restored struct {
	Copied

	Replaced string `json:"replaced,omitempty"` // where the SQLite file is that was there before
}

// Restore makes the store of the options have the rows of a backup. What it has is
// replaced only if replace says so; a SQLite file is kept beside it. Nobody may be at
// work on the store.
func Restore(ctx context.Context, file string, o Options, replace bool, tell func(table string)) (r Restored, err error) {
	near := o.Database
	if isPostgres(o.Database) {
		near = filepath.Join(os.TempDir(), "pawl.db")
	} else if err := os.MkdirAll(filepath.Dir(near), 0o700); err != nil {
		return r, homeFault(filepath.Dir(near), err)
	}
	part, err := partOf(near)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, removeSQLite(part)) }()
	if err := errors.Join(os.Remove(part), copyFile(file, part)); err != nil {
		return r, &loop.Fault{Exit: loop.ExitNotFound, What: "read the backup " + file, Why: err.Error(), Err: err, Fix: "name a file that was written as a backup"}
	}
	of := o
	of.Database, of.Node = part, loop.Node{}
	if err := checkBackup(ctx, file, of); err != nil {
		return r, err
	}
	if isPostgres(o.Database) {
		r.Copied, err = restoreInto(ctx, of, o, replace, tell)
		return r, err
	}
	if r.Copied, err = countRows(ctx, of, tell); err != nil {
		return r, err
	}
	if r.Replaced, err = putAside(ctx, o, replace); err != nil {
		return r, err
	}
	return r, moveInto(part, o.Database)
}

// checkBackup brings the tables of a copy of a backup up to date. One that is damaged, or
// that pawl did not make, is a *loop.Fault.
func checkBackup(ctx context.Context, file string, o Options) error {
	bad := func(err error, why string) error {
		return &loop.Fault{Exit: loop.ExitUnreadable, What: "read the backup " + file, Why: why, Err: err, Fix: "name a file that was written as a backup"}
	}
	return onTables(ctx, o, func(s *Store) error {
		v, err := s.version(ctx)
		switch {
		case err != nil:
			return bad(err, err.Error())
		case v == 0:
			return bad(nil, "there are no tables of pawl in it")
		case v > SchemaVersion:
			return bad(nil, fmt.Sprintf("its tables are version %d, this pawl knows up to %d", v, SchemaVersion))
		}
		found, err := s.readNames(ctx, `PRAGMA quick_check(1)`)
		if err != nil || strings.Join(found, "") != "ok" {
			return bad(err, cmp.Or(strings.Join(found, "; "), "it is damaged"))
		}
		if err := s.migrateAndRead(ctx); err != nil {
			return err
		}
		return s.Update(ctx, func(tx *Tx) error {
			_, err := tx.exec(ctx, numberAnew)
			return err
		})
	})
}

// numberAnew makes the next run of each loop look for the highest number that branches and
// files hold: those of runs that came after the backup are not to come again.
const numberAnew = `UPDATE loops SET numbered = 0`

func restoreInto(ctx context.Context, from, to Options, replace bool, tell func(table string)) (c Copied, err error) {
	source, err := Open(ctx, from)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := Open(ctx, to)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if err := target.CheckIdle(ctx, "restore a backup"); err != nil {
		return c, err
	}
	if filled, err := target.filled(ctx); err != nil || filled != "" && !replace {
		return c, cmp.Or(err, overwriteFault(target.sql.place, filled))
	}
	return source.CopyTo(ctx, target, replace, tell)
}

// countRows counts what a restored file has, and compares its audit chains with its record.
func countRows(ctx context.Context, o Options, tell func(table string)) (c Copied, err error) {
	s, err := Open(ctx, o)
	if err != nil {
		return c, err
	}
	err = s.View(ctx, func(r *Reader) error {
		for _, table := range copiedTables {
			tell(table)
			n := TableCount{Table: table}
			if err := r.queryRow(ctx, "SELECT count(*) FROM "+table).Scan(&n.Rows); err != nil {
				return fmt.Errorf("count the table %s: %w", table, err)
			}
			c.add(n)
		}
		return compareChains(ctx, r, r)
	})
	return c, errors.Join(err, s.Close())
}

// putAside takes the SQLite file of a store out of the way. It returns where it is then,
// empty if there was none, or one without rows.
func putAside(ctx context.Context, o Options, replace bool) (string, error) {
	filled, err := filledTable(ctx, o)
	inUse, isFault := errors.AsType[*loop.Fault](err)
	switch {
	case errors.Is(err, loop.ErrNotFound):
		return "", nil
	case isFault && inUse.Exit == loop.ExitHeld, err != nil && !replace: // One that cannot be read is what a backup is for.
		return "", err
	case err == nil && filled == "":
		return "", removeSQLite(o.Database)
	case !replace:
		return "", overwriteFault(o.Database, filled)
	}
	for n := 1; ; n++ {
		aside := fmt.Sprintf("%s.before-restore-%d", o.Database, n)
		if _, err := os.Lstat(aside); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		for _, suffix := range []string{"-wal", "-shm", ""} { // Without its log the file may be an older one.
			if err := os.Rename(o.Database+suffix, aside+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", fmt.Errorf("put %s aside: %w", o.Database+suffix, err)
			}
		}
		return aside, nil
	}
}

func overwriteFault(place, filled string) error {
	return &loop.Fault{
		Exit: loop.ExitUsage, What: "restore a backup into " + place, Why: "there are rows in its table " + filled + ", which would be replaced", Fix: "add --yes to replace them",
	}
}

// filledTable names a table of a SQLite store that has rows; empty if none has. A store with
// live runs is a *loop.Fault.
func filledTable(ctx context.Context, o Options) (filled string, err error) {
	if _, err := os.Stat(o.Database); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = loop.ErrNotFound
		}
		return "", err
	}
	s, err := Open(ctx, o)
	if err != nil {
		return "", err
	}
	err = s.CheckIdle(ctx, "restore a backup")
	if err == nil {
		filled, err = s.filled(ctx)
	}
	return filled, errors.Join(err, s.Close())
}

// filled names a table that has rows; empty if none has.
func (s *Store) filled(ctx context.Context) (table string, err error) {
	err = s.View(ctx, func(r *Reader) (err error) {
		table, err = firstFilled(ctx, r)
		return err
	})
	return table, err
}

// CheckIdle is a *loop.Fault while runs of the store are live, on whatever node.
func (s *Store) CheckIdle(ctx context.Context, doing string) error {
	live, err := s.readNames(ctx, liveElsewhere)
	if err != nil || len(live) == 0 {
		return err
	}
	return &loop.Fault{
		Exit: loop.ExitHeld, What: doing, Why: strings.Join(live, "; "), Fix: "wait until these runs have ended, or stop them ({1}), and enter the command again",
		Actions: []loop.Command{loop.PawlCommand("stop", "RUN").WithBlanks("RUN")},
	}
}
