package workspace

import (
	"context"
	"io/fs"
	"strings"

	"github.com/pawl-run/pawl/internal/git/object"
)

// upper is one walk through the upper directory of layers, which has only what was
// written. Untrusted programs made everything in it.
type upper struct {
	*judge
	base stack

	// In a folder that hides what the base has there, what is met.
	hiding bool
	seen   map[string]bool
	blind  []string
}

// scanWritten walks through the upper directory.
func (l *layers) scanWritten(j *judge, top fs.FileInfo) error {
	u := &upper{judge: j}
	entries, err := u.listFolder("", top)
	if err != nil {
		return err
	}
	opaque, err := isOpaque(u.dir)
	if err != nil {
		return err
	}
	if !opaque && len(entries) == 1 && entries[0].Name() == ".git" {
		return nil // Nothing was written: the listings are not needed.
	}
	if u.base, err = l.readStack(); err != nil {
		return err
	}
	return u.walkReplaced("", opaque, func() error { return u.visitEach("", entries, u) })
}

// walkReplaced walks through a folder. If the folder hides what the base has below it, all
// files of the base that were not met are added as deleted.
func (u *upper) walkReplaced(path string, hides bool, walk func() error) error {
	if !hides || u.hiding {
		return walk()
	}
	u.hiding, u.seen, u.blind = true, map[string]bool{}, nil
	err := walk()
	u.hiding = false
	if err != nil {
		return err
	}
	u.base.eachBelow(path, func(e object.Entry) bool {
		if !u.seen[e.Path] && !u.isUnread(e.Path) {
			u.addDeletion(e.Path)
		}
		return true
	})
	return nil
}

func (u *upper) isUnread(path string) bool {
	for _, dir := range u.blind {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// noteUnseen is called for an entry whose file information cannot be read. Nothing at or
// below it counts as deleted.
func (u *upper) noteUnseen(path string) {
	u.blind = append(u.blind, path)
	u.addProblem(path, RuleUnread)
}

// isKnown reports whether the base has a file or a folder at a path, or one that the entry
// hides.
func (u *upper) isKnown(path string, info fs.FileInfo) bool {
	_, known := u.base.findEntry(path)
	return known || isWhiteout(info) || u.base.hasFolder(path)
}

// visitEntry handles one directory entry by its type and by what the base has there.
func (u *upper) visitEntry(path string, info fs.FileInfo) error {
	was, known := u.base.findEntry(path)
	folder := !known && u.base.hasFolder(path)
	switch {
	case isWhiteout(info):
		u.judgeWhiteout(path, known, folder)
		return nil
	case info.IsDir() && known && was.Mode == object.ModeGitlink:
		u.noteMet(path)
		return u.walkSubmodule(path, info, u.hiding)
	case info.IsDir():
		if known && !u.hiding {
			u.addDeletion(path)
		}
		return u.walkFolder(path, folder, info)
	}
	u.noteMet(path)
	u.judgeLeaf(path, was, known, info)
	if folder && !u.hiding {
		u.removeBelow(path)
	}
	return nil
}

// noteMet records that a folder which hides the base has something at a path.
func (u *upper) noteMet(path string) {
	if u.hiding {
		u.seen[path] = true
	}
}

// judgeWhiteout adds the deletion of a file or of a whole folder. Inside of a folder that
// hides the base it has no meaning.
func (u *upper) judgeWhiteout(path string, known, folder bool) {
	switch {
	case u.hiding:
	case known:
		u.addDeletion(path)
	case folder:
		u.removeBelow(path)
	}
}

func (u *upper) removeBelow(folder string) {
	u.base.eachBelow(folder, func(e object.Entry) bool {
		u.addDeletion(e.Path)
		return true
	})
}

// walkFolder walks through one directory. A directory that the base does not have hides
// nothing.
func (u *upper) walkFolder(path string, inBase bool, info fs.FileInfo) error {
	hides := false
	entries, err := u.listFolder(path, info)
	if err == nil && inBase {
		hides, err = isOpaque(u.hostPath(path))
	}
	if u.ctx.Err() != nil {
		return context.Cause(u.ctx)
	}
	if err != nil {
		u.noteUnseen(path)
		return nil //nolint:nilerr // It is reported as a problem; the walk continues.
	}
	return u.walkReplaced(path, hides, func() error { return u.visitEach(path, entries, u) })
}
