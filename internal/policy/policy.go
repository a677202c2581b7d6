// Package policy says of each path that an agent changed whether the
// definition allows it, with the rule that decided.
//
// It looks at names only, never at a file system, and it denies what no rule
// allows.
package policy

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// Protected are the globs that a scope entry must name explicitly before an
// agent may change what they match: the files that judge or configure the
// agent, whether they exist yet or not.
var Protected = []string{
	// Tests.
	"**/*_test.go", "**/*_test.py", "**/test_*.py", "**/conftest.py", "**/*.test.*", "**/*.spec.*", "**/__tests__/**",
	"test/**", "tests/**", "spec/**", "**/testdata/**",
	// Lockfiles.
	"**/go.sum", "**/package-lock.json", "**/npm-shrinkwrap.json", "**/yarn.lock", "**/pnpm-lock.yaml", "**/bun.lock*", "**/Cargo.lock",
	"**/poetry.lock", "**/uv.lock", "**/Pipfile.lock", "**/Gemfile.lock", "**/composer.lock",
	// CI and build configuration.
	".github/**", ".gitlab-ci.yml", ".circleci/**", ".ci/**", "Jenkinsfile", "azure-pipelines.yml", "**/Makefile", "**/*.mk", "**/go.mod", "**/go.work",
	"**/package.json", "**/.npmrc", "**/pytest.ini", "**/tox.ini", "**/setup.cfg", "**/pyproject.toml", "**/sitecustomize.py", "**/jest.config.*",
	"**/vitest.config.*", "**/tsconfig*.json", "**/Cargo.toml", "**/build.rs", "**/.golangci.y*ml",
	// Agent settings.
	"**/.claude/**", "**/AGENTS.md", "**/CLAUDE.md", "**/GEMINI.md", "**/.mcp.json", "**/.cursor/**", "**/.codex/**", "**/.gemini/**", "**/.opencode/**",
	// git's own files.
	"**/.gitattributes", "**/.gitmodules", "**/.gitignore", "**/.mailmap",
}

// never are globs that no scope entry can open: the definitions themselves and
// git directories.
var never = []string{".loops/**", "**/.git", "**/.git/**"}

// Verdict is the answer for one path.
type Verdict struct {
	Path    string
	Allowed bool
	Rule    string // the scope entry that allows it, or why it is denied
}

// Scope decides about paths. The zero Scope allows nothing.
type Scope struct {
	allow   []string
	protect []string
}

// NewScope makes a Scope from the definition's scope globs and its additional
// protected globs. It reports the first entry that is not a glob.
func NewScope(allow, protect []string) (Scope, error) {
	for _, g := range append(append([]string{}, allow...), protect...) {
		if !doublestar.ValidatePattern(g) {
			return Scope{}, fmt.Errorf("%q is not a valid glob", g)
		}
	}
	s := Scope{protect: append(append([]string{}, Protected...), protect...)}
	for _, g := range allow {
		s.allow = append(s.allow, strings.TrimPrefix(strings.TrimSuffix(g, "/"), "./"))
	}
	return s, nil
}

// Judge decides about one path: never before protected before scope, and a
// path that no entry allows is denied.
func (s Scope) Judge(name string) Verdict {
	if why := canonical(name); why != "" {
		return Verdict{Path: name, Rule: why}
	}
	folded := strings.ToLower(name)
	if g := matching(never, folded); g != "" {
		return Verdict{Path: name, Rule: g + " is never in scope"}
	}
	guard := matching(s.protect, name)
	for _, g := range s.allow {
		if !covers(g, name) {
			continue
		}
		if guard != "" && !names(g, guard, name) {
			continue
		}
		return Verdict{Path: name, Allowed: true, Rule: "scope " + g}
	}
	if guard != "" {
		return Verdict{Path: name, Rule: fmt.Sprintf("protected by %s; name it in scope to allow it", guard)}
	}
	return Verdict{Path: name, Rule: "outside scope " + strings.Join(s.allow, " ")}
}

// Denied judges all paths and returns those that may not be changed.
func (s Scope) Denied(paths []string) []Verdict {
	var denied []Verdict
	for _, p := range paths {
		if v := s.Judge(p); !v.Allowed {
			denied = append(denied, v)
		}
	}
	return denied
}

// names reports whether a scope entry means protected files and does not only
// happen to cover them: it is the path itself, has the protected glob's last
// part (internal/**/*_test.go), or stands in its folder (.github/workflows/**).
func names(entry, guard, name string) bool {
	last, folder := path.Base(guard), path.Dir(guard)
	switch {
	case entry == name:
		return true
	case last != "**" && path.Base(entry) == last:
		return true
	case folder == "." || strings.Contains(folder, "*"):
		return false
	}
	return strings.HasPrefix(entry, folder+"/")
}

// covers matches a glob; a plain folder covers what is below it.
func covers(glob, name string) bool {
	return doublestar.MatchUnvalidated(glob, name) || doublestar.MatchUnvalidated(glob+"/**", name)
}

func matching(globs []string, name string) string {
	for _, g := range globs {
		if doublestar.MatchUnvalidated(g, name) {
			return g
		}
	}
	return ""
}

// canonical says why a name is no clean relative path, or nothing if it is.
func canonical(name string) string {
	switch {
	case name == "" || name == "." || name != path.Clean(name) || path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../"):
		return "not a clean relative path"
	case !utf8.ValidString(name):
		return "not UTF-8"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "control character in the name"
	case strings.Contains(name, `\`):
		return "backslash in the name"
	}
	return ""
}
