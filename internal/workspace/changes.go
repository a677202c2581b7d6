package workspace

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/pawl-run/pawl/internal/git"
)

// Rule says why something in a tree can never be part of a commit.
type Rule string

// The rules. Their texts are stable.
const (
	RuleSpecial   Rule = "special_file" // FIFO, socket or device
	RuleHardLink  Rule = "hard_link"    // a file with a second name somewhere
	RuleName      Rule = "name"         // control or direction characters, or too long
	RuleGitDir    Rule = "git_dir"      // a .git below the top, in any spelling
	RuleEscape    Rule = "link_escapes" // a new link that is absolute, leads out, or into .git
	RuleSubmodule Rule = "in_submodule" // content below a submodule's directory
	RuleTooLarge  Rule = "too_large"    // one file over Limits.FileBytes
	RuleTooMuch   Rule = "too_much"     // the first file over Limits.Files or Limits.Bytes; the rest is not listed
	RuleUnread    Rule = "unreadable"   //
)

// Problem is something in a tree that is not in the list of changes. For the
// commit, the path is what it was in the base.
type Problem struct {
	Path string // slash separated
	Rule Rule
}

const maxProblems = 1000

// Changes compares the directory with the tree that it was made from, and
// returns what is different, sorted by path: deletions, and files and links
// with the object name of their content. Of a file only the owner's executable
// bit counts. Files whose mark holds are not read. At the top, .git is the
// agent's own throw-away directory and is not looked at.
//
// Modes that keep the owner out are taken away from what it has to read.
func (t *Tree) Changes(ctx context.Context) ([]git.FileChange, []Problem, error) {
	s := &scan{ctx: ctx, tree: t, limits: t.trees.limits, seen: make([]bool, len(t.paths))}
	info, err := os.Lstat(t.Dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", t.Dir)
	}
	if err == nil {
		err = s.folder("", info)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("compare tree %s: %w", t.Name, err)
	}
	s.deletions()
	slices.SortFunc(s.changes, func(a, b git.FileChange) int { return cmp.Compare(a.Path, b.Path) })
	return s.changes, s.problems, nil
}

// scan is one walk through a tree.
type scan struct {
	ctx      context.Context //nolint:containedctx // It lives for one call of Changes.
	tree     *Tree
	limits   Limits
	seen     []bool
	blind    []string // directories that could not be read
	changes  []git.FileChange
	problems []Problem
	bytes    int64
	full     bool
}

func (s *scan) problem(path string, rule Rule) {
	if len(s.problems) < maxProblems {
		s.problems = append(s.problems, Problem{path, rule})
	}
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

func (s *scan) host(path string) string { return filepath.Join(s.tree.Dir, filepath.FromSlash(path)) }

// folder walks one directory.
func (s *scan) folder(rel string, info fs.FileInfo) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	host := s.host(rel)
	if info.Mode().Perm()&0o700 != 0o700 {
		_ = os.Chmod(host, 0o700) // Reading it will tell.
	}
	entries, err := os.ReadDir(host)
	if err != nil && rel == "" {
		return err
	}
	if err != nil {
		s.blind = append(s.blind, rel+"/")
		s.problem(rel, RuleUnread)
		return nil //nolint:nilerr // The problem says it; the rest of the tree is still to be walked.
	}
	for _, e := range entries {
		name := e.Name()
		if rel == "" && name == ".git" {
			continue
		}
		path := name
		if rel != "" {
			path = rel + "/" + name
		}
		info, err := e.Info()
		if err != nil {
			s.unseen(path) // Most likely a path that is too long for the system, in folders made one by one.
			continue
		}
		if err := s.entry(path, name, info); err != nil {
			return err
		}
	}
	return nil
}

// entry sorts one directory entry by what it is.
func (s *scan) entry(path, name string, info fs.FileInfo) error {
	place, known := s.tree.index[path]
	if !known && !s.tree.folder[path] {
		if rule := nameProblem(path, name); rule != "" {
			s.problem(path, rule)
			return nil
		}
		if s.limits.Skip(path, info.IsDir()) {
			return nil
		}
	}
	switch {
	case info.IsDir() && known && s.tree.marks[place].mode == git.ModeGitlink:
		s.seen[place] = true
		s.submodule(path)
	case info.IsDir():
		return s.folder(path, info)
	default:
		s.leaf(path, place, known, info)
	}
	return nil
}

func nameProblem(path, name string) Rule {
	switch {
	case git.IsDotGit(name):
		return RuleGitDir
	case len(path) > git.MaxPath, strings.ContainsFunc(name, deceives):
		return RuleName
	}
	return ""
}

// deceives reports characters that make a name look like another one.
func deceives(c rune) bool { return unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) }

// submodule looks into the directory of a submodule, which is made empty.
func (s *scan) submodule(path string) {
	entries, err := os.ReadDir(s.host(path))
	if err != nil {
		s.problem(path, RuleUnread)
	} else if len(entries) > 0 {
		s.problem(path, RuleSubmodule)
	}
}

// leaf looks at everything that is not a directory. A path with a problem
// counts as seen: it is neither changed nor deleted.
func (s *scan) leaf(path string, place int, known bool, info fs.FileInfo) {
	var was mark
	if known {
		s.seen[place] = true
		was = s.tree.marks[place]
	}
	if known && was.holds(info) {
		return
	}
	change := git.FileChange{Path: path, Mode: modeOf(info), From: s.host(path)}
	var rule Rule
	switch {
	case change.Mode == 0:
		rule = RuleSpecial
	case s.full:
		return
	case change.Mode == git.ModeSymlink:
		rule = s.link(&change, was.id)
	default:
		rule = s.file(&change, info)
	}
	if rule != "" {
		s.problem(path, rule)
		return
	}
	if known && change.ID == was.id {
		if change.Mode == was.mode {
			return
		}
		change.From = "" // The content is in the repository already.
	}
	s.add(change, info.Size())
}

// modeOf is the mode that git gives a file, or 0 for what it has none for.
// A set-user-id bit does not survive it.
func modeOf(info fs.FileInfo) uint32 {
	switch {
	case info.Mode().Type() == fs.ModeSymlink:
		return git.ModeSymlink
	case !info.Mode().IsRegular():
		return 0
	case info.Mode()&0o100 != 0:
		return git.ModeExec
	}
	return git.ModeFile
}

func (s *scan) file(c *git.FileChange, info fs.FileInfo) Rule {
	switch {
	case links(info) > 1:
		return RuleHardLink
	case info.Size() > s.limits.FileBytes:
		return RuleTooLarge
	case info.Mode()&0o400 == 0:
		_ = os.Chmod(c.From, info.Mode().Perm()|0o600) // Reading it will tell.
	}
	id, _, err := s.tree.trees.repo.HashFile(c.From, c.Mode, s.limits.FileBytes)
	if err != nil {
		return RuleUnread
	}
	c.ID = id
	return ""
}

// link refuses a target that leads out of the tree, unless the base has it.
func (s *scan) link(c *git.FileChange, was string) Rule {
	target, err := os.Readlink(c.From)
	if err != nil {
		return RuleUnread
	}
	target = filepath.ToSlash(target)
	c.ID = s.tree.trees.repo.HashBytes([]byte(target))
	if c.ID != was && escapes(c.Path, target) {
		return RuleEscape
	}
	return ""
}

// escapes looks at the text of the target alone, and follows nothing.
func escapes(at, target string) bool {
	if target == "" || path.IsAbs(target) || filepath.IsAbs(target) {
		return true
	}
	to := path.Join(path.Dir(at), target)
	return to == ".." || strings.HasPrefix(to, "../") || slices.ContainsFunc(strings.Split(target, "/"), git.IsDotGit)
}

func (s *scan) add(c git.FileChange, size int64) {
	s.bytes += size
	if len(s.changes) >= s.limits.Files || s.bytes > s.limits.Bytes {
		s.full = true
		s.problem(c.Path, RuleTooMuch)
		return
	}
	s.changes = append(s.changes, c)
}

// deletions adds every path of the base that was not met.
func (s *scan) deletions() {
	for i, path := range s.tree.paths {
		hidden := slices.ContainsFunc(s.blind, func(dir string) bool { return strings.HasPrefix(path, dir) })
		if !s.seen[i] && !hidden {
			s.changes = append(s.changes, git.FileChange{Path: path, Delete: true})
		}
	}
}
