package policy

import (
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Bounds of one glob. What a definition accepts is never over them.
const (
	maxGlobBytes    = 1 << 10
	MaxAlternatives = 64 // what the braces of one glob may stand for
)

// parseGlob checks a glob, and returns the globs without braces that it means.
func parseGlob(glob string) ([]string, error) {
	if len(glob) > maxGlobBytes {
		return nil, fmt.Errorf("glob %.40q…: pattern-size: %d bytes are more than %d", glob, len(glob), maxGlobBytes)
	}
	all, ok := Alternatives(glob)
	if !ok {
		return nil, fmt.Errorf("glob %.40q…: pattern-size: its braces stand for more than %d patterns", glob, MaxAlternatives)
	}
	if !doublestar.ValidatePattern(glob) {
		return nil, fmt.Errorf("%q is not a valid glob", glob)
	}
	for _, one := range all {
		for part := range strings.SplitSeq(one, "/") {
			if !doublestar.ValidatePattern(part) {
				return nil, fmt.Errorf("%q is not a valid glob in each of its parts", glob)
			}
		}
	}
	return all, nil
}

// Alternatives lists the globs without braces that {a,b} stands for, which are
// what a path is matched with. It reports false, at once, if there are more than
// MaxAlternatives.
func Alternatives(glob string) ([]string, bool) { return expandBraces(glob, MaxAlternatives) }

func expandBraces(glob string, most int) ([]string, bool) {
	before, inner, after, found := firstBraces(glob)
	if !found {
		return []string{glob}, true
	}
	tails, ok := expandBraces(after, most)
	if !ok {
		return nil, false
	}
	var all []string
	for _, choice := range inner {
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

// firstBraces splits a glob around its first pair of braces, and what is
// inside at the commas of that pair.
func firstBraces(glob string) (before string, inner []string, after string, found bool) {
	level, start, class := 0, 0, false
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '{':
			if level++; level == 1 {
				before, start = glob[:i], i+1
			}
		case c == ',' && level == 1:
			inner, start = append(inner, glob[start:i]), i+1
		case c == '}' && level > 0:
			if level--; level == 0 {
				return before, append(inner, glob[start:i]), glob[i+1:], true
			}
		}
	}
	return "", nil, "", false
}

// Covers reports whether a glob, with or without braces, matches a path; a plain
// folder covers what is below it. A glob with too many alternatives matches nothing.
func Covers(glob, name string) bool {
	all, _ := Alternatives(strings.TrimSuffix(strings.TrimPrefix(glob, "./"), "/"))
	for _, one := range all {
		if covers(one, name) {
			return true
		}
	}
	return false
}

// covers matches a glob; a plain folder covers what is below it.
func covers(glob, name string) bool { return match(glob, name) || match(glob+"/**", name) }

// match matches a glob without braces part by part, ** any number of them, none
// too. The library decides about one part only: of whole paths it has other
// opinions in places (?*/** is not to cover a, a/**/** is).
func match(glob, name string) bool {
	globs, parts := strings.Split(glob, "/"), strings.Split(name, "/")
	g, n := 0, 0
	star, from := -1, 0 // the last ** and the part at which it ends
	for n < len(parts) {
		switch {
		case g < len(globs) && globs[g] == "**":
			star, from = g, n
			g++
		case g < len(globs) && doublestar.MatchUnvalidated(globs[g], parts[n]):
			g, n = g+1, n+1
		case star >= 0:
			from++
			g, n = star+1, from
		default:
			return false
		}
	}
	for g < len(globs) && globs[g] == "**" {
		g++
	}
	return g == len(globs)
}

// namesGuard reports whether a scope entry means what a guard protects and does not
// only happen to cover it: it is the path itself or the guard itself, or has a
// part that matches nothing but what the guard's telling part matches
// (internal/**/*_test.go, .github/workflows/**).
func namesGuard(entry string, g guard, name string) bool {
	if entry == name || entry == g.glob {
		return true
	}
	telling := tellingPart(g.fold)
	if telling == "" {
		return false
	}
	for part := range strings.SplitSeq(foldName(entry), "/") {
		// A wildcard of the guard takes in any wildcard of the entry, and where
		// the guard has letters the entry must have the same.
		if part == telling || !strings.ContainsAny(telling, `?[\`) && doublestar.MatchUnvalidated(telling, part) {
			return true
		}
	}
	return false
}

// tellingPart is the last part of a glob, or its folder's if everything below
// is meant; empty if that is nothing but wildcards.
func tellingPart(glob string) string {
	last := path.Base(strings.TrimSuffix(glob, "/**"))
	if strings.Trim(last, "*?") == "" {
		return ""
	}
	return last
}
