package object

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxChain bounds how many commits Added follows.
const maxChain = 16

// Added lists the objects that rev, a commit or a tree, adds to what the commit
// base reaches. It follows commits with one parent; where that does not lead to
// base soon, ok is false. Some of the objects may be known to base under
// other paths.
func (b *Blobs) Added(rev, base string) (ids []string, ok bool, err error) {
	a := &added{blobs: b, known: map[string]bool{}}
	from, _, err := b.readTreeOf(base)
	if err != nil {
		return nil, false, err
	}
	for range maxChain {
		if rev == base {
			return a.ids, true, nil
		}
		tree, parents, err := b.readCommit(rev)
		if err != nil {
			return nil, false, err
		}
		if tree == "" {
			err := a.addTree(from, rev)
			return a.ids, true, err
		}
		a.addObject(rev)
		if err := a.addTree(from, tree); err != nil {
			return nil, false, err
		}
		if len(parents) != 1 {
			return nil, false, nil
		}
		rev = parents[0]
	}
	return nil, false, nil
}

// Parents returns the parents of a commit. Another object has none.
func (b *Blobs) Parents(id string) ([]string, error) {
	_, parents, err := b.readCommit(id)
	return parents, err
}

// readCommit reads the tree and the parents of a commit. Another object has no tree.
func (b *Blobs) readCommit(id string) (tree string, parents []string, err error) {
	var body []byte
	err = b.eachObject([]string{id}, func(_ int, kind string, size int64, r io.Reader) error {
		if kind != "commit" {
			return nil
		}
		body, err = readObject("commit", kind, size, r)
		return err
	})
	if err != nil {
		return "", nil, err
	}
	for line := range bytes.Lines(body) {
		key, value, _ := strings.Cut(strings.TrimRight(string(line), "\n"), " ")
		switch key {
		case "tree":
			tree = value
		case "parent":
			parents = append(parents, value)
		default:
			return tree, parents, nil
		}
	}
	return tree, parents, nil
}

// added collects objects that are in one tree and not at their place in another.
type added struct {
	blobs *Blobs
	known map[string]bool
	ids   []string
}

// addObject notes an object and reports whether it is a new one.
func (a *added) addObject(id string) bool {
	if a.known[id] {
		return false
	}
	a.known[id] = true
	a.ids = append(a.ids, id)
	return true
}

// addTree adds what the tree now has and was has not. A level of folders is read at
// once.
func (a *added) addTree(was, now string) error {
	type pair struct{ was, now string }
	level := []pair{{was, now}}
	for len(level) > 0 {
		var asked []string
		var open []pair
		for _, p := range level {
			if p.was == p.now || !a.addObject(p.now) {
				continue
			}
			open, asked = append(open, p), append(asked, p.now)
			if p.was != "" {
				asked = append(asked, p.was)
			}
		}
		bodies, err := a.blobs.readTrees(asked)
		if err != nil {
			return err
		}
		level = level[:0]
		for _, p := range open {
			now, err := a.blobs.parseEntries("", bodies[0])
			if err != nil {
				return err
			}
			bodies = bodies[1:]
			before := map[string]Entry{}
			if p.was != "" {
				list, err := a.blobs.parseEntries("", bodies[0])
				if err != nil {
					return err
				}
				bodies = bodies[1:]
				for _, e := range list {
					before[e.Path] = e
				}
			}
			for _, e := range now {
				old := before[e.Path]
				switch {
				case e.ID == old.ID || e.Mode == ModeGitlink:
				case e.Mode != ModeTree:
					a.addObject(e.ID)
				case old.Mode == ModeTree:
					level = append(level, pair{old.ID, e.ID})
				default:
					level = append(level, pair{"", e.ID})
				}
			}
		}
	}
	return nil
}

// WriteLoose writes objects into an object directory, one file each, as git
// does with new ones. done is called with each folder and file that was made.
func (b *Blobs) WriteLoose(ids []string, dir string, done func(path string) error) error {
	deflate := borrowDeflater()
	defer deflaters.Put(deflate)
	return b.eachObject(ids, func(i int, kind string, size int64, r io.Reader) error {
		folder := filepath.Join(dir, ids[i][:2])
		err := os.Mkdir(folder, 0o755)
		if err == nil {
			err = done(folder)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		path := filepath.Join(folder, ids[i][2:])
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
		if err != nil {
			return err
		}
		deflate.Reset(f)
		if _, err = fmt.Fprintf(deflate, "%s %d\x00", kind, size); err == nil {
			_, err = io.Copy(deflate, r)
		}
		if err == nil {
			err = deflate.Close()
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		return done(path)
	})
}
