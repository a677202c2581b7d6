package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
)

// Rule says why an entry of a tree cannot be part of a commit.
type Rule string

// The rules. Their texts are stable.
const (
	RuleSpecial   Rule = "special_file" // FIFO, socket or device
	RuleHardLink  Rule = "hard_link"    // a file with more than one name
	RuleName      Rule = "name"         // control or direction characters, or too long
	RuleGitDir    Rule = "git_dir"      // a .git below the top, in any spelling
	RuleEscape    Rule = "link_escapes" // a new link that is absolute, leads out, or into .git
	RuleSubmodule Rule = "in_submodule" // content in a submodule's directory that pawl did not put there
	RuleLFS       Rule = "lfs_content"  // content in place of a pointer of git LFS
	RuleTooLarge  Rule = "too_large"    // one file over Limits.FileBytes
	RuleTooMuch   Rule = "too_much"     // the first file over Limits.Files or Limits.Bytes; the rest is not listed
	RuleUnread    Rule = "unreadable"   //
)

var advice = map[Rule]string{
	RuleSubmodule: "a run cannot propose what is in a submodule; change it in its own repository",
	RuleLFS:       "a run cannot propose content that git LFS keeps; commit it yourself",
}

// Sentence returns the rule with an explanation for people.
func (r Rule) Sentence() string {
	if advice, ok := advice[r]; ok {
		return string(r) + ": " + advice
	}
	return string(r)
}

// overLimit reports whether content was left out because there is too much of it.
func (r Rule) overLimit() bool { return r == RuleTooMuch || r == RuleTooLarge }

// Problem is an entry of a tree that is left out of the changes. In a commit, its path is
// as in the base.
type Problem struct {
	Path string // slash separated
	Rule Rule
}

const maxProblems = 1000

// maxMet is the most directory entries that are read of one tree. It is far above the work
// of any agent.
const maxMet = 1_000_000

// judge decides what an entry of a directory means, for every kind of walk, and collects
// the changes and problems.
type judge struct {
	ctx      context.Context //nolint:containedctx // It lives for one call of Changes.
	repo     *git.Repo
	dir      string // host path of the top
	limits   Limits
	changes  []object.FileChange
	problems []Problem
	pushed   pushed
	filled   filled
	bytes    int64
	met      int
	full     bool
}

// openFilled opens the directories that the tree is compared with beside its base: those
// that were pushed, and the one of them that it was filled with, if any.
func (j *judge) openFilled(dirs []string, filled string) (err error) {
	if j.pushed, err = openPushed(j.dir, dirs); err != nil || filled == "" {
		return err
	}
	j.filled.from, err = os.OpenRoot(filled)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // It was collected: all files that came from it count as new.
	}
	return err
}

func (j *judge) closeFilled() {
	j.pushed.closeRoots()
	if j.filled.from != nil {
		j.filled.from.Close()
	}
}

// addProblem adds a problem. If the list is full, a problem that makes a snapshot
// incomplete still replaces the last one: a snapshot without such a file must not be
// taken for complete.
func (j *judge) addProblem(path string, rule Rule) {
	if len(j.problems) == maxProblems {
		if !rule.overLimit() {
			return
		}
		j.problems = j.problems[:maxProblems-1]
	}
	j.problems = append(j.problems, Problem{path, rule})
}

func (j *judge) hostPath(path string) string { return filepath.Join(j.dir, filepath.FromSlash(path)) }

// listFolder lists one directory, sorted by name. After maxMet entries it lists nothing
// more and adds a problem.
func (j *judge) listFolder(rel string, info fs.FileInfo) ([]fs.DirEntry, error) {
	if j.ctx.Err() != nil {
		return nil, context.Cause(j.ctx)
	}
	host := j.hostPath(rel)
	if info.Mode().Perm()&0o700 != 0o700 {
		_ = os.Chmod(host, 0o700) // If this fails, reading it does too.
	}
	f, err := os.Open(host)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []fs.DirEntry
	for err == nil && j.met < maxMet {
		if j.ctx.Err() != nil {
			return nil, context.Cause(j.ctx)
		}
		var some []fs.DirEntry
		some, err = f.ReadDir(min(4096, maxMet-j.met))
		list, j.met = append(list, some...), j.met+len(some)
	}
	switch {
	case err == nil:
		j.addProblem(rel, RuleTooMuch)
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

// walker is one walk through the directories of a tree.
type walker interface {
	isKnown(path string, info fs.FileInfo) bool // whether an entry is visited whatever its name and the ignore rules say
	noteUnseen(path string)                     // an entry without file information
	visitEntry(path string, info fs.FileInfo) error
}

// atOnce is how many entries of a folder are visited before the context is checked again.
const atOnce = 256

// visitEach lets a walk visit the entries of one folder that selectEntries returns,
// without the git directory of the tree.
func (j *judge) visitEach(rel string, entries []fs.DirEntry, w walker) error {
	for some := range slices.Chunk(entries, atOnce) {
		if j.ctx.Err() != nil {
			return context.Cause(j.ctx)
		}
		for _, f := range j.selectEntries(rel, some, w) {
			switch {
			case f.info == nil:
				w.noteUnseen(f.path)
			case f.rule != "":
				j.addProblem(f.path, f.rule)
			default:
				if err := w.visitEntry(f.path, f.info); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// folderEntry is an entry of a folder.
type folderEntry struct {
	path string
	info fs.FileInfo // nil: it cannot be read, most likely because the path is too long
	rule Rule        // that its name breaks
}

// selectEntries returns the entries without those that are ignored and not in the base.
func (j *judge) selectEntries(rel string, entries []fs.DirEntry, w walker) []folderEntry {
	var list []folderEntry
	var asked []string
	places := map[int]int{} // of what is asked about, in the list
	for _, e := range entries {
		name := e.Name()
		if rel == "" && name == ".git" {
			continue
		}
		f := folderEntry{path: path.Join(rel, name)}
		if info, err := e.Info(); err == nil {
			f.info = info
		}
		if f.info != nil && !w.isKnown(f.path, f.info) {
			f.rule = nameProblem(f.path, name)
			if f.rule == "" {
				places[len(list)] = len(asked)
				asked = append(asked, f.path)
				if f.info.IsDir() {
					asked[len(asked)-1] += "/"
				}
			}
		}
		list = append(list, f)
	}
	if len(asked) == 0 {
		return list
	}
	skip := j.limits.Skip(asked)
	kept := list[:0]
	for i, f := range list {
		if at, unknown := places[i]; !unknown || !skip[at] {
			kept = append(kept, f)
		}
	}
	return kept
}

func nameProblem(path, name string) Rule {
	switch {
	case object.IsDotGit(name):
		return RuleGitDir
	case len(path) > object.MaxPath, strings.ContainsFunc(name, isDeceptive):
		return RuleName
	}
	return ""
}

// isDeceptive reports whether a character can make a name look like another one.
func isDeceptive(c rune) bool { return unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) }

// judgeLeaf compares an entry that is not a directory with the file of the base at its
// path, if any.
func (j *judge) judgeLeaf(path string, was object.Entry, known bool, info fs.FileInfo) {
	change := object.FileChange{Path: path, Mode: modeOf(info), From: j.hostPath(path)}
	var rule Rule
	switch {
	case change.Mode == 0:
		rule = RuleSpecial
	case j.full:
		return
	case change.Mode == object.ModeSymlink:
		rule = j.judgeLink(&change, was.ID)
	case j.isAsFilled(path, info):
		change.ID = was.ID
	default:
		rule = j.judgeFile(&change, info)
		if change.ID != was.ID && (rule == "" || rule == RuleTooLarge) && j.filled.infoAt(path) != nil {
			rule = RuleLFS
		}
	}
	if rule != "" {
		j.addProblem(path, rule)
		return
	}
	if known && change.ID == was.ID {
		if change.Mode == was.Mode {
			return
		}
		change.From = "" // The repository has the content already.
	}
	j.addChange(change, info.Size())
}

// isAsFilled reports whether a file in place of a pointer has the content that the tree
// was filled with.
func (j *judge) isAsFilled(path string, info fs.FileInfo) bool {
	was := j.filled.infoAt(path)
	return was != nil && was.Mode().IsRegular() && info.Mode().IsRegular() && was.Size() == info.Size() &&
		sameContent(j.filled.from, j.pushed.tree, filepath.FromSlash(path))
}

// modeOf returns the mode of a file in git, or 0 if git has no such mode. It drops a
// set-user-id bit.
func modeOf(info fs.FileInfo) uint32 {
	switch {
	case info.Mode().Type() == fs.ModeSymlink:
		return object.ModeSymlink
	case !info.Mode().IsRegular():
		return 0
	case info.Mode()&0o100 != 0:
		return object.ModeExec
	}
	return object.ModeFile
}

func (j *judge) judgeFile(c *object.FileChange, info fs.FileInfo) Rule {
	switch {
	case linkCount(info) > 1:
		return RuleHardLink
	case info.Size() > j.limits.FileBytes:
		return RuleTooLarge
	case info.Mode()&0o400 == 0:
		_ = os.Chmod(c.From, info.Mode().Perm()|0o600) // If this fails, reading it does too.
	}
	id, _, err := j.repo.Format.HashFile(c.From, c.Mode, j.limits.FileBytes)
	if err != nil {
		return RuleUnread
	}
	c.ID = id
	return ""
}

// judgeLink refuses a link out of the tree, unless the base has the same link.
func (j *judge) judgeLink(c *object.FileChange, was string) Rule {
	target, err := os.Readlink(c.From)
	if err != nil {
		return RuleUnread
	}
	target = filepath.ToSlash(target)
	c.ID = j.repo.Format.HashBytes([]byte(target))
	if c.ID != was && leadsOut(c.Path, target) {
		return RuleEscape
	}
	return ""
}

// leadsOut judges only the text of the target, and follows no link.
func leadsOut(at, target string) bool {
	if target == "" || path.IsAbs(target) || filepath.IsAbs(target) {
		return true
	}
	to := path.Join(path.Dir(at), target)
	return to == ".." || strings.HasPrefix(to, "../") || slices.ContainsFunc(strings.Split(target, "/"), object.IsDotGit)
}

func (j *judge) addChange(c object.FileChange, size int64) {
	j.bytes += size
	if len(j.changes) >= j.limits.Files || j.bytes > j.limits.Bytes {
		j.full = true
		j.addProblem(c.Path, RuleTooMuch)
		return
	}
	j.changes = append(j.changes, c)
}

// addDeletion adds a path of the base that is gone.
func (j *judge) addDeletion(path string) {
	j.changes = append(j.changes, object.FileChange{Path: path, Delete: true})
}
