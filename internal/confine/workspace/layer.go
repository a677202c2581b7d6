package workspace

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-run/pawl/internal/git/index"
	"github.com/pawl-run/pawl/internal/git/object"
)

// backdated is how much older than the layer its files are made to look. Every later edit
// then has another time, and git need not read a file that is as old as the index. All
// files of a layer have the same time, so that no build takes one for newer than another.
const backdated = 10 * time.Second

// layerStyle returns the owner and time of the files of a layer.
func (s *layerCache) layerStyle(dir string) style {
	as := style{owner: s.trees.programOwner()}
	if now, ok := presentStamp(dir); ok {
		as.when = time.Unix(0, now).Add(-backdated)
	}
	return as
}

// writeBase writes the complete checkout of a tree.
func (s *layerCache) writeBase(ctx context.Context, l *layer, blobs *object.Blobs, tree string) error {
	files, err := readCheckout(blobs, tree)
	if err != nil {
		return err
	}
	if err := files.writeFiles(ctx, l.filesDir(), s.layerStyle(l.filesDir()), nil, blobs); err != nil {
		return err
	}
	g, err := s.trees.gitDir()
	if err != nil {
		return err
	}
	if err := g.writeCommon(filepath.Join(l.filesDir(), ".git"), files.indexEntries()); err != nil {
		return err
	}
	return s.writeFacts(l, files, files.allEntries())
}

// partialName is the file beside a layer that says whether content of the layer may be
// missing.
const partialName = "partial"

// writeFacts writes facts about the files of a layer, so that a tree need not read them:
// whether content may be missing, and the listing.
func (s *layerCache) writeFacts(l *layer, files *checkout, listed []object.Entry) error {
	partial, err := files.mayLackContent(l.filesDir())
	if err == nil {
		err = os.WriteFile(filepath.Join(l.dir, partialName), fmt.Append(nil, partial), 0o600)
	}
	if err != nil {
		return err
	}
	return writeListing(l.listingPath(), listed, s.trees.repo.Format.NameLen())
}

// writeDelta writes the layer that turns a base into another tree.
func (s *layerCache) writeDelta(ctx context.Context, l *layer, blobs *object.Blobs, base *layer, diff object.Differences) error {
	var entries []object.Entry
	for _, c := range diff.Paths {
		if c.New.Mode != 0 {
			entries = append(entries, c.New)
		}
	}
	files, err := newCheckout(entries)
	if err != nil {
		return err
	}
	hidden := files.missingPaths(diff)
	for _, path := range hidden {
		files.addFolders(path)
	}
	if err := files.writeFiles(ctx, l.filesDir(), s.layerStyle(l.filesDir()), nil, blobs); err != nil {
		return err
	}
	for _, path := range hidden {
		if err := makeWhiteout(filepath.Join(l.filesDir(), filepath.FromSlash(path))); err != nil {
			return err
		}
	}
	for _, path := range diff.Gone {
		// A submodule's folder would show the content of the folder before it.
		if i, there := files.index[path]; there && files.marks[i].mode == object.ModeGitlink {
			if err := setOpaque(filepath.Join(l.filesDir(), filepath.FromSlash(path))); err != nil {
				return err
			}
		}
	}
	// The index is that of the whole tree: the one of the base with the changed paths.
	// If a path is a file in one tree and a folder in the other, the files of the folder
	// are listed, not the folder.
	changed := make([]string, len(diff.Paths))
	listed := make([]object.Entry, len(diff.Paths))
	for i, c := range diff.Paths {
		changed[i] = c.Path
		listed[i] = object.Entry{Path: c.Path, ID: c.Old.ID}
		if e, there := files.findEntry(c.Path); there {
			listed[i] = e
		}
	}
	if err := s.writeDeltaIndex(l, base, changed, files.indexEntries()); err != nil {
		return err
	}
	return s.writeFacts(l, files, listed)
}

// missingPaths lists the files and whole folders of the base that must be hidden, because
// the checkout has nothing at their paths.
func (c *checkout) missingPaths(diff object.Differences) []string {
	gone := make(map[string]bool, len(diff.Gone))
	var list []string
	for _, path := range diff.Gone {
		gone[path] = true
		if _, there := c.index[path]; !there {
			list = append(list, path)
		}
	}
	belowGone := func(path string) bool {
		for dir := parent(path); dir != ""; dir = parent(dir) {
			if gone[dir] {
				return true
			}
		}
		return false
	}
	for _, d := range diff.Paths {
		if d.New.Mode == 0 && !c.folders[d.Path] && !belowGone(d.Path) {
			list = append(list, d.Path)
		}
	}
	return list
}

// writeDeltaIndex writes the index of the base with new entries for the changed paths.
func (s *layerCache) writeDeltaIndex(l, base *layer, changed []string, entries []index.Entry) error {
	data, err := os.ReadFile(base.indexPath())
	if err != nil {
		return err
	}
	g, err := s.trees.gitDir()
	if err != nil {
		return err
	}
	if err := g.makeFolder(filepath.Dir(l.indexPath())); err != nil {
		return err
	}
	return g.writeStream(l.indexPath(), func(w io.Writer) error {
		return index.Patch(w, g.repo.Format, data, changed, entries)
	})
}
