package workspace

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/git/object"
)

// Changes compares the directory with the tree that it was made from, and
// returns what is different, sorted by path: deletions, and files and links
// with the object name of their content. Of a file only the owner's executable
// bit counts. What was pushed and is still as it was is not different. Files whose mark holds are not read. At the top, .git is the
// agent's own throw-away directory and is not looked at.
//
// Modes that keep the owner out are taken away from what it has to read.
func (t *Tree) Changes(ctx context.Context) ([]object.FileChange, []Problem, error) {
	j := judge{ctx: ctx, repo: t.trees.repo, dir: t.Dir, limits: t.trees.limits}
	walk := t.scan
	if t.layers != nil {
		j.dir, walk = t.layers.upper, t.layers.scan
	}
	info, err := os.Lstat(j.dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", j.dir)
	}
	if err == nil {
		err = j.openFilled(t)
		defer func() { j.filled.close() }()
	}
	if err == nil {
		err = walk(&j, info)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("compare tree %s: %w", t.Name, err)
	}
	slices.SortFunc(j.changes, func(a, b object.FileChange) int { return cmp.Compare(a.Path, b.Path) })
	return j.changes, j.problems, nil
}

// scan is one walk through a plain tree.
type scan struct {
	*judge
	tree  *Tree
	seen  []bool
	blind []string // directories that could not be read

	pushed pushed
}

// scan walks through all of the directory.
func (t *Tree) scan(j *judge, top fs.FileInfo) error {
	added, err := openPushed(t.Dir, t.pushed)
	if err != nil {
		return err
	}
	defer added.close()
	s := &scan{judge: j, tree: t, seen: make([]bool, len(t.paths)), pushed: added}
	if err := s.folder("", top); err != nil {
		return err
	}
	s.deletions()
	return nil
}

// unseen is an entry of which the system tells nothing: it is a problem, and
// nothing at or below it counts as deleted.
func (s *scan) unseen(path string) {
	s.blind = append(s.blind, path+"/")
	if place, known := s.tree.index[path]; known {
		s.seen[place] = true
	}
	s.problem(path, RuleUnread)
}

// folder walks one directory.
func (s *scan) folder(rel string, info fs.FileInfo) error {
	entries, err := s.entries(rel, info)
	if err != nil && (rel == "" || s.ctx.Err() != nil) {
		return err
	}
	if err != nil {
		s.blind = append(s.blind, rel+"/")
		s.problem(rel, RuleUnread)
		return nil //nolint:nilerr // The problem says it; the rest of the tree is still to be walked.
	}
	return s.each(rel, entries, s)
}

// holds reports whether the base has a file or a folder at a path.
func (s *scan) holds(path string, _ fs.FileInfo) bool {
	_, known := s.tree.index[path]
	return known || s.tree.folder[path]
}

// entry sorts one directory entry by what it is.
func (s *scan) entry(path string, info fs.FileInfo) error {
	place, known := s.tree.index[path]
	switch {
	case info.IsDir() && known && s.tree.marks[place].mode == object.ModeGitlink:
		s.seen[place] = true
		return s.submodule(path, info, true)
	case info.IsDir():
		return s.folder(path, info)
	case !known && s.pushed.holds(path, info):
	case !known:
		s.leaf(path, object.Entry{}, false, info)
	default:
		s.seen[place] = true // Also with a problem: it is neither changed nor deleted.
		if was := &s.tree.marks[place]; !was.holds(info) {
			s.leaf(path, object.Entry{Path: path, Mode: was.mode, ID: was.id}, true, info)
		}
	}
	return nil
}

// deletions adds every path of the base that was not met.
func (s *scan) deletions() {
	for i, path := range s.tree.paths {
		hidden := slices.ContainsFunc(s.blind, func(dir string) bool { return strings.HasPrefix(path, dir) })
		if !s.seen[i] && !hidden {
			s.remove(path)
		}
	}
}
