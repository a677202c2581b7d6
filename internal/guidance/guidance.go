// Package guidance finds the instructions that a repository has for coding
// agents, such as AGENTS.md and CLAUDE.md, at one commit.
//
// It reads git objects only, never a file of a working tree: what an agent
// changed is not there, no link leads out of the tree, and nothing is larger
// than its bounds. It does not say what the instructions are worth; whoever
// gives them to an agent does.
package guidance

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/policy"
)

// None is the one entry of a choice that gives nothing.
const None = "none"

// Bounds of what is read of one commit.
const (
	MaxFile  = 32 << 10 // bytes of one file
	MaxTotal = 64 << 10 // bytes of all files together

	maxFiles   = 40   // files that are looked at
	maxFolders = 4096 // folders that are listed
	maxLookups = 64   // imports and links that are looked up
	maxHops    = 5    // from a file to what it imports, and on
	leastPart  = 512  // bytes; a smaller rest of a file is not worth its place
)

// Names are the files that count as instructions in any folder.
var Names = []string{"AGENTS.md", "CLAUDE.md", "GEMINI.md", "QWEN.md", ".goosehints"}

// Special are the globs of instructions that lie at one place below a folder:
// the top, or any other along the scope.
var Special = []string{".claude/CLAUDE.md", ".claude/rules/**/*.md", ".github/copilot-instructions.md", ".cursorrules"}

// foreign are folders of other people's code, whose instructions are not the
// repository's. A choice can still name what is in them.
var foreign = []string{"node_modules", "vendor", "third_party", "testdata", ".git"}

// File is one file with instructions, and what became of it.
type File struct {
	Path  string `json:"path"`
	Blob  string `json:"blob"`           // git's name of its content
	Bytes int64  `json:"bytes"`          // its size
	Given int    `json:"given"`          // bytes of Text; 0: it is not given
	Note  string `json:"note,omitempty"` // why not all of it is given, or nothing
	Text  string `json:"-"`              // UTF-8; imports are without their @
}

// Source gives access to the objects of a repository.
type Source interface {
	Blobs(ctx context.Context) (*object.Blobs, error)
}

// Read returns the instructions of a commit, in the order in which they are to
// be given: those of the top first. Without a choice they are those along the
// scope, from the top to the folder that each glob begins with, and those below
// it. A choice lists globs instead, or is None.
//
// Files with the same content are given once. Files that are found but not given
// are in the list with a note.
func Read(ctx context.Context, src Source, commit string, scope, choice []string) ([]File, error) {
	if slices.Equal(choice, []string{None}) {
		return nil, nil
	}
	blobs, err := src.Blobs(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the instructions of %s: %w", commit, err)
	}
	r := &reader{blobs: blobs, commit: commit, entries: map[string]object.Entry{}, seen: map[string]bool{}, same: map[string]string{}}
	err = r.readSelected(selection{prefixes: globFolders(scope), choice: choice})
	if err == nil {
		err = blobs.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("read the instructions of %s: %w", commit, err)
	}
	return r.files, nil
}

// readSelected takes what is wanted, and stops looking at maxFiles.
func (r *reader) readSelected(w selection) error {
	listed, all, err := r.blobs.Within(r.commit, maxFolders, w.mayEnter)
	if err != nil {
		return err
	}
	var found []object.Entry
	for _, e := range listed {
		r.entries[e.Path] = e
		if e.Mode != object.ModeGitlink && w.includes(e.Path) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, compareDepth)
	for _, e := range found {
		if err := r.takeFile(e.Path, 0); err != nil {
			return err
		}
	}
	if !all {
		r.files = append(r.files, File{Path: "…", Note: fmt.Sprintf("only %d folders were searched for instructions", maxFolders)})
	}
	return nil
}

// compareDepth puts the files of the top first. In a folder the order of Names counts,
// then that of the alphabet, so that a prompt is the same each time.
func compareDepth(a, b object.Entry) int {
	rank := func(p string) int {
		if i := slices.Index(Names, path.Base(p)); i >= 0 && path.Dir(p) == path.Clean(cmp.Or(folderOf(p), ".")) {
			return i
		}
		return len(Names)
	}
	depth := func(p string) int {
		dir := folderOf(p)
		if dir == "" {
			return 0
		}
		return 1 + strings.Count(dir, "/")
	}
	return cmp.Or(cmp.Compare(depth(a.Path), depth(b.Path)), cmp.Compare(folderOf(a.Path), folderOf(b.Path)), cmp.Compare(rank(a.Path), rank(b.Path)), cmp.Compare(a.Path, b.Path))
}

// folderOf is the folder to which instructions apply; empty: the top. Those of a
// special place apply to the folder above that place.
func folderOf(p string) string {
	for _, place := range []string{".claude/", ".github/"} {
		if strings.HasPrefix(p, place) {
			return ""
		}
		if i := strings.Index(p, "/"+place); i >= 0 {
			return p[:i]
		}
	}
	if dir := path.Dir(p); dir != "." {
		return dir
	}
	return ""
}

// selection says which files of a tree are instructions.
type selection struct {
	prefixes []string // folders that the scope begins with; empty: the top
	choice   []string // globs instead; empty: none
}

// globFolders are the folders that globs begin with, each once.
func globFolders(globs []string) []string {
	var all []string
	for _, glob := range globs {
		alternatives, _ := policy.Alternatives(strings.TrimSuffix(strings.TrimPrefix(glob, "./"), "/"))
		for _, one := range alternatives {
			all = append(all, literalPrefix(one))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// literalPrefix is the part of a glob without wildcards that names a folder, or may: a
// name at its end is a folder or a file, and it costs nothing to look.
func literalPrefix(glob string) string {
	var dir []string
	for part := range strings.SplitSeq(glob, "/") {
		if strings.ContainsAny(part, `*?[\`) {
			break
		}
		dir = append(dir, part)
	}
	return strings.Join(dir, "/")
}

// mayEnter reports whether a folder can hold instructions that are wanted.
func (w selection) mayEnter(dir string) bool {
	if len(w.choice) > 0 {
		return slices.ContainsFunc(globFolders(w.choice), func(p string) bool { return isWithin(p, dir) || isWithin(dir, p) })
	}
	return !slices.Contains(foreign, path.Base(dir)) && w.isAlong(folderOf(dir+"/x"))
}

// isAlong reports whether a folder is on the way to a prefix, or below one. Without
// a scope there is the top only.
func (w selection) isAlong(dir string) bool {
	return dir == "" || slices.ContainsFunc(w.prefixes, func(p string) bool { return isWithin(p, dir) || isWithin(dir, p) })
}

// includes reports whether a file is wanted.
func (w selection) includes(name string) bool {
	if len(w.choice) > 0 {
		return slices.Contains(w.choice, name) || !besideSkill(name) && slices.ContainsFunc(w.choice, func(glob string) bool { return policy.Covers(glob, name) })
	}
	dir := folderOf(name)
	if !w.isAlong(dir) {
		return false
	}
	if path.Dir(name) == path.Clean(cmp.Or(dir, ".")) && slices.Contains(Names, path.Base(name)) {
		return true
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(name, dir), "/")
	return slices.ContainsFunc(Special, func(glob string) bool {
		// Of a large tree most files are told by their first letters.
		top, _, _ := strings.Cut(glob, "/")
		return strings.HasPrefix(rest, top) && policy.Covers(glob, rest)
	})
}

// besideSkill reports whether a file belongs to a skill and is not what describes
// it: an agent reads or runs it in the tree when it needs it.
func besideSkill(name string) bool {
	in := strings.Contains("/"+name, "/.claude/skills/") || strings.Contains("/"+name, "/.agents/skills/")
	return in && path.Base(name) != "SKILL.md"
}

// isWithin reports whether a path is a folder or lies in it; everything lies in the
// top.
func isWithin(name, dir string) bool {
	return dir == "" || name == dir || strings.HasPrefix(name, dir+"/")
}
