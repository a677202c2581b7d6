package workspace

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/git/object"
)

// directory is the form of a plain or pooled tree: all of its files are in one directory
// of the host.
type directory struct {
	dir      string
	owner    owner
	checkout *checkout
	filled   map[string]*mark // marks of the files that Fill copied, by path
}

func (d *directory) writableDir() string                   { return d.dir }
func (d *directory) gitIndex() string                      { return filepath.Join(d.dir, ".git", "index") }
func (d *directory) baseFiles() (fileList, error)          { return d.checkout, nil }
func (d *directory) mayLackContent() (bool, error)         { return d.checkout.mayLackContent(d.dir) }
func (d *directory) layerNames() []string                  { return nil }
func (d *directory) overlaySpec([]string) *sandbox.Overlay { return nil }
func (d *directory) release()                              {}

// scanWritten walks through the whole directory.
func (d *directory) scanWritten(j *judge, info fs.FileInfo) error {
	j.filled.marks = d.filled
	s := &scan{judge: j, base: d.checkout, seen: make([]bool, len(d.checkout.paths))}
	if err := s.walkFolder("", info); err != nil {
		return err
	}
	for i, path := range s.base.paths {
		hidden := slices.ContainsFunc(s.unread, func(dir string) bool { return strings.HasPrefix(path, dir) })
		if !s.seen[i] && !hidden {
			s.addDeletion(path)
		}
	}
	return nil
}

// scan is one walk through a directory.
type scan struct {
	*judge
	base   *checkout
	seen   []bool   // by place in base
	unread []string // directories that could not be read
}

// noteUnseen is called for an entry whose file information cannot be read. Nothing at or
// below it counts as deleted.
func (s *scan) noteUnseen(path string) {
	s.unread = append(s.unread, path+"/")
	if place, known := s.base.index[path]; known {
		s.seen[place] = true
	}
	s.addProblem(path, RuleUnread)
}

func (s *scan) walkFolder(rel string, info fs.FileInfo) error {
	entries, err := s.listFolder(rel, info)
	if err != nil && (rel == "" || s.ctx.Err() != nil) {
		return err
	}
	if err != nil {
		s.unread = append(s.unread, rel+"/")
		s.addProblem(rel, RuleUnread)
		return nil //nolint:nilerr // It is reported as a problem; the walk continues.
	}
	return s.visitEach(rel, entries, s)
}

// isKnown reports whether the base has a file or a folder at a path.
func (s *scan) isKnown(path string, _ fs.FileInfo) bool {
	_, known := s.base.index[path]
	return known || s.base.folders[path]
}

func (s *scan) visitEntry(path string, info fs.FileInfo) error {
	place, known := s.base.index[path]
	switch {
	case info.IsDir() && known && s.base.marks[place].mode == object.ModeGitlink:
		s.seen[place] = true
		return s.walkSubmodule(path, info, true)
	case info.IsDir():
		return s.walkFolder(path, info)
	case !known && s.pushed.isAsPushed(path, info):
	case !known:
		s.judgeLeaf(path, object.Entry{}, false, info)
	default:
		s.seen[place] = true // Also if it has a problem: then it is neither changed nor deleted.
		if !s.base.marks[place].isUntouched(info) {
			s.judgeLeaf(path, s.base.entryAt(place), true, info)
		}
	}
	return nil
}
