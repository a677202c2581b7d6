package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/schedule"
)

var (
	beforeSync = fault.New("catalog.sync.commit.before")
	afterSync  = fault.New("catalog.sync.commit.after")
)

// unknown is the digest of no file.
const unknown = "\x00"

// Synced is what Sync found and did.
type Synced struct {
	Loops   int `json:"loops"`   // that files define
	Broken  int `json:"broken"`  // how many of them cannot run
	Changed int `json:"changed"` // how many rows were written
}

// Sync makes the rows of the workspace's loops say what its files say: new loops are
// registered, loops without a file are not due any more and keep their runs. A
// definition that broke keeps the digest of the last good one. It parses only files
// that have changed, and writes only if one has, everything in one transaction.
func (c *Catalog) Sync(ctx context.Context) (s Synced, err error) {
	err = untilNotOvertaken(func() error {
		s, err = c.trySync(ctx)
		return err
	})
	return s, err
}

// SyncLoop is Sync for the loop with that name.
func (c *Catalog) SyncLoop(ctx context.Context, name string) error {
	return untilNotOvertaken(func() error {
		e, err := c.Lookup(ctx, name)
		if err != nil || e.source == e.Row.Registered.Source || e.File == "" && !c.formats.ByFile(e.Protocol) {
			return err // No file says anything of a loop whose definition is in the store.
		}
		return c.register(ctx, []Entry{e})
	})
}

// errOvertaken means that somebody else registered a loop after its row was read. What
// that one has read of the file may be newer.
var errOvertaken = errors.New("the loop was registered meanwhile")

// untilNotOvertaken calls fn again while others register the same loops. Each time one
// of them has made progress.
func untilNotOvertaken(fn func() error) error {
	for {
		if err := fn(); !errors.Is(err, errOvertaken) {
			return err
		}
	}
}

// nothingMoved reports whether the rows and the files are as the last Sync found them, which
// is much less work than to compare them.
func (c *Catalog) nothingMoved(ctx context.Context, last lastSync) (bool, error) {
	if last.head == (loop.Cursor{}) {
		return false, nil
	}
	moved := false
	err := c.store.View(ctx, func(r *store.Reader) (err error) {
		moved, err = r.LoopsMoved(ctx, last.head)
		return err
	})
	if err != nil || moved {
		return false, err
	}
	files, err := c.formats.Find(c.ws.Root)
	return err == nil && c.files.areSynced(files), err
}

func (c *Catalog) trySync(ctx context.Context) (s Synced, err error) {
	// A clone that was removed, or whose disk is not mounted, says nothing of its loops.
	if _, err := os.Lstat(filepath.Join(c.ws.Root, ".git")); err != nil {
		return s, fmt.Errorf("look at the clone of the workspace: %w", err)
	}
	last := c.files.lastSync()
	if same, err := c.nothingMoved(ctx, last); same || err != nil {
		return last.found, err
	}
	rows := map[string]loop.Loop{}
	var head loop.Cursor
	err = c.store.View(ctx, func(r *store.Reader) error {
		if head, err = r.FeedHead(ctx); err != nil {
			return err
		}
		list, err := r.Loops(ctx, c.ws.ID)
		for _, l := range list {
			if c.formats.ByFile(l.Protocol) {
				rows[l.ID] = l
			}
		}
		return err
	})
	if err != nil {
		return s, err
	}
	files, err := c.formats.Find(c.ws.Root) // After the rows: register relies on it.
	if err != nil {
		return s, err
	}
	var changed []Entry
	for _, f := range files {
		if !utf8.ValidString(f.Name) {
			continue // No row can have this name, and no definition that runs.
		}
		e := c.fileEntry(f)
		e.Row = rows[e.LoopID()]
		reg := e.Row.Registered
		k := c.files.read(c.ws.Root, f, reg.Source)
		if k.source == "" {
			continue // The file was removed since it was listed.
		}
		delete(rows, e.LoopID())
		s.Loops++
		broken := reg.Broken != ""
		cycleMoved := k.source == reg.Source && c.cycleMoved(e.Name, reg)
		if cycleMoved {
			k = c.files.read(c.ws.Root, f, unknown)
		}
		if cycleMoved || k.source != reg.Source {
			e.source, e.Definition, e.Problem = k.source, k.parsed.def, k.parsed.problem
			if e.Problem == nil {
				e.Problem = c.findCycle(e.Name, e.Definition.On)
			}
			broken = e.Problem != nil
			changed = append(changed, e)
		} else {
			c.files.markSynced(f, k.source)
		}
		if broken {
			s.Broken++
		}
	}
	for _, l := range rows {
		if l.Registered != (loop.Registration{}) {
			changed = append(changed, storeEntry(l))
		}
	}
	if s.Changed = len(changed); s.Changed == 0 {
		c.files.keepSync(lastSync{s, head})
		return s, nil
	}
	if err := c.register(ctx, changed); err != nil {
		return s, err
	}
	for _, e := range changed { // The rows have it.
		c.files.forgetParsed(e.Key())
	}
	return s, nil
}

// register registers loops whose files were read after their rows. If one of the rows
// says something else by now, nothing is written, and the error is errOvertaken.
func (c *Catalog) register(ctx context.Context, list []Entry) error {
	if err := beforeSync.Hit(ctx); err != nil {
		return err
	}
	entries := map[string]Entry{}
	var missing []loop.Loop
	for _, e := range list {
		entries[e.LoopID()] = e
		if e.Row.ID == "" {
			missing = append(missing, loop.Loop{ID: e.LoopID(), WorkspaceID: c.ws.ID, Name: e.Name, Protocol: e.Protocol})
		}
	}
	err := c.store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.RegisterLoops(ctx, missing); err != nil {
			return err
		}
		locked, err := tx.LockLoops(ctx, slices.Sorted(maps.Keys(entries))...)
		if err != nil {
			return err
		}
		// Of two workspaces with the same files each writes definitions in the same order.
		slices.SortFunc(locked, func(a, b loop.Loop) int {
			return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Protocol, b.Protocol))
		})
		for _, l := range locked {
			e := entries[l.ID]
			if l.Registered.Source != e.Row.Registered.Source {
				return errOvertaken
			}
			if err := e.saveRegistration(ctx, tx, c.ws.Root, l); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return afterSync.Hit(ctx)
}

// Registration returns the part of Sync that is about one loop, for the transaction that
// fires a run of it and has locked its row. It writes nothing if the row says already
// what LoadDefinitions has read, or if somebody else registered the loop since then.
func (c *Catalog) Registration(e Entry) func(context.Context, *store.Tx, loop.Loop) error {
	return func(ctx context.Context, tx *store.Tx, l loop.Loop) error {
		if e.source == l.Registered.Source || l.Registered.Source != e.Row.Registered.Source {
			return nil
		}
		return e.saveRegistration(ctx, tx, c.ws.Root, l)
	}
}

// saveRegistration makes the locked row of the loop say what its file says.
func (e Entry) saveRegistration(ctx context.Context, tx *store.Tx, root string, l loop.Loop) error {
	before, reg := l.Registered, loop.Registration{Source: e.source}
	if e.source != "" && !e.Definition.NeverFires() {
		reg.Listens = strings.Join(e.Definition.On, "\n")
	}
	switch {
	case e.source == "": // The file is gone: so is what it said.
	case e.Problem != nil:
		// It keeps what is planned: mended in time, it fires then.
		reg.Good, reg.Planned, reg.Due = before.Good, before.Planned, before.Due
		reg.Broken = describeProblem(root, e.Problem)
	default:
		d := e.Definition.WithDefaults()
		reg.Good = d.Digest()
		if err := tx.AddDefinition(ctx, l.ID, d); err != nil {
			return err
		}
		same, err := firesAsBefore(ctx, tx, before, reg.Good, d)
		if err != nil {
			return err
		}
		next := schedule.Firing{Planned: before.Planned, Due: before.Due}
		if !same {
			after := tx.Now()
			if after.Before(l.Ticked) { // The clock was set back: no planned time comes twice.
				after = l.Ticked
			}
			if next, err = schedule.Next(d, l.Created, after); err != nil {
				return err
			}
		}
		reg.Planned, reg.Due = next.Planned, next.Due
	}
	return tx.SaveRegistration(ctx, l.ID, reg)
}

// firesAsBefore reports whether what is planned for a loop also holds for a definition.
func firesAsBefore(ctx context.Context, tx *store.Tx, before loop.Registration, digest string, d loop.Definition) (bool, error) {
	if before.Due.IsZero() {
		return false, nil
	}
	if before.Good == digest {
		return true, nil
	}
	old, err := tx.Definitions(ctx, before.Good)
	if err != nil {
		return false, err
	}
	good, ok := old[before.Good]
	return ok && schedule.SameDue(good, d), nil
}

// describeProblem returns the first line of why a definition cannot run, with its path
// relative to the workspace, which may lie elsewhere on another node.
func describeProblem(root string, problem error) string {
	line, _, _ := strings.Cut(problem.Error(), "\n")
	return strings.ReplaceAll(line, root+string(filepath.Separator), "")
}
