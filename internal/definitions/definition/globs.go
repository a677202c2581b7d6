package definition

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/pawl-run/pawl/internal/rules/policy"
)

// Limits of a list of patterns.
const (
	maxPatterns     = 100
	maxPatternBytes = 1 << 10
)

// patternProblem says what is wrong with a glob in any key; empty if nothing is.
func patternProblem(pattern string) string {
	switch {
	case len(pattern) > maxPatternBytes:
		return fmt.Sprintf("longer than %d bytes", maxPatternBytes)
	case strings.ContainsFunc(pattern, unicode.IsControl):
		return "contains a control character"
	case strings.HasPrefix(pattern, "!"):
		return "exclusions are not supported; name what must not be touched in protect"
	}
	alternatives, ok := policy.Alternatives(pattern)
	switch {
	case !ok:
		return fmt.Sprintf("braces stand for more than %d patterns; write fewer, or one item each", policy.MaxAlternatives)
	case !doublestar.ValidatePattern(pattern):
		return "not a valid glob"
	}
	if slices.ContainsFunc(alternatives, leavesTree) {
		return "leaves the tree; write paths relative to the repository, without .."
	}
	return ""
}

// isUnbounded reports whether a pattern, or one of its alternatives, is the whole tree: it
// has only wildcards and dots.
func isUnbounded(pattern string) bool {
	alternatives, _ := policy.Alternatives(pattern)
	return slices.ContainsFunc(alternatives, wholeTree)
}

func wholeTree(pattern string) bool {
	for part := range strings.SplitSeq(pattern, "/") {
		if part != "." && strings.Trim(part, "*?") != "" {
			return false
		}
	}
	return true
}

func leavesTree(pattern string) bool {
	slashed := strings.ReplaceAll(pattern, `\`, "/")
	if strings.HasPrefix(slashed, "/") || len(slashed) > 2 && slashed[1:3] == ":/" {
		return true
	}
	for part := range strings.SplitSeq(slashed, "/") {
		if part == ".." {
			return true
		}
	}
	return false
}
