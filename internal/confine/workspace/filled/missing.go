package filled

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/confine/probe"
)

// MissingError means that a tree names files that are not in the clone.
type MissingError struct {
	Submodules []string // paths
	LFS        []string // paths of files that git LFS keeps
	Damaged    []string // the same, where the store has other content than the pointer names

	update []string // submodules of the outermost tree in which submodules are missing
	pull   []string // submodules of the outermost tree in which files of git LFS are missing; "": the tree itself
}

func (e *MissingError) isAny() bool { return len(e.Submodules)+len(e.LFS)+len(e.Damaged) > 0 }

func (e *MissingError) addSubmodule(m module) {
	e.Submodules, e.update = append(e.Submodules, m.path), addOnce(e.update, m.outer)
}

func (e *MissingError) addObject(o lfsObject) {
	e.LFS, e.pull = append(e.LFS, o.path), addOnce(e.pull, o.outer)
}

func (e *MissingError) addDamaged(o lfsObject) {
	e.Damaged, e.pull = append(e.Damaged, o.path), addOnce(e.pull, o.outer)
}

func addOnce(list []string, one string) []string {
	if slices.Contains(list, one) {
		return list
	}
	return append(list, one)
}

// How many paths an error names, and how many a command has.
const (
	mostNamed     = 5
	mostArguments = 10
)

// Error names the first few.
func (e *MissingError) Error() string {
	var all []string
	for _, kind := range []struct {
		paths []string
		what  string
	}{{e.Submodules, "submodule"}, {e.LFS, "git LFS"}, {e.Damaged, "git LFS, damaged"}} {
		for _, path := range kind.paths {
			all = append(all, fmt.Sprintf("%s (%s)", probe.Quoted(path), kind.what))
		}
	}
	more := ""
	if n := len(all) - mostNamed; n > 0 {
		all, more = all[:mostNamed], fmt.Sprintf(" and %d more", n)
	}
	return "files of the base are not in this clone: " + strings.Join(all, ", ") + more
}

// Fix returns a command line for the top of the checkout that fetches them.
func (e *MissingError) Fix() string {
	var lines []string
	if len(e.update) > 0 {
		lines = append(lines, commandWith("git submodule update --init --recursive", e.update))
	}
	pull := "git lfs pull"
	if len(e.Damaged) > 0 {
		pull = "git lfs fsck --objects; git lfs pull" // It moves damaged objects away, and then fails.
	}
	if slices.Contains(e.pull, "") {
		lines = append(lines, pull)
	}
	if slices.ContainsFunc(e.pull, func(outer string) bool { return outer != "" }) {
		lines = append(lines, "git submodule foreach --recursive "+probe.Quoted(pull))
	}
	return strings.Join(lines, " && ")
}

// commandWith adds paths to a command. Without paths the command works on all.
func commandWith(line string, paths []string) string {
	if len(paths) > mostArguments {
		return line
	}
	for _, path := range paths {
		line += " " + probe.Quoted(path)
	}
	return line
}
