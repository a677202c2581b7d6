package workspace

import (
	"context"
	"io/fs"
	"strings"

	"github.com/pawl-run/pawl/internal/git/object"
)

// upper is one walk through the upper directory of layers, which holds what was
// written and nothing else. Everything in it was made by untrusted programs.
type upper struct {
	*judge
	base stack

	// In a folder that hides what the base has there, what is met.
	hiding bool
	seen   map[string]bool
	blind  []string
}

// scan walks through the upper directory.
func (l *layers) scan(j *judge, top fs.FileInfo) error {
	u := &upper{judge: j}
	entries, err := u.entries("", top)
	if err != nil {
		return err
	}
	opaque, err := isOpaque(u.dir)
	if err != nil {
		return err
	}
	if !opaque && len(entries) == 1 && entries[0].Name() == ".git" {
		return nil // Nothing was written, and the listings are not needed.
	}
	if u.base, err = l.stack(); err != nil {
		return err
	}
	return u.replaced("", opaque, func() error { return u.each("", entries, u) })
}

// replaced walks through a folder, and if it hides what the base has below it,
// adds all of that which was not met as deleted.
func (u *upper) replaced(path string, hides bool, walk func() error) error {
	if !hides || u.hiding {
		return walk()
	}
	u.hiding, u.seen, u.blind = true, map[string]bool{}, nil
	err := walk()
	u.hiding = false
	if err != nil {
		return err
	}
	u.base.below(path, func(e object.Entry) bool {
		if !u.seen[e.Path] && !u.unread(e.Path) {
			u.remove(e.Path)
		}
		return true
	})
	return nil
}

func (u *upper) unread(path string) bool {
	for _, dir := range u.blind {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// unseen is an entry of which nothing can be told: nothing at or below it
// counts as deleted.
func (u *upper) unseen(path string) {
	u.blind = append(u.blind, path)
	u.problem(path, RuleUnread)
}

// holds reports whether the base has a file or a folder at a path, or had one that
// the entry hides.
func (u *upper) holds(path string, info fs.FileInfo) bool {
	_, known := u.base.find(path)
	return known || isWhiteout(info) || u.base.folder(path)
}

// entry sorts one directory entry by what it is and what the base has there.
func (u *upper) entry(path string, info fs.FileInfo) error {
	was, known := u.base.find(path)
	folder := !known && u.base.folder(path)
	switch {
	case isWhiteout(info):
		u.whiteout(path, known, folder)
		return nil
	case info.IsDir() && known && was.Mode == object.ModeGitlink:
		u.meet(path)
		return u.submodule(path, info, u.hiding)
	case info.IsDir():
		if known && !u.hiding {
			u.remove(path)
		}
		return u.folder(path, folder, info)
	}
	u.meet(path)
	u.leaf(path, was, known, info)
	if folder && !u.hiding {
		u.removeBelow(path)
	}
	return nil
}

// meet notes that the folder which hides the base has something at a path.
func (u *upper) meet(path string) {
	if u.hiding {
		u.seen[path] = true
	}
}

// whiteout is the deletion of a file or of a whole folder. Where everything is
// hidden anyway it says nothing more.
func (u *upper) whiteout(path string, known, folder bool) {
	switch {
	case u.hiding:
	case known:
		u.remove(path)
	case folder:
		u.removeBelow(path)
	}
}

func (u *upper) removeBelow(folder string) {
	u.base.below(folder, func(e object.Entry) bool {
		u.remove(e.Path)
		return true
	})
}

// folder walks through one directory. One that the base does not have can hide
// nothing.
func (u *upper) folder(path string, inBase bool, info fs.FileInfo) error {
	hides := false
	entries, err := u.entries(path, info)
	if err == nil && inBase {
		hides, err = isOpaque(u.host(path))
	}
	if u.ctx.Err() != nil {
		return context.Cause(u.ctx)
	}
	if err != nil {
		u.unseen(path)
		return nil //nolint:nilerr // The problem says it; the rest is still to be walked.
	}
	return u.replaced(path, hides, func() error { return u.each(path, entries, u) })
}
