package invariant

import (
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/shell"
)

// LooksLikeCommand reports whether the backticks of a check hold a command line, as
// some programs wrote in their invariants: tsc --noEmit. It is a command gate then.
func LooksLikeCommand(check string) bool {
	inside, ok := inBackticks(check)
	if !ok {
		return false
	}
	if _, err := Compile(check); err == nil {
		return false
	}
	words := strings.Fields(inside)
	compares := func(w string) bool {
		return slices.Contains([]string{"==", "!=", "<", "<=", ">=", "in", "matches", "contains"}, w)
	}
	if slices.ContainsFunc(words[1:], compares) {
		return false
	}
	if _, err := shell.Parse(inside); err != nil {
		return false
	}
	const names = "diff files json yaml output iteration tokens base"
	program, _, _ := strings.Cut(words[0], ".")
	return !strings.ContainsAny(words[0], "()[]{}\"'!#<>=") && !slices.Contains(strings.Fields(names), program) && words[0] != "not"
}
