package compose

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/record/accepted"
	"github.com/pawl-run/pawl/internal/record/node"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/nodes"
)

// Backup writes all rows of the store into a new file.
func Backup(ctx context.Context, o Options, file string, tell func(table string)) (c store.Copied, err error) {
	err = o.onStore(ctx, func(s *store.Store) error {
		c, err = s.Backup(ctx, file, o.tables(), tell)
		return err
	})
	return c, err
}

// Restore makes the store have the rows of a backup. Nobody may be at work on it.
func Restore(ctx context.Context, o Options, file string, replace bool, tell func(table string)) (store.Restored, error) {
	return store.Restore(ctx, file, o.tables(), replace, tell)
}

// CopyStore copies all rows of the store into another database, a file or a URL, which must
// be empty. No run may be live.
func CopyStore(ctx context.Context, o Options, to string, tell func(table string)) (c store.Copied, err error) {
	err = o.onStore(ctx, func(s *store.Store) error {
		if err := s.CheckIdle(ctx, "copy the store"); err != nil {
			return err
		}
		into := o.tables()
		into.Database = to
		target, err := store.Open(ctx, into)
		if err != nil {
			return err
		}
		if c, err = s.CopyTo(ctx, target, false, tell); err == nil && s.PostgresPool() == nil && target.PostgresPool() != nil {
			err = acceptOwn(ctx, target, o.Settings.Home)
		}
		return errors.Join(err, target.Close())
	})
	return c, err
}

// acceptOwn accepts on this machine all that the rows of a copy ask of it: they were the
// user's own, in a store that no other machine shared.
func acceptOwn(ctx context.Context, copied *store.Store, home string) error {
	here, err := node.Read(home)
	if err != nil {
		return err
	}
	s := nodes.Service{Store: copied, Here: here.ID, Home: home, Accepted: accepted.In(home), OfFile: Formats(clock.System{}.Now).LoadAs}
	asked, err := s.Asks(ctx)
	var ids []string
	for _, a := range asked {
		ids = append(ids, a.ID)
	}
	if err == nil {
		_, err = s.Accept(ctx, loop.Actor{Role: loop.RoleHuman}, ids)
	}
	return err
}

// onStore calls fn with the store. One that does not exist yet is a *loop.Fault.
func (o Options) onStore(ctx context.Context, fn func(*store.Store) error) error {
	of := o.tables()
	of.ReadOnly = true
	s, err := store.Open(ctx, of)
	if errors.Is(err, loop.ErrNotFound) {
		return &loop.Fault{
			Exit: loop.ExitNotFound, What: "there is no store yet", Why: "nothing is in " + of.Database, Err: err, Fix: "the first command that writes makes one ({1})",
			Actions: []loop.Command{loop.PawlCommand("init")},
		}
	}
	if err != nil {
		return err
	}
	if v := s.Schema(); v != store.SchemaVersion && v != 0 {
		return errors.Join(&loop.Fault{
			Exit: loop.ExitNotReady, What: "copy the store", Why: "its tables are of another version than this pawl's", Fix: "bring them up to date first: {1}",
			Actions: []loop.Command{loop.PawlCommand("store migrate")},
		}, s.Close())
	}
	return errors.Join(fn(s), s.Close())
}

// Tidied says what Prune did.
type Tidied struct {
	store.Packed

	Feed    int64 `json:"feed"`    // entries that were removed
	Notices int64 `json:"notices"` // that were removed, with what became of them
	Freed   int64 `json:"freed"`   // bytes that a SQLite file got smaller by
}

// Prune compresses the transcripts of runs that ended before a time, and removes what the
// feed said and which notices were over before then. Runs, budgets and the record stay.
func Prune(ctx context.Context, o Options, olderThan time.Duration) (t Tidied, err error) {
	err = o.onStore(ctx, func(*store.Store) error { return nil })
	if err != nil {
		return t, err
	}
	s, err := store.Open(ctx, o.tables())
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	before := s.Now().Add(-olderThan)
	for after := int64(-1); ; {
		p, last, err := s.PackTranscripts(ctx, after, before)
		if err != nil {
			return t, err
		}
		if last == after {
			break
		}
		after = last
		t.Runs, t.Events, t.Before, t.After = t.Runs+p.Runs, t.Events+p.Events, t.Before+p.Before, t.After+p.After
	}
	err = s.Update(ctx, func(tx *store.Tx) (err error) {
		if t.Feed, err = tx.PruneFeed(ctx, before, math.MaxInt); err != nil {
			return err
		}
		t.Notices, err = tx.PruneNotices(ctx, before)
		return err
	})
	if err == nil {
		t.Freed, err = s.Vacuum(ctx, true)
	}
	return t, err
}
