// Package catalog finds and lists the loops of a workspace: those that files below
// .loops define, the loop boot that AGENT_LINK.md makes, the agents in agents/, and those
// that only the store has.
//
// It opens only the definitions of the loops that a caller asks for, so that finding
// one loop costs the same however many there are. Sync, SyncLoop and Entry.Register make
// rows of the store say what the files say; the package writes nothing else, never a file,
// runs nothing, and judges a definition only by whether it can be read.
package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// LoopID returns the id of the loop with that protocol and name in a workspace.
func LoopID(workspace, protocol, name string) string {
	sum := sha256.Sum256([]byte(workspace + "\x00" + protocol + "\x00" + name))
	return "lp_" + hex.EncodeToString(sum[:8])
}

// Entry is a loop of a workspace.
type Entry struct {
	Workspace string // id
	Name      string
	Protocol  string
	File      string    // of its definition, relative to the workspace; empty: only the store has the loop
	Row       loop.Loop // of the store; the zero Loop if it was never registered

	// Lookup, LoadDefinitions and List fill these in.
	Definition loop.Definition // as far as it can be read; without a file, the newest of the store
	Warnings   []string        // findings with which the loop still runs
	Problem    error           // why the loop cannot run; nil: the definition is valid

	on     format.Source // what defines it on disk
	source string        // digest of the file as LoadDefinitions read it; empty: there was none
}

// LoopID returns the id of the loop, also if it was never registered.
func (e Entry) LoopID() string { return LoopID(e.Workspace, e.Protocol, e.Name) }

// Key returns the place of the loop in a listing.
func (e Entry) Key() Key { return Key{e.Name, e.Protocol} }

// Key orders the loops of a workspace: by name, then by protocol, byte by byte.
type Key struct{ Name, Protocol string }

func keyOf(s format.Source) Key { return Key{s.Name, s.Format} }

func (k Key) compare(other Key) int {
	return cmp.Or(strings.Compare(k.Name, other.Name), strings.Compare(k.Protocol, other.Protocol))
}

// Catalog finds the loops of one workspace. Its methods may be called concurrently.
type Catalog struct {
	ws      loop.Workspace
	formats format.List
	store   *store.Store
	files   cache
}

// New returns the catalog of a workspace. The store is nil if there is none yet. Version
// is that of this pawl.
func New(ws loop.Workspace, formats format.List, s *store.Store, now func() time.Time, version string) *Catalog {
	return &Catalog{ws: ws, formats: formats, store: s, files: cache{formats: formats, now: now, version: version}}
}

// Lookup finds a loop by its name, or by protocol:name if two protocols have the name,
// and reads its definition. It returns a *loop.Fault if there is no such loop, or more
// than one.
func (c *Catalog) Lookup(ctx context.Context, name string) (Entry, error) {
	e, err := c.Resolve(ctx, name)
	if err != nil {
		return e, err
	}
	one := []Entry{e}
	err = c.LoadDefinitions(ctx, one)
	return one[0], err
}

// Resolve is Lookup without the definition: it opens no file.
func (c *Catalog) Resolve(ctx context.Context, name string) (Entry, error) {
	names := []string{name}
	protocol, rest, both := strings.Cut(name, ":")
	if both {
		names = append(names, rest)
	}
	there, err := c.FindNamed(ctx, names...)
	if err != nil {
		return Entry{}, err
	}
	hits := slices.DeleteFunc(there, func(e Entry) bool { return e.Name != name && (!both || e.Name != rest || e.Protocol != protocol) })
	switch len(hits) {
	case 0:
		if e, ok, err := c.findByID(ctx, name); ok || err != nil {
			return e, err
		}
		if err := c.formats.MissingNamed(c.ws.Root, name); err != nil {
			return Entry{}, err
		}
		return Entry{}, c.noLoopFault(ctx, name)
	case 1:
		return hits[0], nil
	}
	var choice []string
	for _, h := range hits {
		choice = append(choice, h.Protocol+":"+h.Name)
	}
	return Entry{}, AmbiguousFault(name, choice)
}

// AmbiguousFault is the error for a name that means several loops.
func AmbiguousFault(name string, choice []string) error {
	return &loop.Fault{
		Exit: loop.ExitUsage, What: fmt.Sprintf("%q names several loops", name), Fix: "say which: " + strings.Join(choice, " or "),
	}
}

// findByID finds a loop by its id, as rows and feeds show it.
func (c *Catalog) findByID(ctx context.Context, id string) (e Entry, found bool, err error) {
	if !strings.HasPrefix(id, "lp_") {
		return e, false, nil
	}
	var row loop.Loop
	err = c.viewStore(ctx, func(r *store.Reader) (err error) {
		row, err = r.Loop(ctx, id)
		return err
	})
	if err != nil || row.WorkspaceID != c.ws.ID || row.Forgotten {
		return e, false, err
	}
	there, err := c.FindNamed(ctx, row.Name)
	for _, e := range there {
		if e.Protocol == row.Protocol {
			return e, true, err
		}
	}
	return e, false, err
}

// noLoopFault is the error for an unknown name. It lists the existing ones.
func (c *Catalog) noLoopFault(ctx context.Context, name string) error {
	f := &loop.Fault{
		Exit: loop.ExitNotFound, What: fmt.Sprintf("there is no loop %q in %s", name, c.ws.Root), Err: loop.ErrNotFound,
		Fix:     "make it: {1}; or try {2}, which needs no file",
		Actions: []loop.Command{loop.PawlCommand("new", name), loop.PawlCommand("run").WithFlag("until", "go test ./...").WithBlanks("go test ./...")},
	}
	there, err := c.List(ctx, Page{Bare: true})
	if err != nil {
		return err
	}
	var names []string
	for _, e := range there {
		names = append(names, e.Name)
	}
	if len(names) > 0 {
		f = f.WithAdvice(loop.Advise(readiness.Suggest(name, slices.Compact(names))))
	}
	return f
}

// FindNamed finds the loops of any protocol that have one of the names, in the order of
// a listing. Their definitions are not read.
func (c *Catalog) FindNamed(ctx context.Context, names ...string) ([]Entry, error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	var list []Entry
	for _, name := range names {
		files, err := c.formats.FindNamed(c.ws.Root, name)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			list = append(list, c.fileEntry(f))
		}
	}
	err := c.viewStore(ctx, func(r *store.Reader) error {
		rows, err := r.LoopsNamed(ctx, c.ws.ID, names...)
		for _, row := range rows {
			i := slices.IndexFunc(list, func(e Entry) bool { return e.Key() == Key{row.Name, row.Protocol} })
			switch {
			case i >= 0:
				list[i].Row = row
			case c.isListed(row):
				list = append(list, storeEntry(row))
			}
		}
		return err
	})
	slices.SortFunc(list, func(a, b Entry) int { return a.Key().compare(b.Key()) })
	return list, err
}

func (c *Catalog) fileEntry(s format.Source) Entry {
	return Entry{Workspace: c.ws.ID, Name: s.Name, Protocol: s.Format, File: s.File, on: s}
}

// storeEntry returns the entry of a loop that no file defines.
func storeEntry(row loop.Loop) Entry {
	return Entry{Workspace: row.WorkspaceID, Name: row.Name, Protocol: row.Protocol, Row: row}
}

// isListed reports whether a loop is listed that no file defines: it has run, or the store
// has its definition, and nobody forgot it since. Of a file that is gone and never ran
// nothing is left to see.
func (c *Catalog) isListed(row loop.Loop) bool {
	return !row.Forgotten && (row.LastN > 0 || !c.formats.ByFile(row.Protocol) && row.Registered.Good != "")
}

// Page is a part of a listing. The zero Page is all of it.
type Page struct {
	After Key  // only loops after this one
	Limit int  // at most this many; 0: all
	Bare  bool // the definitions are not read
}

// List returns the loops of the workspace: those that files define, and those of the
// store that have run and were not forgotten.
func (c *Catalog) List(ctx context.Context, p Page) ([]Entry, error) {
	files, err := c.formats.Find(c.ws.Root)
	if err != nil {
		return nil, err
	}
	for len(files) > 0 && keyOf(files[0]).compare(p.After) <= 0 {
		files = files[1:]
	}
	limit := cmp.Or(p.Limit, math.MaxInt32)
	list := make([]Entry, 0, min(limit, len(files)))
	err = c.viewStore(ctx, func(r *store.Reader) error {
		for last := p.After; ; {
			rows, err := r.LoopsAfter(ctx, c.ws.ID, last.Name, last.Protocol, limit)
			if err != nil {
				return err
			}
			for _, row := range rows {
				last = Key{row.Name, row.Protocol}
				for len(files) > 0 && keyOf(files[0]).compare(last) <= 0 {
					list, files = append(list, c.fileEntry(files[0])), files[1:]
				}
				switch n := len(list); {
				case n > 0 && list[n-1].Key() == last:
					list[n-1].Row = row
				case c.isListed(row):
					list = append(list, storeEntry(row))
				}
			}
			if len(rows) < limit || len(list) >= limit {
				return nil
			}
		}
	})
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		list = append(list, c.fileEntry(f))
	}
	list = list[:min(len(list), limit)]
	if p.Bare {
		return list, nil
	}
	return list, c.LoadDefinitions(ctx, list)
}

// LoadDefinitions reads the definitions of the entries. If one of them is invalid, its
// entry gets a Problem, and there is no error.
func (c *Catalog) LoadDefinitions(ctx context.Context, list []Entry) error {
	stored := map[string]loop.Definition{}
	var digests []string
	for i := range list {
		e := &list[i]
		if e.File == "" {
			digests = append(digests, e.Row.Definition)
			continue
		}
		k := c.files.read(c.ws.Root, e.on, unknown)
		e.source, e.Definition, e.Warnings, e.Problem = k.source, k.parsed.def, k.parsed.warnings, k.parsed.problem
		if e.Problem == nil {
			e.Problem = c.findCycle(e.Name, e.Definition.On)
		}
	}
	if len(digests) == 0 {
		return nil
	}
	err := c.viewStore(ctx, func(r *store.Reader) (err error) {
		stored, err = r.Definitions(ctx, digests...)
		return err
	})
	if err != nil {
		return err
	}
	for i := range list {
		e := &list[i]
		if e.File != "" {
			continue
		}
		d, ok := stored[e.Row.Definition]
		e.Definition = d
		switch {
		case c.formats.ByFile(e.Protocol):
			e.Problem = c.formats.Of(e.Protocol).Files.Missing(c.ws.Root, e.Name)
		case !ok:
			e.Problem = &loop.Fault{
				Exit: loop.ExitNotFound, What: "loop " + e.Name + " has no definition that can be read", Err: loop.ErrNotFound,
				Why: "it has no file, and the store has no readable one",
				Fix: "forget the loop: {1}", Actions: []loop.Command{loop.PawlCommand("rm", e.Name)},
			}
		}
	}
	return nil
}

// viewStore reads from the store. Without a store it does nothing.
func (c *Catalog) viewStore(ctx context.Context, fn func(*store.Reader) error) error {
	if c.store == nil {
		return nil
	}
	err := c.store.View(ctx, fn)
	if errors.Is(err, loop.ErrNotFound) {
		return nil
	}
	return err
}
