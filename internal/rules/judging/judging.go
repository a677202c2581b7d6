// Package judging says which files of a tree decide what a gate says: the
// scripts that its command runs, what these run in turn, and the files in which
// such commands are written, as Makefiles and the scripts of package.json.
//
// It reads text that it is given and runs nothing. What only the shell knows
// when it runs is not followed, and is said instead. The answer is for
// protecting more than a definition lists and for telling a human what is not
// protected, never for deciding that a command is safe.
package judging

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Tree is the files that a gate starts from. Names are relative to its top.
type Tree interface {
	// Read returns the text of a file, and for a symbolic link the name that it
	// leads to. If name is not a file, the error is fs.ErrNotExist.
	Read(name string) ([]byte, error)

	// Names lists all files. It is asked only if a command means several files,
	// or one in a folder that is not known.
	Names() ([]string, error)
}

// Bounds of what is followed. Gates of large repositories stay far below them.
const (
	maxFiles  = 300     // that are read
	maxText   = 1 << 20 // bytes of one file
	maxDepth  = 24      // of files that run files
	maxSteps  = 100_000 // parts of commands that are looked at
	maxValues = 16      // that one word may have
	maxValue  = 4 << 10 // bytes of one of them
)

// Judges is what decides the verdict of some commands.
type Judges struct {
	// Programs are globs of the files that they run, or take their commands
	// from, sorted. A file need not exist: whoever adds it would be asked.
	Programs []string

	// Imports are files that lie beside or below a program which loads them by
	// their name. They are not in Programs, because such a file is as often
	// the code under test as a part of the test.
	Imports []string

	// Lost are the places at which following ended, each in words that name
	// the place.
	Lost []string
}

// Merge returns what decides for either.
func (j Judges) Merge(other Judges) Judges {
	join := func(a, b []string) []string {
		all := slices.Concat(a, b)
		slices.Sort(all)
		return slices.Compact(all)
	}
	return Judges{join(j.Programs, other.Programs), join(j.Imports, other.Imports), join(j.Lost, other.Lost)}
}

// Rewritable lists by which files of a scope the verdict could be rewritten
// without anybody being asked: programs and what they load, if allowed says
// that an agent may change them. What is behind a place at which following ended
// is not in the list.
func (j Judges) Rewritable(tree Tree, allowed func(name string) bool) []string {
	if tree == nil {
		tree = noFiles{}
	}
	c := collector{tree: tree}
	var all []string
	for _, glob := range slices.Concat(j.Programs, j.Imports) {
		for _, name := range append(c.matchingFiles(glob), representative(glob)) {
			if name != "" && allowed(name) {
				all = append(all, name)
				break
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// representative returns the one name that a glob without wildcards matches, or a name
// in its last folder.
func representative(glob string) string {
	folder, below := strings.CutSuffix(strings.TrimPrefix(glob, "**/"), "/**")
	switch {
	case strings.ContainsAny(folder, "*?"):
		return ""
	case below:
		return "" // What could be added to a folder is protected; only what is there counts.
	}
	return folder
}

// Follow lists what decides the verdict of a line for the shell that runs at
// the top of a tree. Where says what the line is, for the words about places.
// A nil tree has no files: then the list holds what the line itself names.
func Follow(tree Tree, where, line string) Judges {
	if tree == nil {
		tree = noFiles{}
	}
	c := &collector{tree: tree, programs: map[string]bool{}, imports: map[string]bool{}, seen: map[string]bool{}, texts: map[string]text{}}
	f := &follower{c}
	f.followScript(newShell(where), unmarked.Replace(line))
	return Judges{slices.Sorted(maps.Keys(c.programs)), slices.Sorted(maps.Keys(c.imports)), c.lost}
}

// unmarked takes out of a text what would be read as a part that is not known.
var unmarked = strings.NewReplacer(outside, "", computed, "", top, "")

type noFiles struct{}

// Read finds nothing.
func (noFiles) Read(string) ([]byte, error) { return nil, fs.ErrNotExist }

// Names lists nothing.
func (noFiles) Names() ([]string, error) { return nil, nil }

// collector reads the tree and keeps what was found.
type collector struct {
	tree     Tree
	programs map[string]bool
	imports  map[string]bool
	lost     []string

	seen  map[string]bool // files and targets that were followed, with how
	texts map[string]text
	names []string // of the tree, once they were asked for
	asked bool
	steps int
	depth int
}

// follower follows commands of the shell.
type follower struct{ *collector }

type text struct {
	content string
	there   bool
}

// reportLost records that a command cannot be followed beyond a place.
func (c *collector) reportLost(where, what string) {
	said := what + " (" + where + ")"
	const most = 10
	if len(c.lost) < most && !slices.Contains(c.lost, said) {
		c.lost = append(c.lost, said)
	}
}

// readText returns the text of a file, or of the file that a link leads to. A
// file that cannot be read counts as missing, and is reported as lost.
func (c *collector) readText(where, name string) (content string, there bool) {
	if known, ok := c.texts[name]; ok {
		return known.content, known.there
	}
	var t text
	defer func() { c.texts[name] = t }()
	if len(c.texts) > maxFiles {
		c.reportLost(where, "more than 300 files decide")
		return "", false
	}
	data, err := c.tree.Read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil || len(data) > maxText:
		c.reportLost(where, name+" is too large or cannot be read")
	default:
		t = text{unmarked.Replace(string(data)), true}
		if to, ok := c.linkTarget(name, t.content); ok {
			c.programs[to] = true
			if data, err := c.tree.Read(to); err == nil && len(data) <= maxText {
				t.content = unmarked.Replace(string(data))
			}
		}
	}
	return t.content, t.there
}

// linkTarget returns where a symbolic link leads to. The text that the tree has of a
// link is that name, one short line without a line feed.
func (c *collector) linkTarget(name, content string) (string, bool) {
	if content == "" || len(content) > 255 || strings.ContainsAny(content, "\n \t\x00") {
		return "", false
	}
	to := path.Join(path.Dir(name), content)
	if path.IsAbs(content) || leavesTree(to) || to == name {
		return "", false
	}
	_, err := c.tree.Read(to)
	return to, err == nil
}

// matchingFiles lists the files of the tree that match a glob. A glob without wildcards
// is returned as it is.
func (c *collector) matchingFiles(glob string) []string {
	if !strings.ContainsAny(glob, "*?") {
		return []string{glob}
	}
	if !c.asked {
		c.asked = true
		c.names, _ = c.tree.Names() // Without a list, what the glob stands for is protected and not followed.
	}
	var found []string
	for _, name := range c.names {
		if Matches(glob, name) && !strings.Contains("/"+name, "/node_modules/") {
			found = append(found, name)
		}
	}
	const most = 60
	return found[:min(most, len(found))]
}

// Matches compares a name with a glob, part by part; ** stands for any number
// of folders.
func Matches(glob, name string) bool {
	first, rest, more := strings.Cut(glob, "/")
	if first == "**" {
		if !more {
			return true
		}
		for {
			if Matches(rest, name) {
				return true
			}
			_, below, ok := strings.Cut(name, "/")
			if !ok {
				return false
			}
			name = below
		}
	}
	part, below, deeper := strings.Cut(name, "/")
	if ok, err := path.Match(first, part); err != nil || !ok || more != deeper {
		return false
	}
	return !more || Matches(rest, below)
}

func leavesTree(clean string) bool {
	return clean == "." || clean == ".." || strings.HasPrefix(clean, "../") || path.IsAbs(clean)
}

// protectFiles adds globs to the files that decide, and returns the files of the tree
// that match.
func (c *collector) protectFiles(globs []string) []string {
	var there []string
	for _, g := range globs {
		c.programs[g] = true
		there = append(there, c.matchingFiles(g)...)
	}
	return there
}

// firstTime reports whether something is followed for the first time.
func (c *collector) firstTime(what ...string) bool {
	key := strings.Join(what, "\x00")
	if c.seen[key] {
		return false
	}
	c.seen[key] = true
	return true
}
