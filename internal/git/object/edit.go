package object

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// editing is one folder on the way to a changed path.
type editing struct {
	id      string              // of the tree it was; empty: there was none
	entries map[string]Entry    // by name, without path; what below holds is written over it
	below   map[string]*editing // folders on the way to other changed paths
}

func newEditing() *editing {
	return &editing{entries: map[string]Entry{}, below: map[string]*editing{}}
}

// editTree adds to p the trees that differ from start after the changes, and
// returns the id of the uppermost one.
func (b *Blobs) editTree(start string, changes []FileChange, p *pack) (string, error) {
	top := newEditing()
	top.id = start
	for _, c := range changes {
		top.walkTo(c.Path)
	}
	for level := []*editing{top}; len(level) > 0; {
		var err error
		if level, err = b.loadLevel(level); err != nil {
			return "", err
		}
	}
	for _, c := range changes {
		if c.Delete {
			top.removePath(c.Path)
		}
	}
	for _, c := range changes {
		if !c.Delete {
			top.setPath(c)
		}
	}
	return top.writeTree(p), nil
}

// TreeWithout returns the name that the tree of a commit, or a tree, would have without
// those files of the folders that enter lets it into. Nothing is written.
func (b *Blobs) TreeWithout(rev string, enter, drop func(path string) bool) (string, error) {
	tree, err := b.TreeOf(rev)
	if err != nil {
		return "", err
	}
	const most = 10_000 // folders that are looked into
	files, _, err := b.Within(tree, most, enter)
	var changes []FileChange
	for _, f := range files {
		if drop(f.Path) {
			changes = append(changes, FileChange{Path: f.Path, Delete: true})
		}
	}
	if err != nil || len(changes) == 0 {
		return tree, err
	}
	return b.editTree(tree, changes, &pack{store: Store{Format: b.format}})
}

// walkTo makes the folders on the way to a path, and returns the last of them
// with the last name.
func (e *editing) walkTo(path string) (*editing, string) {
	for {
		name, rest, deeper := strings.Cut(path, "/")
		if !deeper {
			return e, name
		}
		if e.below[name] == nil {
			e.below[name] = newEditing()
		}
		e, path = e.below[name], rest
	}
}

// loadLevel reads the trees of folders at once, and returns those below them that
// have trees to be read.
func (b *Blobs) loadLevel(level []*editing) (next []*editing, err error) {
	level = slices.DeleteFunc(level, func(e *editing) bool { return e.id == "" })
	ids := make([]string, len(level))
	for i, e := range level {
		ids[i] = e.id
	}
	bodies, err := b.readTrees(ids)
	if err != nil {
		return nil, err
	}
	for i, e := range level {
		list, err := b.parseEntries("", bodies[i])
		if err != nil {
			return nil, fmt.Errorf("read tree %s: %w", e.id, err)
		}
		for _, entry := range list {
			if _, twice := e.entries[entry.Path]; twice {
				return nil, fmt.Errorf("tree %s holds %q twice", e.id, entry.Path)
			}
			e.entries[entry.Path] = entry
		}
		for name, below := range e.below {
			if entry := e.entries[name]; entry.Mode == ModeTree {
				below.id = entry.ID
				next = append(next, below)
			}
		}
	}
	return next, nil
}

// removePath takes away a file, or a folder with all that is in it.
func (e *editing) removePath(path string) {
	in, name := e.walkTo(path)
	delete(in.entries, name)
	if below := in.below[name]; below != nil {
		below.removeAll()
	}
}

// removeAll takes everything out of a folder.
func (e *editing) removeAll() {
	clear(e.entries)
	for _, below := range e.below {
		below.removeAll()
	}
}

// setPath adds or replaces a file. It removes a folder of the same name, and any
// file where the path needs a folder.
func (e *editing) setPath(c FileChange) {
	at := e
	for name := range strings.SplitSeq(c.Path, "/") {
		if at.entries[name].Mode != ModeTree {
			delete(at.entries, name)
		}
		if at.below[name] == nil {
			break
		}
		at = at.below[name]
	}
	e.removePath(c.Path)
	in, name := e.walkTo(c.Path)
	in.entries[name] = Entry{Path: name, Mode: c.Mode, ID: c.ID}
}

// writeTree adds to p what has changed, from below, and returns the tree's id. A
// folder without files is in no tree.
func (e *editing) writeTree(p *pack) string {
	e.writeBelow(p)
	body := treeBody(slices.Collect(maps.Values(e.entries)))
	if id := p.store.Format.ID("tree", body); id == e.id {
		return id // Nothing was changed by the changes.
	}
	return p.addObject("tree", body)
}

// writeBelow writes what is below and enters it.
func (e *editing) writeBelow(p *pack) {
	for name, below := range e.below {
		below.writeBelow(p)
		switch {
		case len(below.entries) > 0:
			e.entries[name] = Entry{Path: name, Mode: ModeTree, ID: below.writeTree(p)}
		case e.entries[name].Mode == ModeTree:
			delete(e.entries, name)
		}
	}
	clear(e.below)
}

// treeBody is a tree object of the entries.
func treeBody(entries []Entry) []byte {
	// Git sorts a folder as if its name ended with a slash.
	key := func(e Entry) string {
		if e.Mode == ModeTree {
			return e.Path + "/"
		}
		return e.Path
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(key(a), key(b)) })
	var b bytes.Buffer
	for _, e := range entries {
		b.WriteString(strconv.FormatUint(uint64(e.Mode), 8))
		b.WriteByte(' ')
		b.WriteString(e.Path)
		b.WriteByte(0)
		raw, _ := hex.DecodeString(e.ID)
		b.Write(raw)
	}
	return b.Bytes()
}
