package definition

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"
)

// Limits of a list of patterns.
const (
	maxPatterns     = 100
	maxPatternBytes = 1 << 10
	maxAlternatives = 64 // what the braces of one pattern may stand for
)

// patternProblem says what is wrong with a glob wherever it is used, or
// nothing.
func patternProblem(pattern string) string {
	switch {
	case len(pattern) > maxPatternBytes:
		return fmt.Sprintf("longer than %d bytes", maxPatternBytes)
	case strings.ContainsFunc(pattern, unicode.IsControl):
		return "contains a control character"
	case strings.HasPrefix(pattern, "!"):
		return "exclusions are not supported; name what must not be touched in protect"
	}
	alternatives, ok := expandBraces(pattern, maxAlternatives)
	switch {
	case !ok:
		return fmt.Sprintf("braces stand for more than %d patterns; write fewer, or one item each", maxAlternatives)
	case !doublestar.ValidatePattern(pattern):
		return "not a valid glob"
	}
	if slices.ContainsFunc(alternatives, leavesTree) {
		return "leaves the tree; write paths relative to the repository, without .."
	}
	return ""
}

// unbounded reports whether a pattern, or one of its alternatives, is the whole
// tree: its parts are nothing but wildcards and dots.
func unbounded(pattern string) bool {
	alternatives, _ := expandBraces(pattern, maxAlternatives)
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

// expandBraces lists the patterns that {a,b} stands for. It reports false, at
// once, if there are more than most.
func expandBraces(pattern string, most int) ([]string, bool) {
	before, inner, after, found := firstBraces(pattern)
	if !found {
		return []string{pattern}, true
	}
	tails, ok := expandBraces(after, most)
	if !ok {
		return nil, false
	}
	var all []string
	for _, choice := range splitChoices(inner) {
		heads, ok := expandBraces(choice, most)
		if !ok || len(all)+len(heads)*len(tails) > most {
			return nil, false
		}
		for _, head := range heads {
			for _, tail := range tails {
				all = append(all, before+head+tail)
			}
		}
	}
	return all, true
}

// firstBraces splits a pattern around its first pair of braces.
func firstBraces(pattern string) (before, inner, after string, found bool) {
	level, start := 0, 0
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '{':
			if level++; level == 1 {
				start = i
			}
		case '}':
			if level == 0 {
				continue
			}
			if level--; level == 0 {
				return pattern[:start], pattern[start+1 : i], pattern[i+1:], true
			}
		}
	}
	return "", "", "", false
}

// splitChoices splits at the commas that stand in no inner braces.
func splitChoices(inner string) []string {
	var all []string
	level, start := 0, 0
	for i := 0; i < len(inner); i++ {
		switch inner[i] {
		case '\\':
			i++
		case '{':
			level++
		case '}':
			level--
		case ',':
			if level == 0 {
				all = append(all, inner[start:i])
				start = i + 1
			}
		}
	}
	return append(all, inner[start:])
}
