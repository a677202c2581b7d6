package toolset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/pawl-run/pawl/internal/confine/probe/toolchain"
	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/ground/flock"
)

// Cache is the place of the layers of one workspace's caches.
type Cache struct {
	Dir      string // absolute; made when it is needed
	UID, GID int    // owner of what is made for programs; -1: pawl's user
}

// Access says how programs that trust each other use caches.
type Access struct {
	// Scratch is the absolute path to which they add, on the file system of the cache.
	// The caller removes it.
	Scratch string
	// Vouched makes them add to the cache itself, for all later programs, unless
	// another process does so now.
	Vouched bool
	// Layer is the layer of a set-up, whose downloads are shown; empty: none.
	Layer string
	// Downloads is true for a set-up, which adds downloads.
	Downloads bool
}

// Views returns the views of the caches of a toolset. Done releases the cache.
func (k Set) Views(cache Cache, a Access) (views []sandbox.View, done func(), err error) {
	done = func() {}
	if len(k.Caches) == 0 {
		return nil, done, nil
	}
	if err := os.MkdirAll(cache.Dir, 0o700); err != nil {
		return nil, done, fmt.Errorf("make the caches: %w", err)
	}
	if a.Vouched {
		claim, err := flock.Try(filepath.Join(cache.Dir, "lock"))
		if err != nil && !errors.Is(err, flock.ErrHeld) {
			return nil, done, fmt.Errorf("lock the caches: %w", err)
		}
		if a.Vouched = err == nil; a.Vouched {
			done = func() { claim.Close() }
		}
	}
	for i, c := range k.Caches {
		v, err := cache.layerView(c, i, a)
		if err != nil {
			done()
			return nil, func() {}, fmt.Errorf("show the cache %s: %w", c.Kind, err)
		}
		views = append(views, v)
	}
	return views, done, nil
}

// FolderViews returns the views if no layers can be mounted, without copying the caches.
// The downloads of a set-up, or else of the host, are shown read-only. Programs start
// with nothing compiled, and a set-up with nothing downloaded: they write to empty
// folders below a.Scratch. Nothing is added for later programs, whatever a.Vouched is.
func (k Set) FolderViews(cache Cache, a Access) (views []sandbox.View, binds []sandbox.Bind, err error) {
	for i, c := range k.Caches {
		name := cacheName(c, i)
		prepared := filepath.Join(a.Layer, cachesName, name)
		switch {
		case !c.Downloads || a.Downloads:
			own := filepath.Join(a.Scratch, name)
			if err := cache.makeOwned(own); err != nil {
				return nil, nil, fmt.Errorf("show the cache %s: %w", c.Kind, err)
			}
			binds = append(binds, sandbox.Bind{From: own, To: c.Path, Write: true})
		case a.Layer != "" && isFolder(prepared):
			views = append(views, readOnly(c.Path, prepared))
		case isFolder(c.Path):
			views = append(views, readOnly(c.Path, c.Path))
		}
	}
	return views, binds, nil
}

func readOnly(at, dir string) sandbox.View {
	return sandbox.View{At: at, Overlay: sandbox.Overlay{Lower: []string{dir}}}
}

// cacheName is the name of a cache in folders of layers.
func cacheName(c toolchain.Cache, n int) string { return c.Kind + "-" + strconv.Itoa(n) }

// layerView returns the layers of one cache: the host's at the bottom, pawl's above it,
// and the downloads of a set-up on top.
func (s Cache) layerView(c toolchain.Cache, n int, a Access) (sandbox.View, error) {
	name := cacheName(c, n)
	own, work := filepath.Join(s.Dir, name), filepath.Join(s.Dir, "."+name)
	if err := s.makeOwned(own); err != nil {
		return sandbox.View{}, err
	}
	v := sandbox.View{At: c.Path}
	// Programs of another user cannot add to folders that are the host's, and a
	// set-up must add to all of them.
	if isFolder(c.Path) && (s.UID < 0 || !a.Downloads || !c.Downloads) {
		v.Lower = []string{c.Path}
		if err := s.mirrorFolders(c, own); err != nil {
			return sandbox.View{}, err
		}
	}
	if a.Vouched {
		v.Upper, v.Work = own, work
	} else {
		v.Lower = append([]string{own}, v.Lower...)
		v.Upper, v.Work = filepath.Join(a.Scratch, name), filepath.Join(a.Scratch, "."+name)
		if err := s.makeOwned(v.Upper); err != nil {
			return sandbox.View{}, err
		}
	}
	if dir := filepath.Join(a.Layer, cachesName, name); a.Layer != "" && isFolder(dir) {
		v.Lower = append([]string{dir}, v.Lower...)
	}
	if len(v.Lower) == 0 {
		// The kernel wants one.
		none := filepath.Join(s.Dir, "none")
		v.Lower = []string{none}
		return v, s.makeOwned(none)
	}
	return v, nil
}

// mirrorFolders makes the folders at the top of a build cache in own too, owned by the
// programs: the owner in the upper layer counts. A build cache has no deeper folders.
func (s Cache) mirrorFolders(c toolchain.Cache, own string) error {
	if s.UID < 0 || c.Downloads {
		return nil
	}
	entries, err := os.ReadDir(c.Path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := s.makeOwned(filepath.Join(own, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// makeOwned makes a directory that belongs to the programs.
func (s Cache) makeOwned(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil && s.UID >= 0 {
		err = os.Lchown(dir, s.UID, s.GID)
	}
	return err
}
