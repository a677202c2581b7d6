// Package policy says of each path that an agent changed whether the
// definition allows it, of a whole change whether it is one that may be
// landed, and to which classes it belongs that may or may never land without a
// human; and of what an agent asks leave for whether it may do it, or a human
// has to say yes. Every answer carries the rule that decided.
//
// It looks at names, modes and texts that it is given, never at a file system
// or a repository, and it denies what no rule allows. It never decides what a
// human may approve, and never changes anything.
package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Code is a stable name of the rule behind a verdict. Scripts match on codes;
// people read the rule.
type Code string

// Codes of what a change list is refused or allowed for.
const (
	CodeScope         Code = "scope"          // allowed by an entry, or by none
	CodeProtected     Code = "protected"      // it judges or configures, and no entry names it
	CodeNever         Code = "never"          // no entry can open it
	CodeNonCanonical  Code = "non_canonical"  // no clean relative path, or one that a system reads as another
	CodeNormalisation Code = "normalisation"  // not UTF-8, not NFC, or the same as another path but for Unicode form
	CodeCaseCollision Code = "case_collision" // the same as another path but for letter case
	CodeControlChar   Code = "control_char"   // control, direction or invisible characters
	CodeLength        Code = "length"         //
	CodeUnportable    Code = "unportable"     // a new name that Windows cannot hold
	CodeExecBit       Code = "exec_bit"       // a file becomes executable, or a new one is
	CodeSymlink       Code = "symlink"        // a new symbolic link, or a new target
	CodeGitlink       Code = "gitlink"        // a submodule is added, changed or removed
	CodeDeletion      Code = "deletion"       // a file of the base, where none may be deleted
	CodeMode          Code = "mode"           // a mode that git gives to no file
	CodePatchSize     Code = "patch_size"     // more files or more content than the limits allow
)

// Verdict is the answer for one path, or for an action that has none.
type Verdict struct {
	Path    string
	Allowed bool
	Code    Code
	Rule    string // the scope entry that allows it, or why it is denied
}

// Scope decides about paths. The zero Scope allows nothing.
type Scope struct {
	allow   []string
	protect []guard // the definition's own; the built-in ones always hold
}

// NewScope makes a Scope from the definition's scope globs and its additional
// protected globs. It reports the first entry that is not a glob, or that
// stands for more patterns than can be matched in time.
func NewScope(allow, protect []string) (Scope, error) {
	var s Scope
	for _, glob := range allow {
		all, err := parseGlob(strings.TrimPrefix(strings.TrimSuffix(glob, "/"), "./"))
		if err != nil {
			return Scope{}, err
		}
		s.allow = append(s.allow, all...)
	}
	for _, glob := range protect {
		all, err := parseGlob(glob)
		if err != nil {
			return Scope{}, err
		}
		for _, one := range all {
			s.protect = append(s.protect, guard{group: ownGroup, glob: one, fold: foldName(one)})
		}
	}
	return s, nil
}

// Judge decides about one path: its spelling, then never, then protected, then
// scope. A path that no entry allows is denied, and so is a path with more than
// one reason for protection of which one is not named.
func (s Scope) Judge(name string) Verdict {
	if code, why := checkSpelling(name); why != "" {
		return Verdict{Path: name, Code: code, Rule: why}
	}
	for _, spelling := range spellings(name) {
		if g := firstMatch(never, spelling); g != "" {
			return Verdict{Path: name, Code: CodeNever, Rule: g + " is never in scope"}
		}
	}
	var entries []string // that cover the name
	for _, entry := range s.allow {
		if covers(entry, name) {
			entries = append(entries, entry)
		}
	}
	by := s.guards(name)
	if g, closed := firstUnnamed(by, entries, name); closed {
		return Verdict{Path: name, Code: CodeProtected, Rule: fmt.Sprintf("protected by %s; name it in scope to allow it (%s)", g.glob, g.group)}
	}
	if len(entries) == 0 {
		return Verdict{Path: name, Code: CodeScope, Rule: "outside scope " + strings.Join(s.allow, " ")}
	}
	entry := entries[0]
	if i := slices.IndexFunc(entries, func(e string) bool { return len(by) > 0 && namesGuard(e, by[0], name) }); i > 0 {
		entry = entries[i]
	}
	return Verdict{Path: name, Allowed: true, Code: CodeScope, Rule: "scope " + entry}
}

// guards returns everything that protects a name.
func (s Scope) guards(name string) []guard {
	found := guardsOf(name)
	for _, g := range s.protect {
		matches := func(spelling string) bool { return covers(g.fold, spelling) }
		if covers(g.glob, name) || slices.ContainsFunc(spellings(name), matches) {
			found = append(found, g)
		}
	}
	return found
}

// firstUnnamed returns the first guard of a group that no entry names. One named
// guard speaks for its group: who names the tests means all of them. The
// definition's own globs have nothing in common and stand for themselves.
func firstUnnamed(by []guard, entries []string, name string) (guard, bool) {
	open := map[string]bool{}
	named := func(g guard) bool {
		return slices.ContainsFunc(entries, func(e string) bool { return namesGuard(e, g, name) })
	}
	for _, g := range by {
		open[g.group] = open[g.group] || named(g)
	}
	for _, g := range by {
		if !open[g.group] || g.group == ownGroup && !named(g) {
			return g, true
		}
	}
	return guard{}, false
}

func firstMatch(globs []string, name string) string {
	for _, g := range globs {
		if match(g, name) {
			return g
		}
	}
	return ""
}
