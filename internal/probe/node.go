package probe

import (
	"encoding/json"
	"strings"
)

// packageJSON is what matters of a package.json.
type packageJSON struct {
	PackageManager  string            `json:"packageManager"`
	Scripts         map[string]string `json:"scripts"`
	Workspaces      json.RawMessage   `json:"workspaces"`
	Dependencies    map[string]string `json:"dependencies"`
	DevDependencies map[string]string `json:"devDependencies"`
}

func (j packageJSON) depends(name string) bool {
	return j.Dependencies[name] != "" || j.DevDependencies[name] != ""
}

// manager is how one package manager is spoken to.
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
	f := p.stack("node", m.name, "package.json")
	f.Lockfile = p.lockfile(m.locks...)
	f.covers = len(pkg.Workspaces) > 0 || p.has("pnpm-workspace.yaml")
	if f.covers {
		f.all = p.command(m.workspace, "package.json workspaces")
	}
	f.Setup = nodeSetup(p, pkg, m, f)
	f.Test = nodeTest(p, pkg, m)
	f.Lint = script(p, pkg, m, "lint")
	f.Typecheck = nodeTypecheck(p, pkg, m)
	f.Build = script(p, pkg, m, "build")
	return f
}

// managerOf believes the manifest first, then the lockfile.
func managerOf(p *place, pkg packageJSON) manager {
	named, version, _ := strings.Cut(pkg.PackageManager, "@")
	chosen := managers[len(managers)-1]
	for _, m := range managers {
		if m.name == named {
			chosen = m
			break
		}
		if known(named) {
			continue
		}
		if p.first(m.locks...) != "" {
			chosen = m
			break
		}
	}
	if chosen.name == "yarn" && isClassicYarn(p, version) {
		chosen.frozen = "yarn install --frozen-lockfile"
		chosen.workspace = "yarn workspaces run test"
	}
	return chosen
}

func known(name string) bool {
	for _, m := range managers {
		if m.name == name {
			return true
		}
	}
	return false
}

// isClassicYarn tells version 1, which has other flags, from what came after.
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

func nodeSetup(p *place, pkg packageJSON, m manager, f *found) *Command {
	switch {
	case f.Lockfile != "":
		return p.command(m.frozen, strings.TrimPrefix(f.Lockfile, p.dir+"/"))
	case len(pkg.Dependencies)+len(pkg.DevDependencies) > 0 || f.covers:
		return p.command(m.install, "package.json dependencies, no lockfile")
	}
	return nil
}

// nodeTest is the test script, or one that ends by itself if that one watches.
// What npm writes into a new manifest is not a test.
func nodeTest(p *place, pkg packageJSON, m manager) *Command {
	text := pkg.Scripts["test"]
	switch {
	case text == "" || strings.Contains(text, "no test specified"):
		return nil
	case watches(text):
		return script(p, pkg, m, "test:ci", "test:run", "test:unit")
	}
	line := m.run + "test"
	if m.name != "bun" {
		line = m.name + " test"
	}
	if strings.Contains(text, "react-scripts test") {
		line = "CI=true " + line
	}
	return p.command(line, "package.json scripts.test")
}

func watches(text string) bool {
	return strings.Contains(text, "--watch") && !strings.Contains(text, "--watch=false") && !strings.Contains(text, "--watchAll=false")
}

func nodeTypecheck(p *place, pkg packageJSON, m manager) *Command {
	if c := script(p, pkg, m, "typecheck", "type-check", "check-types", "tsc"); c != nil {
		return c
	}
	// Without the dependency npx would fetch a package that is only called tsc.
	return p.when(p.has("tsconfig.json") && pkg.depends("typescript"), m.exec+"tsc --noEmit", "tsconfig.json")
}

// script is the first of the scripts that there is and that ends by itself.
func script(p *place, pkg packageJSON, m manager, names ...string) *Command {
	for _, name := range names {
		if text := pkg.Scripts[name]; text != "" && !watches(text) {
			return p.command(m.run+name, "package.json scripts."+name)
		}
	}
	return nil
}

// denoStack prefers tasks to what deno does by itself.
func denoStack(p *place) *found {
	name := p.first("deno.json", "deno.jsonc")
	if name == "" {
		return nil
	}
	var config struct {
		Tasks map[string]json.RawMessage `json:"tasks"`
	}
	// The other form may have comments, which only deno reads.
	if name == "deno.json" && !p.decode(name, &config) {
		return nil
	}
	f := p.stack("deno", "deno", name)
	f.covers = true
	f.Lockfile = p.lockfile("deno.lock")
	f.Setup = p.when(f.Lockfile != "", "deno install --frozen", "deno.lock")
	f.Test = p.command("deno test", name)
	if config.Tasks["test"] != nil {
		f.Test = p.command("deno task test", name+" tasks.test")
	}
	f.Lint = p.command("deno lint", name)
	f.Typecheck = p.command("deno check .", name)
	return f
}
