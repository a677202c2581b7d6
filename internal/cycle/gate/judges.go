package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/judging"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// Judges are the files that decide the results of a definition's gates.
type Judges struct {
	// Programs are globs of the files that the gates and the sense command run
	// or take their commands from. They are protected like any other file that
	// judges.
	Programs []string

	// Rewritable are the gates that files of the scope can rewrite.
	Rewritable []Rewritable
}

// IsProgram reports whether a path is a file that the gates run.
func (j Judges) IsProgram(path string) bool {
	return slices.ContainsFunc(j.Programs, func(glob string) bool { return judging.Matches(glob, path) })
}

// Rewritable is a gate whose verdict an agent can choose without changing any
// protected file.
type Rewritable struct {
	Gate string
	By   []string // files of the scope
	Lost []string // places beyond which the gate cannot be followed
}

// String describes it for people, without the name of the gate.
func (r Rewritable) String() string {
	var parts []string
	if len(r.By) > 0 {
		parts = append(parts, firstFew(r.By))
	}
	if len(r.Lost) > 0 {
		parts = append(parts, "it cannot be followed to its end: "+firstFew(r.Lost))
	}
	return "this gate can be rewritten by files in its scope: " + strings.Join(parts, "; ")
}

// firstFew joins the first elements of a list, and counts the others.
func firstFew(list []string) string {
	const shown = 5
	if n := len(list) - shown; n > 0 {
		list = append(slices.Clone(list[:shown]), fmt.Sprintf("and %d more", n))
	}
	return strings.Join(list, ", ")
}

// JudgesOf follows the gates of a definition through the tree that a run starts
// from. It fails if the scope is invalid.
func JudgesOf(d loop.Definition, tree judging.Tree) (Judges, error) {
	commands := Commands(d)
	var j Judges
	all := judging.Follow(tree, "sense", d.SenseCommand())
	found := make([]judging.Judges, len(commands))
	for i, c := range commands {
		found[i] = judging.Follow(tree, c.Name, c.Line)
		all = all.Merge(found[i])
	}
	j.Programs = all.Programs
	scope, err := policy.NewScope(d.Scope, slices.Concat(d.Protect, j.Programs))
	if err != nil || d.Tier == loop.TierReport {
		return j, err // What a report changes goes nowhere.
	}
	allowed := func(name string) bool { return scope.Judge(name).Allowed }
	for i, c := range commands {
		r := Rewritable{c.Name, found[i].Rewritable(tree, allowed), found[i].Lost}
		if len(r.By)+len(r.Lost) > 0 {
			j.Rewritable = append(j.Rewritable, r)
		}
	}
	return j, nil
}
