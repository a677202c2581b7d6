package toolchain

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/confine/probe"
)

// Setup prepares what a clean copy of a repository lacks. The zero Setup prepares
// nothing.
type Setup struct {
	Command   string        // for the shell, at the root of the repository
	Lockfiles []string      // relative to the root, sorted; the result depends on their contents
	Hosts     []string      // the hosts that it has to reach, sorted
	PathDirs  []string      // relative to the root; they come first in PATH afterwards
	Stacks    []probe.Stack // the stacks that it prepares
}

// preparation is how the stacks of a manager are prepared.
type preparation struct {
	hosts []string
	locks []string // files beside the lockfile on which the installation depends
	loose bool     // it is prepared without a lockfile, too

	before string // written before the command that package probe proposes
	path   string // in the directory of the stack
}

// GoModules is the host from which Go gets modules by default.
const GoModules = "proxy.golang.org"

var (
	npmHosts    = []string{"registry.npmjs.org"}
	yarnHosts   = []string{"registry.npmjs.org", "registry.yarnpkg.com", "repo.yarnpkg.com"}
	denoHosts   = []string{"deno.land", "jsr.io", "npm.jsr.io", "registry.npmjs.org"}
	pythonHosts = []string{"files.pythonhosted.org", "pypi.org"}
	mavenHosts  = []string{"repo.maven.apache.org", "repo1.maven.org"}
	gradleHosts = []string{
		"downloads.gradle.org", "plugins-artifacts.gradle.org", "plugins.gradle.org", "repo.maven.apache.org", "repo1.maven.org", "services.gradle.org",
	}
	gradleLocks = []string{"build.gradle", "build.gradle.kts", "gradle/libs.versions.toml", "gradle/wrapper/gradle-wrapper.properties"}
)

// preparations, by the names of stacks. Hosts are those of the public registries
// only: a person has to allow what a file of the project names. Python and Ruby
// packages are installed into the tree, because an installation of the host is
// read-only.
var preparations = map[string]preparation{
	"npm":  {hosts: npmHosts, locks: []string{"package.json", ".npmrc"}},
	"pnpm": {hosts: npmHosts, locks: []string{"package.json", ".npmrc", "pnpm-workspace.yaml"}},
	"yarn": {hosts: yarnHosts, locks: []string{"package.json", ".npmrc", ".yarnrc", ".yarnrc.yml"}},
	"bun":  {hosts: npmHosts, locks: []string{"package.json", ".npmrc", "bunfig.toml"}},
	"deno": {hosts: denoHosts, locks: []string{"deno.json", "deno.jsonc"}},

	"python-uv": {hosts: pythonHosts, locks: []string{"pyproject.toml", ".python-version"}},
	"pdm":       {hosts: pythonHosts, locks: []string{"pyproject.toml", ".python-version"}},
	"poetry":    {hosts: pythonHosts, locks: []string{"pyproject.toml", ".python-version"}, before: "POETRY_VIRTUALENVS_IN_PROJECT=true "},
	"pipenv":    {hosts: pythonHosts, locks: []string{"Pipfile", ".python-version"}, before: "PIPENV_VENV_IN_PROJECT=1 "},
	"pip": {
		hosts: pythonHosts, locks: []string{"pyproject.toml", "setup.py", "setup.cfg", ".python-version"}, loose: true,
		before: "python3 -m venv .venv && .venv/bin/", path: ".venv/bin",
	},

	"go":    {hosts: []string{GoModules, "sum.golang.org"}, locks: []string{"go.mod", "go.work"}},
	"cargo": {hosts: []string{"index.crates.io", "static.crates.io"}, locks: []string{"Cargo.toml", "rust-toolchain", "rust-toolchain.toml"}},

	"maven":  {hosts: mavenHosts, locks: []string{".mvn/wrapper/maven-wrapper.properties"}, loose: true},
	"gradle": {hosts: gradleHosts, locks: gradleLocks, loose: true},
	"dotnet": {hosts: []string{"api.nuget.org"}, loose: true},

	"bundler": {
		hosts: []string{"index.rubygems.org", "rubygems.org"}, locks: []string{"Gemfile", ".ruby-version"},
		before: "bundle config set --local path vendor/bundle && BUNDLE_FROZEN=true ",
	},
	"composer": {hosts: []string{"api.github.com", "codeload.github.com", "packagist.org", "repo.packagist.org"}, locks: []string{"composer.json"}},
	"mix":      {hosts: []string{"builds.hex.pm", "repo.hex.pm"}, locks: []string{"mix.exs"}},
}

// SetupFor finds the commands that prepare the repository at root, from its
// lockfiles. It reads what package probe reads. It reports false if there is nothing
// to prepare.
func SetupFor(root fs.FS) (Setup, bool) {
	var s Setup
	var lines []string
	for _, stack := range probe.Repository(root).Stacks {
		p, ok := preparations[stack.Name]
		if !ok || stack.Setup == nil || !p.loose && stack.Lockfile == "" {
			continue
		}
		line := stack.Setup.Line
		if enter := "(cd " + probe.Quoted(stack.Dir) + " && "; p.before != "" && stack.Dir != "." {
			line = enter + p.before + strings.TrimPrefix(line, enter)
		} else {
			line = p.before + line
		}
		lines = append(lines, line)
		s.Hosts = append(s.Hosts, p.hosts...)
		s.Lockfiles = append(s.Lockfiles, p.decisiveFiles(stack, root)...)
		s.Stacks = append(s.Stacks, stack)
		if p.path != "" {
			s.PathDirs = append(s.PathDirs, path.Join(stack.Dir, p.path))
		}
	}
	s.Command = strings.Join(withoutRepeats(lines), " && ")
	s.Hosts, s.Lockfiles = sortedSet(s.Hosts), sortedSet(s.Lockfiles)
	return s, len(lines) > 0
}

// decisiveFiles lists the files of a stack on which the installation depends.
func (p preparation) decisiveFiles(stack probe.Stack, root fs.FS) []string {
	all := []string{stack.Lockfile}
	if stack.Lockfile == "" {
		all[0] = stack.Manifest
	}
	for _, name := range slices.Concat(p.locks, requirementFiles(stack)) {
		name = path.Join(stack.Dir, name)
		if info, err := fs.Stat(root, name); err == nil && info.Mode().IsRegular() {
			all = append(all, name)
		}
	}
	return all
}

// requirementFiles lists the requirement files that the set-up of a stack names.
func requirementFiles(stack probe.Stack) []string {
	if stack.Name != "pip" {
		return nil
	}
	var all []string
	words := strings.Fields(stack.Setup.Line)
	for i, word := range words {
		if word == "-r" && i+1 < len(words) {
			all = append(all, strings.TrimSuffix(words[i+1], ")"))
		}
	}
	return all
}

func sortedSet(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
