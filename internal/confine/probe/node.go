package probe

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// packageJSON is the part of a package.json that is read.
type packageJSON struct {
	PackageManager  string            `json:"packageManager"`
	Scripts         map[string]string `json:"scripts"`
	Workspaces      json.RawMessage   `json:"workspaces"`
	Dependencies    map[string]string `json:"dependencies"`
	DevDependencies map[string]string `json:"devDependencies"`
}

// manager has the commands of one package manager.
type manager struct {
	name      string
	locks     []string
	frozen    string // installs what the lockfile says
	install   string // installs without one
	run       string // runs a script
	exec      string // runs a program of a dependency
	workspace string // runs the test script of every package that has one
}

// managers, in the order in which lockfiles are looked for.
var managers = []manager{
	{
		name: "pnpm", locks: []string{"pnpm-lock.yaml"}, frozen: "pnpm install --frozen-lockfile", install: "pnpm install",
		run: "pnpm run ", exec: "pnpm exec ", workspace: "pnpm -r run test",
	},
	{
		name: "bun", locks: []string{"bun.lock", "bun.lockb"}, frozen: "bun install --frozen-lockfile", install: "bun install",
		run: "bun run ", exec: "bunx ", workspace: "bun run --filter '*' test",
	},
	{
		name: "yarn", locks: []string{"yarn.lock"}, frozen: "yarn install --immutable", install: "yarn install",
		run: "yarn run ", exec: "yarn run ", workspace: "yarn workspaces foreach --all run test",
	},
	{
		name: "npm", locks: []string{"package-lock.json", "npm-shrinkwrap.json"}, frozen: "npm ci", install: "npm install",
		run: "npm run ", exec: "npx ", workspace: "npm test --workspaces --if-present",
	},
}

func nodeStack(p *place) *found {
	var pkg packageJSON
	if !p.decode("package.json", &pkg) {
		return nil
	}
	m := managerOf(p, pkg)
	f := p.newStack("node", m.name, "package.json")
	f.Lockfile = p.findLockfile(m.locks...)
	f.covers = len(pkg.Workspaces) > 0 || p.has("pnpm-workspace.yaml")
	if f.covers {
		f.all = p.command(m.workspace, "package.json workspaces")
	}
	switch {
	case f.Lockfile != "":
		f.Setup = p.command(m.frozen, path.Base(f.Lockfile))
	case len(pkg.Dependencies)+len(pkg.DevDependencies) > 0 || f.covers:
		f.Setup = p.command(m.install, "package.json dependencies, no lockfile")
	}
	switch test := pkg.Scripts["test"]; {
	case test == "" || strings.Contains(test, "no test specified"):
		// What npm writes into a new manifest is not a test.
	case keepsWatching(test):
		f.Test = scriptCommand(p, pkg, m, "test:ci", "test:run", "test:unit")
	default:
		line := m.name + " test"
		if m.name == "bun" {
			line = "bun run test"
		}
		if strings.Contains(test, "react-scripts test") {
			line = "CI=true " + line
		}
		f.Test = p.command(line, "package.json scripts.test")
	}
	f.Lint = scriptCommand(p, pkg, m, "lint")
	f.Typecheck = scriptCommand(p, pkg, m, "typecheck", "type-check", "check-types", "tsc")
	hasTypeScript := pkg.Dependencies["typescript"] != "" || pkg.DevDependencies["typescript"] != ""
	if f.Typecheck == nil && p.has("tsconfig.json") && hasTypeScript {
		// Without the dependency npx would fetch a package that is only called tsc.
		f.Typecheck = p.command(m.exec+"tsc --noEmit", "tsconfig.json")
	}
	f.Build = scriptCommand(p, pkg, m, "build")
	return f
}

// managerOf returns the package manager that the manifest names; else the one whose
// lockfile exists; else npm.
func managerOf(p *place, pkg packageJSON) manager {
	named, version, _ := strings.Cut(pkg.PackageManager, "@")
	chosen := slices.IndexFunc(managers, func(m manager) bool { return m.name == named })
	if chosen < 0 {
		chosen = slices.IndexFunc(managers, func(m manager) bool { return p.firstOf(m.locks...) != "" })
	}
	if chosen < 0 {
		return managers[len(managers)-1]
	}
	m := managers[chosen]
	if m.name == "yarn" && isClassicYarn(p, version) {
		m.frozen = "yarn install --frozen-lockfile"
		m.workspace = "yarn workspaces run test"
	}
	return m
}

// isClassicYarn reports whether yarn is version 1, which has other flags.
func isClassicYarn(p *place, version string) bool {
	if version != "" {
		return strings.HasPrefix(version, "1.")
	}
	if p.has(".yarnrc.yml") {
		return false
	}
	data, ok := p.read("yarn.lock")
	return ok && !strings.Contains(string(data), "__metadata:")
}

func keepsWatching(text string) bool {
	return strings.Contains(text, "--watch") && !strings.Contains(text, "--watch=false") && !strings.Contains(text, "--watchAll=false")
}

// scriptCommand runs the first of the scripts that exists and does not keep watching.
func scriptCommand(p *place, pkg packageJSON, m manager, names ...string) *Command {
	for _, name := range names {
		if text := pkg.Scripts[name]; text != "" && !keepsWatching(text) {
			return p.command(m.run+name, "package.json scripts."+name)
		}
	}
	return nil
}

// denoStack prefers a task named test to deno's own command.
func denoStack(p *place) *found {
	name := p.firstOf("deno.json", "deno.jsonc")
	if name == "" {
		return nil
	}
	var config struct {
		Tasks map[string]json.RawMessage `json:"tasks"`
	}
	// A deno.jsonc may have comments, which the JSON parser refuses.
	if name == "deno.json" && !p.decode(name, &config) {
		return nil
	}
	f := p.newStack("deno", "deno", name)
	f.covers = true
	f.Lockfile = p.findLockfile("deno.lock")
	f.Setup = p.commandIf(f.Lockfile != "", "deno install --frozen", "deno.lock")
	f.Test = p.command("deno test", name)
	if config.Tasks["test"] != nil {
		f.Test = p.command("deno task test", name+" tasks.test")
	}
	f.Lint = p.command("deno lint", name)
	f.Typecheck = p.command("deno check .", name)
	return f
}
