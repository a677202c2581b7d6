package probe

import (
	"path"
	"slices"
	"strings"
)

// Proposal has the parts of a first loop that keeps tests green. A command has an
// empty line if the repository does not name it, and Scope is empty if nothing looks
// like source; then a person has to fill them in.
type Proposal struct {
	Verify Command // the tests
	Guard  Command // the tests, then type checks and linters
	Setup  Command // installs the dependencies of these
	Scope  []string
}

// Proposal chooses among the stacks: if there are several, a make, just or task
// target that tests everything; else the commands of the stack itself.
func (r Repo) Proposal() Proposal {
	judges, tools := r.stacksToPropose()
	var tests []*Command
	for _, s := range judges {
		tests = append(tests, s.Test)
	}
	checks := checksOf(judges)
	if len(checks) == 0 {
		checks = checksOf(tools)
	}
	setups := setupsOf(judges)
	if len(setups) == 0 {
		setups = setupsOf(tools)
	}
	return Proposal{
		Verify: joinCommands(tests...), Guard: joinCommands(append(tests, checks...)...), Setup: joinCommands(setups...),
		Scope: slices.Clone(r.Sources),
	}
}

// checksOf lists the type checks and linters of stacks.
func checksOf(stacks []Stack) []*Command {
	var all []*Command
	for _, s := range stacks {
		all = append(all, s.Typecheck, s.Lint)
	}
	return slices.DeleteFunc(all, isNil)
}

// setupsOf lists the set-up commands of the stacks that test or check something:
// others need no dependencies.
func setupsOf(stacks []Stack) []*Command {
	var all []*Command
	for _, s := range stacks {
		if s.Test != nil || s.Typecheck != nil || s.Lint != nil {
			all = append(all, s.Setup)
		}
	}
	return slices.DeleteFunc(all, isNil)
}

func isNil(c *Command) bool { return c == nil }

// stacksToPropose returns the stacks whose tests are proposed, and the stacks of
// languages, without make, just and task.
func (r Repo) stacksToPropose() (judges, tools []Stack) {
	var target *Stack
	tested := false
	for i, s := range r.Stacks {
		switch {
		case !slices.Contains(runners, s.Name):
			tools = append(tools, s)
			tested = tested || s.Test != nil
		case target == nil && s.Dir == "." && s.Test != nil:
			target = &r.Stacks[i]
		}
	}
	if target != nil && (len(tools) > 1 || !tested) {
		return []Stack{*target}, tools
	}
	return tools, tools
}

// sourceDirs are names of directories that always hold source.
var sourceDirs = []string{
	"src", "lib", "libs", "internal", "cmd", "pkg", "app", "apps", "packages", "crates", "components", "services",
	"modules", "server", "client", "web", "api", "core",
}

// supportDirs are names of directories with tests, scripts and configuration.
var supportDirs = []string{
	"test", "tests", "Tests", "spec", "specs", "e2e", "__tests__", "scripts", "script", "tools", "tool", "hack", "ci", "bench", "benchmarks",
	"migrations", "config", "public", "static", "assets",
}

// sourceSuffixes are those of files that people write.
var sourceSuffixes = []string{
	".go", ".py", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".vue", ".svelte", ".rs", ".java", ".kt", ".kts", ".scala", ".groovy",
	".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".fs", ".vb", ".rb", ".php", ".ex", ".exs", ".erl", ".swift", ".dart", ".zig", ".lua", ".sql",
}

const maxSources = 20

// sourceGlobs lists globs of the source files at the root and of the directories
// there that hold source, at most maxSources.
func sourceGlobs(folders []folder) []string {
	if len(folders) == 0 {
		return nil
	}
	var dirs []string
	for name := range folders[0].names {
		if folders[0].hasDir(name) && holdsSource(folders, name) {
			dirs = append(dirs, name+"/**")
		}
	}
	slices.Sort(dirs)
	suffixes := sourceSuffixes
	if len(dirs) > 0 {
		// Beside source directories, files of other languages are configuration.
		suffixes = []string{".go"}
	}
	var files []string
	for _, name := range folders[0].filesEndingIn(suffixes...) {
		files = append(files, "*"+path.Ext(name))
	}
	slices.Sort(files)
	all := append(slices.Compact(files), dirs...)
	return all[:min(len(all), maxSources)]
}

func holdsSource(folders []folder, name string) bool {
	if name[0] == '.' || slices.Contains(skippedDirs, name) || slices.Contains(supportDirs, name) || !isPlain(name) || strings.ContainsAny(name, `*?[]{}\!`) {
		return false
	}
	for _, f := range folders {
		if (f.dir == name || isAbove(name, f.dir)) && len(f.filesEndingIn(sourceSuffixes...)) > 0 {
			return true
		}
	}
	return slices.Contains(sourceDirs, name)
}
