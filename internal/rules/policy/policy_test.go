package policy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestScopeAllowsOnlyWhatItNames(t *testing.T) {
	cases := map[string]struct {
		scope   []string
		path    string
		allowed bool
		rule    string // part of it
	}{
		"a file below the glob":                     {[]string{"src/**"}, "src/a/b.go", true, "scope src/**"},
		"a plain folder covers what is below":       {[]string{"src"}, "src/a.go", true, "scope src"},
		"a folder with a slash":                     {[]string{"./src/"}, "src/a.go", true, "scope src"},
		"a sibling with the same prefix":            {[]string{"src"}, "src2/a.go", false, "outside scope"},
		"a path that leaves the tree":               {[]string{"src/**"}, "src/../secret.txt", false, "clean relative"},
		"an absolute path":                          {[]string{"**/*"}, "/etc/passwd", false, "clean relative"},
		"a control character":                       {[]string{"src/**"}, "src/a\nb", false, "control"},
		"a test file below the glob":                {[]string{"src/**"}, "src/a_test.go", false, "**/*_test.go"},
		"a test file that the scope names":          {[]string{"src/**", "**/*_test.go"}, "src/a_test.go", true, "scope **/*_test.go"},
		"a test glob in one folder":                 {[]string{"src/**/*_test.go"}, "src/x/a_test.go", true, ""},
		"a lockfile by its name":                    {[]string{"go.sum"}, "go.sum", true, ""},
		"a lockfile in the whole tree":              {[]string{"**/*"}, "go.sum", false, "go.sum"},
		"CI by its folder":                          {[]string{".github/workflows/**"}, ".github/workflows/ci.yml", true, ""},
		"CI by the whole tree":                      {[]string{"**/*"}, ".github/workflows/ci.yml", false, ".github/**"},
		"the definition is never in scope":          {[]string{".loops/**"}, ".loops/x/loop.config.yaml", false, "never"},
		"a git directory is never in scope":         {[]string{"**/.git/**"}, "src/.GIT/config", false, "never"},
		"agent settings that do not exist yet":      {[]string{"**/*"}, "sub/.claude/settings.json", false, ".claude"},
		"all go files do not name the tests in it":  {[]string{"**/*.go"}, "a_test.go", false, "**/*_test.go"},
		"the zero scope allows nothing":             {nil, "a", false, "outside"},
		"the file itself":                           {[]string{"Makefile"}, "Makefile", true, ""},
		"a glob that covers a build file by chance": {[]string{"sub/*"}, "sub/Makefile", false, "Makefile"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := NewScope(c.scope, nil)
			if err != nil {
				t.Fatal(err)
			}
			v := s.Judge(c.path)
			if v.Allowed != c.allowed || !strings.Contains(v.Rule, c.rule) {
				t.Errorf("Judge(%q) = %+v, want allowed=%v with a rule naming %q", c.path, v, c.allowed, c.rule)
			}
		})
	}
}

func TestAStreamOfAFolderThatIsNeverInScopeIsNotEither(t *testing.T) {
	s, err := NewScope([]string{"**/*", ".loops:x/**", "src/.git::$DATA/**"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{".loops:x/y", ".LOOPS::$INDEX_ALLOCATION/x/loop.config.yaml", "src/.git::$DATA/config", "src/.Git . :x/config"} {
		if v := s.Judge(path); v.Allowed || v.Code != CodeNever {
			t.Errorf("Judge(%q) = %+v, want never", path, v)
		}
	}
}

func TestProtectAddsToTheList(t *testing.T) {
	s, err := NewScope([]string{"src/**"}, []string{"src/secret/**"})
	if err != nil {
		t.Fatal(err)
	}
	if v := s.Judge("src/a"); !v.Allowed {
		t.Errorf("src/a is denied: %+v", v)
	}
	if v := s.Judge("src/secret/b"); v.Allowed || v.Path != "src/secret/b" {
		t.Errorf("src/secret/b = %+v, want it denied", v)
	}
}

func TestAnInvalidGlobIsNamed(t *testing.T) {
	for _, glob := range []string{"src/[a", "src/[a/b]", strings.Repeat("a", maxGlobBytes+1)} {
		for _, lists := range [][2][]string{{{glob}, nil}, {nil, {glob}}} {
			if _, err := NewScope(lists[0], lists[1]); err == nil || !strings.Contains(err.Error(), glob[:5]) {
				t.Errorf("NewScope = %v, want an error that names the glob", err)
			}
		}
	}
	if _, err := NewScope([]string{strings.Repeat("a", maxGlobBytes)}, nil); err != nil {
		t.Errorf("a glob as long as it may be: %v", err)
	}
}

func TestAGlobCoversWhatItsBracesStandForAndWhatIsBelow(t *testing.T) {
	for name, c := range map[string]struct {
		glob, path string
		want       bool
	}{
		"a folder":              {"docs", "docs/a/b.md", true},
		"a folder with slashes": {"./docs/", "docs/a.md", true},
		"another folder":        {"docs", "docs2/a.md", false},
		"the first in braces":   {"{a,b}/**", "a/x", true},
		"the last in braces":    {"{a,b}/**", "b/x", true},
		"not in braces":         {"{a,b}/**", "c/x", false},
		"braces in braces":      {"{a,b{c,d}}", "bd", true},
		"a brace in a class":    {"[{]{a,b}", "{b", true},
		"a hidden brace":        {`\{a,b`, "{a,b", true},
		"too many alternatives": {strings.Repeat("{a,a}", 7), "aaaaaaa", false},
	} {
		if got := Covers(c.glob, c.path); got != c.want {
			t.Errorf("%s: Covers(%q, %q) = %v", name, c.glob, c.path, got)
		}
	}
}

func TestNoPathOutsideTheTreeIsEverAllowed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"..", ".", "src", "a", "", ".git", ".loops", "x.go"})
		name := strings.Join(rapid.SliceOfN(part, 1, 6).Draw(t, "parts"), "/")
		s, err := NewScope([]string{"**/*", "**", "src/**", ".loops/**", ".git/**"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		v := s.Judge(name)
		for p := range strings.SplitSeq(name, "/") {
			if v.Allowed && (p == ".." || p == ".git" || p == "" || p == ".") {
				t.Fatalf("Judge(%q) allows it by %q", name, v.Rule)
			}
		}
		if v.Allowed && strings.HasPrefix(name, ".loops") {
			t.Fatalf("Judge(%q) allows the definition", name)
		}
	})
}

// TestEveryProtectedGlobIsFoundByItsIndex compares the index with trying all.
func TestEveryProtectedGlobIsFoundByItsIndex(t *testing.T) {
	fill := strings.NewReplacer("**", "a", "*", "a", "?", "a", "[cmjt]", "j", "[cj]", "c")
	for _, glob := range Protected {
		name := fill.Replace(foldName(glob))
		if caseMatters(testsGroup, glob) {
			name = fill.Replace(glob)
		}
		found := false
		for _, g := range guardsOf(name) {
			found = found || g.glob == glob
		}
		if !match(foldName(glob), foldName(name)) || !found {
			t.Errorf("%q is not found to protect %q", glob, name)
		}
	}
}

func TestAPlainScopeIsEnoughForOrdinarySource(t *testing.T) {
	s, err := NewScope([]string{"**/*.go", "src/**", "lib"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"main.go", "internal/formats/spec/spec.go", "internal/confine/probe/makefile.go", "builder/dockerfile/dockerfile.go", "pkg/codegen/codegen.go", "cmd/build/build.go",
		"internal/agents/agent/agent.go", "internal/gradle/parse.go", "internal/git/git.go", "pkg/testing/clock.go", "internal/ci/run.go", "pkg/lockfile/lock.go",
		"src/app/app.config.ts", "src/config/database.ts", "src/locales/global.json", "src/index.html", "src/build/x.py", "lib/env.rb", "lib/tool.rb", "src/agents.ts",
	} {
		if v := s.Judge(path); !v.Allowed {
			t.Errorf("Judge(%q) = %+v, want allowed", path, v)
		}
		if Judging(path) {
			t.Errorf("Judging(%q) is true", path)
		}
	}
}

func TestAScopeEntryOpensWhatItNamesAndNothingBeside(t *testing.T) {
	for name, c := range map[string]struct {
		scope   []string
		path    string
		allowed bool
	}{
		"a folder of settings":                   {[]string{".claude/**"}, ".claude/settings.json", true},
		"test data of one package":               {[]string{"internal/x/testdata/**"}, "internal/x/testdata/a.txt", true},
		"a folder of tests by its plain name":    {[]string{"tests"}, "tests/a.txt", true},
		"the tests' configuration is not a test": {[]string{"tests/**"}, "tests/conftest.py", false},
		"tests that two globs protect":           {[]string{"tests/**"}, "tests/a_test.go", true},
		"both reasons named":                     {[]string{"tests/**", "**/conftest.py"}, "tests/conftest.py", true},
		"a glob with braces":                     {[]string{"web/**/*.{test,spec}.ts"}, "web/a.spec.ts", true},
		"braces that only happen to cover":       {[]string{"web/**/*.{x,*}"}, "web/a.spec.ts", false},
		"a narrower glob":                        {[]string{"src/user_*_test.go"}, "src/user_a_test.go", true},
		"agent settings in a folder of CI":       {[]string{".github/**"}, ".github/copilot-instructions.md", false},
		"the file in other letters":              {[]string{"package.json"}, "Package.json", false},
		"a protect glob is not its folder's":     {[]string{"internal/definitions/definition/**"}, "internal/definitions/definition/go.mod", false},
		"a manifest by its name in every folder": {[]string{"**/package.json"}, "web/package.json", true},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := NewScope(c.scope, nil)
			if err != nil {
				t.Fatal(err)
			}
			if v := s.Judge(c.path); v.Allowed != c.allowed {
				t.Errorf("scope %q: Judge(%q) = %+v, want allowed %v", c.scope, c.path, v, c.allowed)
			}
		})
	}
}
