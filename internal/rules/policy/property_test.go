package policy

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// matches is a glob matcher of its own: *, ?, whole parts of **, nothing else.
func matches(glob, name []string) bool {
	if len(glob) == 0 {
		return len(name) == 0
	}
	if glob[0] == "**" {
		return matches(glob[1:], name) || len(name) > 0 && matches(glob, name[1:])
	}
	return len(name) > 0 && matchesPart(glob[0], name[0]) && matches(glob[1:], name[1:])
}

func matchesPart(glob, part string) bool {
	if glob == "" {
		return part == ""
	}
	switch {
	case glob[0] == '*':
		return matchesPart(glob[1:], part) || part != "" && matchesPart(glob, part[1:])
	case part == "":
		return false
	}
	return (glob[0] == '?' || glob[0] == part[0]) && matchesPart(glob[1:], part[1:])
}

func split(s string) []string { return strings.Split(s, "/") }

// below is what a scope entry covers: what it matches, and what is below that.
func below(glob, name string) bool {
	return matches(split(glob), split(name)) || matches(append(split(glob), "**"), split(name))
}

var (
	globs = rapid.Map(rapid.SliceOfN(rapid.StringMatching(`\*\*|[ab*?]{1,3}`), 1, 4), func(parts []string) string {
		return strings.Join(slices.CompactFunc(parts, func(a, b string) bool { return a == "**" && b == a }), "/")
	})
	paths = rapid.Map(rapid.SliceOfN(rapid.StringMatching(`[ab]{1,3}`), 1, 4), func(parts []string) string { return strings.Join(parts, "/") })
)

func TestAPathIsAllowedExactlyIfAnotherMatcherSaysSo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		allow, name := rapid.SliceOfN(globs, 0, 4).Draw(t, "scope"), paths.Draw(t, "path")
		s, err := NewScope(allow, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.ContainsFunc(allow, func(g string) bool { return below(g, name) })
		if v := s.Judge(name); v.Allowed != want {
			t.Fatalf("scope %q: Judge(%q) = %+v, want allowed %v", allow, name, v, want)
		}
	})
}

func TestDenyWinsOverAllow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		allow, protect := rapid.SliceOfN(globs, 0, 4).Draw(t, "scope"), rapid.SliceOfN(globs, 1, 3).Draw(t, "protect")
		name := paths.Draw(t, "path")
		without, err := NewScope(allow, nil)
		if err != nil {
			t.Fatal(err)
		}
		with, err := NewScope(allow, protect)
		if err != nil {
			t.Fatal(err)
		}
		v := with.Judge(name)
		if v.Allowed && !without.Judge(name).Allowed {
			t.Fatalf("protect %q allows %q", protect, name)
		}
		for _, g := range protect {
			// An entry can name a guard only by being it, being the path, or by a
			// part with letters in the place of the guard's.
			letters := strings.ContainsAny(strings.Join(allow, ""), "ab")
			if below(g, name) && v.Allowed && !letters && !slices.Contains(allow, g) {
				t.Fatalf("scope %q allows %q, which %q protects: %+v", allow, name, g, v)
			}
		}
	})
}

// judged are names that must not be changed by chance, of every group.
var judged = []string{
	"Makefile", "sub/package.json", "go.sum", ".github/workflows/ci.yml", "a/.claude/settings.json", "AGENTS.md", "x/conftest.py", "src/__tests__/a.js",
	".gitattributes", ".husky/pre-commit", ".loops/x/loop.config.yaml", "vendor/.git/config", ".npmrc", "tests/x.txt", ".vscode/tasks.json", "Dockerfile",
	"gradle/wrapper/gradle-wrapper.jar", ".envrc", "src/été_test.go",
}

func TestNoSpellingOfAProtectedPathGetsThrough(t *testing.T) {
	s, err := NewScope([]string{"**", "**/*", "*", "src/**", "sub", "**/*.*"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	spell := map[string]func(t *rapid.T, part string) string{
		"as it is":     func(_ *rapid.T, part string) string { return part },
		"upper":        func(_ *rapid.T, part string) string { return strings.ToUpper(part) },
		"title":        func(_ *rapid.T, part string) string { return strings.ToUpper(part[:1]) + part[1:] },
		"trailing dot": func(t *rapid.T, part string) string { return part + rapid.StringMatching(`[. ]{1,3}`).Draw(t, "tail") },
		"decomposed":   func(_ *rapid.T, part string) string { return norm.NFD.String(part) },
		"stream": func(t *rapid.T, part string) string {
			return part + rapid.SampledFrom([]string{":x", "::$DATA", ". :x"}).Draw(t, "stream")
		},
		"zero width":     func(_ *rapid.T, part string) string { return part[:1] + "\u200b" + part[1:] },
		"variation":      func(_ *rapid.T, part string) string { return part + "\ufe0f" },
		"here":           func(_ *rapid.T, part string) string { return "./" + part },
		"there and back": func(_ *rapid.T, part string) string { return "x/../" + part },
		"two slashes":    func(_ *rapid.T, part string) string { return "/" + part },
		"backslash":      func(_ *rapid.T, part string) string { return `.\` + part },
		"dotless i":      func(_ *rapid.T, part string) string { return strings.ReplaceAll(part, "i", "ı") },
		"dotted I":       func(_ *rapid.T, part string) string { return strings.ReplaceAll(part, "i", "İ") },
		"long s, Kelvin": func(_ *rapid.T, part string) string {
			return strings.NewReplacer("s", "ſ", "k", "\u212a").Replace(part)
		},
		"fullwidth": func(_ *rapid.T, part string) string {
			return strings.Map(func(c rune) rune {
				if c > ' ' && c < 0x7f && c != ':' {
					return c - '!' + '！'
				}
				return c
			}, part)
		},
	}
	var kinds []string
	for kind := range spell {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	rapid.Check(t, func(t *rapid.T) {
		parts := split(rapid.SampledFrom(judged).Draw(t, "path"))
		for i, part := range parts {
			parts[i] = spell[rapid.SampledFrom(kinds).Draw(t, "kind")](t, part)
		}
		name := strings.Join(parts, "/")
		if v := s.Judge(name); v.Allowed {
			t.Fatalf("Judge(%+q) allows it by %s", name, v.Rule)
		}
	})
}

func TestFoldingTwiceIsFoldingOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.StringMatching(`[iIıİ\x{307}ﬁßẞſΣς. /℀／\x{200b}]{0,8}`)).Draw(t, "name")
		once := foldName(name)
		if twice := foldName(once); twice != once {
			t.Fatalf("%+q folds to %+q and then to %+q", name, once, twice)
		}
		if a, b := strings.Count(once, "/"), strings.Count(name, "/"); a != b {
			t.Fatalf("%+q folds to %+q: %d parts became %d", name, once, b+1, a+1)
		}
	})
}

func TestEveryLetterFoldsToOneOfItsCases(t *testing.T) {
	for c := rune(1); c <= unicode.MaxRune; c++ {
		once := foldPart(string(c))
		if twice := foldPart(once); twice != once {
			t.Errorf("%+q folds to %+q and then to %+q", c, once, twice)
		}
		if other := foldPart(string(unicode.SimpleFold(c))); other != once {
			t.Errorf("%+q folds to %+q, and its other case to %+q", c, once, other)
		}
	}
}

func TestSignsFoldToThemselves(t *testing.T) {
	for _, c := range "!#$%&()*+,-0123456789:;<=>?@[]^_`{|}~\x7f" {
		if got := foldPart(string(c)); got != string(c) {
			t.Errorf("%q folds to %q", c, got)
		}
	}
}

func TestCollisionsAreWhatComparingAllPairsFinds(t *testing.T) {
	name := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "A", "é", "e\u0301", "É", "b", "ab", "Ac"}), 1, 3), func(p []string) string { return strings.Join(p, "/") })
	rapid.Check(t, func(t *rapid.T) {
		changed, tree := rapid.SliceOfNDistinct(name, 0, 4, rapid.ID).Draw(t, "changed"), rapid.SliceOfNDistinct(name, 0, 4, rapid.ID).Draw(t, "tree")
		found := map[string]bool{}
		for _, v := range Collisions(changed, tree) {
			if v.Allowed || v.Rule == "" {
				t.Fatalf("verdict %+v", v)
			}
			found[v.Path] = true
		}
		if any := pairwise(changed, tree); (len(found) > 0) != any {
			t.Fatalf("Collisions(%q, %q) finds %v, want some: %v", changed, tree, found, any)
		}
	})
}

func TestAPathCollidesWithASecondSpellingThatTheTreeHasAlready(t *testing.T) {
	for _, tree := range [][]string{{"src/a", "src/A"}, {"src/A", "src/a"}} {
		for _, changed := range tree {
			if v := Collisions([]string{changed}, tree); len(v) != 1 || v[0].Path != changed || v[0].Code != CodeCaseCollision {
				t.Errorf("Collisions(%q, %q) = %+v, want that it collides", changed, tree, v)
			}
		}
	}
}

// pairwise compares every folder and file of a changed path with every other.
func pairwise(changed, tree []string) bool {
	for _, a := range changed {
		for _, b := range append(slices.Clone(changed), tree...) {
			x, y := split(a), split(b)
			for i := range min(len(x), len(y)) {
				if x[i] != y[i] && strings.EqualFold(norm.NFC.String(x[i]), norm.NFC.String(y[i])) {
					return true
				}
				if x[i] != y[i] {
					break
				}
			}
		}
	}
	return false
}

func FuzzJudge(f *testing.F) {
	for _, name := range append(slices.Clone(judged), "src/a.go", "İ/ı", "a:b", "℀", "-x", "a~1", "\xff") {
		f.Add("**", "src/**", name)
		f.Add("{a,b}/**", "**/*.{go,mod}", name)
	}
	f.Fuzz(func(t *testing.T, allow, protect, name string) {
		s, err := NewScope([]string{allow}, []string{protect})
		if err != nil {
			return
		}
		v := s.Judge(name)
		if v.Path != name || v.Rule == "" || v.Code == "" {
			t.Errorf("Judge(%q) = %+v, want a path, a code and a rule", name, v)
		}
		_, why := checkSpelling(name)
		if v.Allowed && (why != "" || strings.Contains("/"+name+"/", "/../") || strings.HasPrefix(strings.ToLower(name), ".loops/")) {
			t.Errorf("Judge(%q) allows it", name)
		}
		if _, named := firstUnnamed(guardsOf(name), []string{allow}, name); v.Allowed && named && !strings.ContainsAny(allow, "{") {
			t.Errorf("Judge(%q) allows it by %q, which names nothing", name, allow)
		}
	})
}
