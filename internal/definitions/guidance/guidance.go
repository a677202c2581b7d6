// Package guidance finds the instructions that a repository has for coding
// agents, such as AGENTS.md and CLAUDE.md, at one commit.
//
// It reads only git objects, never a file of a working tree: it sees no change of an
// agent, no link leads out of the tree, and all sizes are bounded. It does not judge
// how far the instructions can be trusted; its callers do.
package guidance

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// None as the only entry of a choice selects nothing.
const None = "none"

// Limits of what is read from one commit.
const (
	MaxFile  = 32 << 10 // bytes of one file
	MaxTotal = 64 << 10 // bytes of all files together

	maxFiles   = 40   // files that are read
	maxFolders = 4096 // folders that are listed
	maxLookups = 64   // imports and links that are looked up
	maxHops    = 5    // length of a chain of imports or links
	leastPart  = 512  // bytes; a smaller part of a file is not given
)

// Names are the files that count as instructions in any folder.
var Names = []string{"AGENTS.md", "CLAUDE.md", "GEMINI.md", "QWEN.md", ".goosehints"}

// Special are globs of instructions at one place below a folder: the top, or any
// other along the scope.
var Special = []string{".claude/CLAUDE.md", ".claude/rules/**/*.md", ".github/copilot-instructions.md", ".cursorrules"}

// foreign are folders of other people's code, whose instructions are not the
// repository's. A choice can still name what is in them.
var foreign = []string{"node_modules", "vendor", "third_party", "testdata", ".git"}

// File is one file with instructions, and how much of it is given to the agent.
type File struct {
	Path  string `json:"path"`
	Blob  string `json:"blob"`           // git's name of its content
	Bytes int64  `json:"bytes"`          // its size
	Given int    `json:"given"`          // bytes of Text; 0: it is not given
	Note  string `json:"note,omitempty"` // why not all of it is given; empty if it is
	Text  string `json:"-"`              // UTF-8; imports are without their @
}

// Source gives access to the objects of a repository.
type Source interface {
	Blobs(ctx context.Context) (*object.Blobs, error)
}

// Read returns the instructions of a commit, in the order for the prompt: those of the
// top first. Without a choice they are those along the scope: from the top to the
// folder that each glob begins with, and below that folder. A choice lists globs
// instead, or None.
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

// readSelected reads the selected files, up to maxFiles.
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

// compareDepth sorts the files of the top first. In a folder it sorts in the order of
// Names, then by path, so that a prompt is the same each time.
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

// folderOf returns the folder to which instructions apply; empty: the top. Those of a
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

// selection decides which files of a tree are instructions.
type selection struct {
	prefixes []string // folders that the scope begins with; "" is the top
	choice   []string // globs instead of the scope; empty: no choice
}

// globFolders returns the folders that globs begin with, each once.
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

// literalPrefix returns the leading elements of a glob without wildcards. The last one
// may be a file: searching it as a folder costs nothing.
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

// mayEnter reports whether a folder can have selected instructions.
func (w selection) mayEnter(dir string) bool {
	if len(w.choice) > 0 {
		return slices.ContainsFunc(globFolders(w.choice), func(p string) bool { return isWithin(p, dir) || isWithin(dir, p) })
	}
	return !slices.Contains(foreign, path.Base(dir)) && w.isAlong(folderOf(dir+"/x"))
}

// isAlong reports whether a folder is above a prefix, equal to it or below it. Without
// a scope only the top is.
func (w selection) isAlong(dir string) bool {
	return dir == "" || slices.ContainsFunc(w.prefixes, func(p string) bool { return isWithin(p, dir) || isWithin(dir, p) })
}

// includes reports whether a file is selected.
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
		// In a large tree this cheap test excludes most files.
		top, _, _ := strings.Cut(glob, "/")
		return strings.HasPrefix(rest, top) && policy.Covers(glob, rest)
	})
}

// besideSkill reports whether a file belongs to a skill but is not its SKILL.md: an
// agent reads or runs it in the tree when it needs it.
func besideSkill(name string) bool {
	in := strings.Contains("/"+name, "/.claude/skills/") || strings.Contains("/"+name, "/.agents/skills/")
	return in && path.Base(name) != "SKILL.md"
}

// isWithin reports whether a path is dir or below it. Every path is below the top, "".
func isWithin(name, dir string) bool {
	return dir == "" || name == dir || strings.HasPrefix(name, dir+"/")
}
