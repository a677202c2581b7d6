package policy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestScopesOverlapIfAPathMayBeInBoth(t *testing.T) {
	for name, c := range map[string]struct {
		a, b string
		want bool
	}{
		"the same folder":                     {"src/**", "src/**", true},
		"a folder and a file below it":        {"src/**", "src/a.go", true},
		"a plain folder and a file below it":  {"src", "src/deep/a.go", true},
		"a folder written with a slash":       {"./src/", "src/a.go", true},
		"two folders":                         {"src/**", "docs/**", false},
		"a folder and one whose name begins":  {"src", "src2/a.go", false},
		"two files":                           {"go.mod", "go.sum", false},
		"two kinds of files at the top":       {"*.go", "*.md", false},
		"two kinds of files below a folder":   {"**/*.go", "**/*.md", true}, // x.go may be a folder
		"a kind of files and a folder":        {"**/*.go", "docs/**", true},
		"a file at the top and below":         {"*.go", "src/*.go", false},
		"a folder of that name may match *":   {"*", "src/a.go", true},
		"a part in the middle":                {"a/*/c", "a/b/*", true},
		"a part in the middle that differs":   {"a/*/c", "a/b/d", false},
		"any number of parts, none":           {"a/**/b", "a/b", true},
		"any number of parts, two":            {"a/**/b", "a/x/y/b", true},
		"any number of parts, below":          {"a/**/b", "a/x/y", true},
		"any number of parts, another top":    {"a/**/b", "c/**", false},
		"one letter":                          {"a?.go", "ab.go", true},
		"one letter, and two":                 {"a?.go", "abc.go", false},
		"stars that may meet":                 {"a*c", "*bc", true},
		"stars that cannot meet":              {"a*c", "b*c", false},
		"braces":                              {"{src,docs}/**", "docs/a.md", true},
		"braces without it":                   {"{src,docs}/**", "bench/a.md", false},
		"a class may be any letter":           {"[ab].go", "c.go", true},
		"a class is one letter":               {"[ab].go", "cd.go", false},
		"a class with a bracket that escapes": {`[\]a]x`, "ax", true},
		"an escaped star":                     {`a\*`, "a*", true},
		"an escaped star is no other letter":  {`a\*`, "ab", false},
		"letters of another case":             {"Src/**", "src/a.go", true},
		"another Unicode form":                {"caf\u00e9", "cafe\u0301", true},
		"a letter of two runes and any one":   {"caf?", "caf\u00e9", true},
		"a glob that means too many":          {strings.Repeat("{a,b}", 7), "zzz", true},
		"a glob that is not valid":            {"[", "zzz", true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, pair := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
				if _, _, got := Overlap(pair[:1], pair[1:]); got != c.want {
					t.Errorf("Overlap(%q, %q) = %v", pair[0], pair[1], got)
				}
			}
		})
	}
	if a, b, _ := Overlap([]string{"x/**", "src/**"}, []string{"y/**", "src/a.go"}); a != "src/**" || b != "src/a.go" {
		t.Errorf("it names %q and %q", a, b)
	}
	if _, _, got := Overlap(nil, []string{"**"}); got {
		t.Error("an empty scope overlaps with everything")
	}
}

// globFor draws a glob that probably covers the path.
func globFor(t *rapid.T, name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		n := rapid.IntRange(0, len(part)).Draw(t, "cut")
		switch rapid.IntRange(0, 8).Draw(t, "how") {
		case 0:
			parts[i] = part[:n] + "*"
		case 1:
			parts[i] = "*" + part[n:]
		case 2:
			parts[i] = strings.Repeat("?", len(part))
		case 3:
			parts[i] = "[ab]" + part[1:]
		case 4:
			parts[i] = "{" + part + ",zz}"
		case 5:
			parts[i] = "**"
		case 6:
			parts[i] = "[^b]*"
		}
	}
	return strings.Join(parts[:rapid.IntRange(1, len(parts)).Draw(t, "parts")], "/")
}

func TestScopesThatCoverAPathAlwaysOverlap(t *testing.T) {
	var both int
	rapid.Check(t, func(t *rapid.T) {
		name := paths.Draw(t, "path")
		a, b := globFor(t, name), globFor(t, name)
		if !Covers(a, name) || !Covers(b, name) {
			return
		}
		both++
		if _, _, got := Overlap([]string{a}, []string{b}); !got {
			t.Fatalf("%q and %q both cover %q and do not overlap", a, b, name)
		}
	})
	if both == 0 {
		t.Error("no path was covered by both")
	}
}

func TestScopesWithoutAnyCommonPathDoNotOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Plain names and whole wildcards are decided exactly.
		plain := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "*", "**"}), 1, 4), func(p []string) string { return strings.Join(p, "/") })
		a, b := plain.Draw(t, "a"), plain.Draw(t, "b")
		if _, _, got := Overlap([]string{a}, []string{b}); got != shareAPath(a, b) {
			t.Fatalf("Overlap(%q, %q) = %v", a, b, got)
		}
	})
}

// shareAPath tries all paths of at most eight parts, each of them a or b: more are
// needed by no two globs of four parts.
func shareAPath(a, b string) bool {
	names := []string{"a", "b"}
	for range 8 {
		var longer []string
		for _, name := range names {
			if below(a, name) && below(b, name) {
				return true
			}
			if strings.Count(name, "/") < 7 {
				longer = append(longer, name+"/a", name+"/b")
			}
		}
		names = longer
	}
	return false
}
