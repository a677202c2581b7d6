package arch

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/test/drawn"
)

// groups is the map of the code: where a new line belongs. Each row of the table
// is in one group.
var groups = []struct {
	name, question string
	packages       []string
}{
	{"Words and rules", "What may follow what? What does a decision depend on? Everything here is a pure function.", []string{
		"loop", "plan", "policy", "judging", "invariant", "schedule", "readiness", "loopspec", "bootlink", "bootstate", "taskfile", "people", "board", "draft07", "report", "price", "pattern", "shell", "unprintable",
	}},
	{"Definitions", "Which formats are read, with which keys? What does a machine or a repository offer?", []string{
		"definition", "bootdef", "orgdef", "catalog", "config", "guidance", "bootrepo", "probe", "probe/toolchain",
	}},
	{"Record", "What is remembered, in which rows and files?", []string{
		"store", "event", "node", "accepted", "transcript", "projection", "memory",
	}},
	{"Git", "How is a repository read and changed, without running anything of its own?", []string{
		"git", "git/program", "git/object", "git/index", "git/gitdir", "git/gitconfig", "git/hazard", "git/mirror",
	}},
	{"Confinement", "In what do untrusted programs run, and what ends them?", []string{
		"proc", "proc/stage", "proc/guard", "proc/spawner", "proc/cgroup", "sandbox", "sandbox/stage", "sandbox/stage/selftest", "workspace", "workspace/filled", "workspace/toolset", "runenv",
	}},
	{"Agents and money", "Who works, with which key, and what does it cost?", []string{
		"agent", "agent/*", "turn", "envelope", "credential", "meter", "meter/model", "modelapi", "modeltool", "spend", "budget", "toolsocket",
	}},
	{"The cycle", "What does one run do from its trigger to its end?", []string{
		"engine", "protocol/*", "gate", "gatecheck", "effect", "forge", "notify", "webhook", "listen", "trigger", "queue", "sim", "orgsim", "boardsim",
	}},
	{"Surfaces", "What do people and programs ask for, and what do they see?", []string{
		"shape", "lookup", "runs", "loops", "approvals", "audit", "budgets", "memories", "nodes", "notices", "roster", "setup", "specs", "boots", "orgs", "boards", "demo", "compose", "daemon", "cli", "output", "httpguard", "api", "mcp", "mcp/frame", "mcp/registration", "client", "web", "tui", "cmd/pawl",
	}},
	{"Ground", "What does everything stand on: files that last, locks, the clock, secrets that stay hidden?", []string{
		"clock", "fault", "lazyregexp", "dirglob", "durable", "waiting", "flock", "safeopen", "redact", "jsontree",
	}},
	{"Proof", "How do we know? Nothing of the program imports these.", []string{
		"arch", "bench", "test/agente2e", "test/mutants", "test/mutants/mutant", "test/fakemodel", "test/modelcalls", "test/pgtest", "test/sample", "test/drawn", "test/sampled", "test/storetest", "test/gittest", "test/orgtree", "test/boardload", "test/verbtest", "test/agenttest", "test/hostile",
	}},
}

func TestEachPackageIsInOneGroupOfTheMap(t *testing.T) {
	in := map[string][]string{}
	for _, g := range groups {
		for _, name := range g.packages {
			in[name] = append(in[name], g.name)
			if !slices.ContainsFunc(table, func(r row) bool { return r.name == name }) {
				t.Errorf("the group %q has %s, which has no row in the table", g.name, name)
			}
		}
	}
	for _, r := range table {
		if n := len(in[r.name]); n != 1 {
			t.Errorf("%s is in %d groups of the map (%s), want 1", r.name, n, strings.Join(in[r.name], ", "))
		}
	}
}

func TestTheArchitectureDocumentHasThisMap(t *testing.T) {
	exists := map[string]bool{}
	for _, p := range checkout(t) {
		if r, ok := find(table, p.name); ok {
			exists[r.name] = true
		}
	}
	var b strings.Builder
	b.WriteString("| group | ask here | packages |\n|---|---|---|\n")
	for _, g := range groups {
		var names []string
		for _, name := range g.packages {
			if exists[name] {
				names = append(names, "`"+name+"`")
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", g.name, g.question, strings.Join(names, " "))
	}
	drawn.Sections(t, filepath.Join(root, "docs", "architecture.md"), map[string]string{"map": b.String()})
}
