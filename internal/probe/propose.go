package probe

import (
	"path"
	"slices"
	"strings"
)

// Proposal is what a first loop that keeps tests green would be made of. A
// command with an empty line means that the repository names none, and an empty
// Scope that nothing looks like source; a person has to say it then.
type Proposal struct {
	Verify Command // the tests
	Guard  Command // the tests, then what judges without running the code
	Setup  Command // installs what these need
	Scope  []string
}

// Proposal chooses among the stacks: a target that tests everything where there
// are several stacks, the tool itself where there is one.
func (r Repo) Proposal() Proposal {
	judges, tools := r.judges()
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
		Verify: join(tests...), Guard: join(append(tests, checks...)...), Setup: join(setups...),
		Scope: slices.Clone(r.Sources),
	}
}

// checksOf are the commands that judge without running the code.
func checksOf(stacks []Stack) []*Command {
	var all []*Command
	for _, s := range stacks {
		all = append(all, s.Typecheck, s.Lint)
	}
	return slices.DeleteFunc(all, isNil)
}

// setupsOf are the commands that prepare for others: a stack that judges
// nothing needs no dependencies.
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

// judges are the stacks whose commands are proposed; tools are those of all
// languages.
func (r Repo) judges() (judges, tools []Stack) {
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

// usual are the names of directories that hold source wherever they appear.
var usual = []string{
	"src", "lib", "libs", "internal", "cmd", "pkg", "app", "apps", "packages", "crates", "components", "services",
	"modules", "server", "client", "web", "api", "core",
}

// beside are directories with code that judges or serves the project.
var beside = []string{
	"test", "tests", "Tests", "spec", "specs", "e2e", "__tests__", "scripts", "script", "tools", "tool", "hack", "ci", "bench", "benchmarks",
	"migrations", "config", "public", "static", "assets",
}

// sourceSuffixes are those of files that people write.
var sourceSuffixes = []string{
	".go", ".py", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".vue", ".svelte", ".rs", ".java", ".kt", ".kts", ".scala", ".groovy",
	".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".fs", ".vb", ".rb", ".php", ".ex", ".exs", ".erl", ".swift", ".dart", ".zig", ".lua", ".sql",
}

const maxSources = 20

// sources lists globs of the source files at the root and of the directories
// there that hold source, at most maxSources.
func sources(folders []folder) []string {
	if len(folders) == 0 {
		return nil
	}
	var dirs []string
	for name := range folders[0].names {
		if folders[0].hasDir(name) && isSource(folders, name) {
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
	for _, name := range folders[0].matching(suffixes...) {
		files = append(files, "*"+path.Ext(name))
	}
	slices.Sort(files)
	all := append(slices.Compact(files), dirs...)
	return all[:min(len(all), maxSources)]
}

func isSource(folders []folder, name string) bool {
	if name[0] == '.' || slices.Contains(skipped, name) || slices.Contains(beside, name) || !plain(name) || strings.ContainsAny(name, `*?[]{}\!`) {
		return false
	}
	for _, f := range folders {
		if (f.dir == name || contains(name, f.dir)) && len(f.matching(sourceSuffixes...)) > 0 {
			return true
		}
	}
	return slices.Contains(usual, name)
}
