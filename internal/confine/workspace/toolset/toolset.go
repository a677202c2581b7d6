// Package toolset is what the programs of a loop need beside their tree where
// nothing of the host is visible by itself: the toolchains of the programs that
// its lines name, caches of packages and of compiled code, and the dependencies
// that a set-up prepared.
//
// Caches are shown in layers. What a program adds goes to a layer of its own,
// which is thrown away; only what runs on a tree that a human vouches for adds
// to the layer that the next ones see, so that no agent leaves anything there
// for a gate to trust. What a set-up prepared and downloaded is seen with the
// lockfiles that it did it for, and never written to.
//
// It runs nothing of the project itself, never decides what may be reached, and
// never shows a home directory or a credential.
package toolset

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/confine/probe"
	"github.com/pawl-run/pawl/internal/confine/probe/toolchain"
	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/ground/proc"
)

// systemPath is where programs are that every host has.
var systemPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// Set is what programs need beside their tree. With the zero Set they have only the
// system's programs.
type Set struct {
	Toolchains []toolchain.Toolchain
	Caches     []toolchain.Cache

	path []string // directories of the user's PATH that every sandbox shows
}

// Needs say what a toolset is for.
type Needs struct {
	Root    string   // the checkout
	Environ []string // of the user
	Lines   []string // for the shell; it is an error if the program of one exists but cannot be shown
}

// resolveSet is Recall without the cache.
func resolveSet(ctx context.Context, exec proc.Runner, n Needs) (Set, error) {
	var k Set
	var programs []string
	needed := map[string]bool{}
	for _, line := range n.Lines {
		programs = append(programs, toolchain.Programs(line)...)
		needed[firstProgram(line)] = true
	}
	stacks := probe.Repository(os.DirFS(n.Root)).Stacks
	for _, s := range stacks {
		programs = append(programs, programsOf[s.Name]...)
	}
	seen := map[string]bool{}
	for _, program := range programs {
		if seen[program] {
			continue
		}
		seen[program] = true
		t, err := toolchain.Resolve(ctx, exec, n.Environ, n.Root, program)
		switch {
		case err == nil:
			k.Toolchains = append(k.Toolchains, t)
		case needed[program] && inPath(program, n.Environ):
			return Set{}, err
		}
	}
	k.Caches = toolchain.Caches(n.Environ, programs, stacks)
	k.path = visiblePath(n.Environ)
	return k, nil
}

// inPath reports whether a program is in the user's PATH. A set-up may prepare one that
// is not.
func inPath(program string, environ []string) bool {
	return slices.ContainsFunc(proc.PathDirs(proc.LookupVariable(environ, "PATH")), func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, program))
		return err == nil
	})
}

// firstProgram returns the program in PATH that a line starts, after variables; empty if
// there is none.
func firstProgram(line string) string {
	for word := range strings.FieldsSeq(line) {
		switch {
		case strings.Contains(word, "="):
		case strings.Contains(word, "/"):
			return "" // It is a path: the shell reports if it is missing.
		default:
			return word
		}
	}
	return ""
}

// programsOf are the programs, by language, that scripts of a project start without any
// line naming them.
var programsOf = map[string][]string{
	"go": {"go"}, "npm": {"node", "npm"}, "yarn": {"node", "yarn"}, "pnpm": {"node", "pnpm"}, "bun": {"bun"}, "deno": {"deno"},
	"pip": {"python3"}, "python-uv": {"uv", "python3"}, "pdm": {"python3"}, "poetry": {"poetry", "python3"}, "pipenv": {"python3"},
	"cargo": {"cargo", "rustc"}, "bundler": {"ruby", "bundle"}, "maven": {"java", "mvn"}, "gradle": {"java"},
	"composer": {"php", "composer"}, "mix": {"mix"}, "dotnet": {"dotnet"},
}

// visiblePath returns the directories of the user's PATH that every sandbox shows.
func visiblePath(environ []string) []string {
	var dirs []string
	for _, dir := range proc.PathDirs(proc.LookupVariable(environ, "PATH")) {
		if strings.HasPrefix(dir, "/usr/") || strings.HasPrefix(dir, "/opt/") || slices.Contains(systemPath, dir) {
			dirs = append(dirs, filepath.Clean(dir))
		}
	}
	return dirs
}

// Path returns the PATH of programs: the directories in more, of the toolchains, and of
// the system.
func (k Set) Path(more ...string) string {
	dirs := slices.Clone(more)
	for _, t := range k.Toolchains {
		dirs = append(dirs, t.PathDirs...)
	}
	var all []string
	for _, dir := range slices.Concat(dirs, k.path, systemPath) {
		if !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	return strings.Join(all, string(os.PathListSeparator))
}

// quiet keeps tools from asking their vendors for updates.
var quiet = []string{"NPM_CONFIG_UPDATE_NOTIFIER=false", "PIP_DISABLE_PIP_VERSION_CHECK=1"}

// Env returns the variables by which programs in a tier find toolchains and caches.
func (k Set) Env(t sandbox.Tier) []string {
	env := slices.Clone(quiet)
	for _, t := range k.Toolchains {
		env = append(env, t.Env...)
	}
	for _, c := range k.shownCaches(t) {
		if c.Env != "" {
			env = append(env, c.Env+"="+c.Value)
		}
	}
	slices.Sort(env)
	return slices.Compact(env)
}

// shownCaches returns the caches that programs in a tier see. Without mounts they cannot
// add to a cache, and see only those to which set-ups alone add.
func (k Set) shownCaches(t sandbox.Tier) []toolchain.Cache {
	return slices.DeleteFunc(slices.Clone(k.Caches), func(c toolchain.Cache) bool { return !t.HasOwnRoot() && !c.Downloads })
}

// Binds returns the files and directories of the toolchains, and of the caches that are
// not layered in the tier.
func (k Set) Binds(t sandbox.Tier) []sandbox.Bind {
	var binds []sandbox.Bind
	add := func(path string) {
		if bind := (sandbox.Bind{From: path}); !slices.Contains(binds, bind) {
			binds = append(binds, bind)
		}
	}
	for _, chain := range k.Toolchains {
		for _, path := range chain.Bind {
			add(path)
		}
	}
	if t.HasOwnRoot() {
		return binds
	}
	for _, c := range k.shownCaches(t) {
		add(c.Path)
	}
	return binds
}

// Digest is a digest of the versions of all programs of the toolset, and of the places
// where other programs are looked for.
func (k Set) Digest(environ []string) string {
	all := []string{proc.LookupVariable(environ, "PATH")}
	for _, t := range k.Toolchains {
		all = append(all, t.Program, t.Digest)
	}
	return digestTexts(all...)
}

// programsDigest changes with every toolchain of the toolset for one of the programs.
func (k Set) programsDigest(programs []string) string {
	var all []string
	for _, t := range k.Toolchains {
		if slices.Contains(programs, t.Program) {
			all = append(all, t.Program, t.Digest)
		}
	}
	return digestTexts(all...)
}
