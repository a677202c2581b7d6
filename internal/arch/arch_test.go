package arch

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// root is the top of the checkout.
var root = filepath.Join("..", "..")

func checkout(t *testing.T) []*source {
	t.Helper()
	packages, err := read(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

func TestEveryPackageKeepsToItsLevelAndItsPermissions(t *testing.T) {
	for _, sentence := range violations(table, checkout(t)) {
		t.Error(sentence)
	}
}

func TestTheCheckoutIsReallyRead(t *testing.T) {
	var names []string
	for _, p := range checkout(t) {
		names = append(names, p.name)
	}
	for _, name := range []string{"arch", "clock", "fault", "loop", "test/pgtest"} {
		if !slices.Contains(names, name) {
			t.Errorf("package %s was not read; read were %q", name, names)
		}
	}
}

func TestNoPackageHasTwoRows(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range table {
		if seen[r.name] {
			t.Errorf("two rows for %s", r.name)
		}
		seen[r.name] = true
		for _, neighbour := range append(slices.Clone(r.may), r.only...) {
			if _, ok := find(table, neighbour); !ok {
				t.Errorf("%s may import %s, which has no row", r.name, neighbour)
			}
		}
	}
}

func TestAnImportOfASamePackageInBothDirectionsIsNotAllowed(t *testing.T) {
	for _, r := range table {
		for _, name := range r.may {
			neighbour, _ := find(table, name)
			if neighbour.level != r.level || slices.Contains(neighbour.may, r.name) {
				t.Errorf("%s may import %s for no reason or in a circle", r.name, name)
			}
		}
	}
}

// TestTheRulesSeeWhatBreaksThem feeds the checker trees that are wrong in one
// way each: a rule that never fails would prove nothing.
func TestTheRulesSeeWhatBreaksThem(t *testing.T) {
	const here = `"github.com/pawl-run/pawl/internal/`
	cases := map[string]struct{ file, body, want string }{
		"a package that nobody planned":     {"util/util.go", "", "package util is not in the table: add a row"},
		"a leaf of a package that has none": {"gate/extra/x.go", "", "package gate/extra is not in the table"},
		"an import upwards":                 {"plan/x.go", "import _ " + here + `engine"`, "plan (level 1) imports engine (level 4): imports point to a lower level only"},
		"an import on the same level":       {"judging/x.go", "import _ " + here + `policy"`, "judging (level 1) imports policy (level 1)"},
		"a parent that imports its leaf":    {"agent/x.go", "import _ " + here + `agent/claude"`, "agent (level 2) imports agent/claude (level 2)"},
		"two leaves":                        {"agent/claude/x.go", "import _ " + here + `agent/codex"`, "imports agent/codex"},
		"two protocols":                     {"protocol/spine/x.go", "import _ " + here + `protocol/board"`, "imports protocol/board (level 5)"},
		"somebody who imports bench":        {"cli/x.go", "import _ " + here + `bench"`, "cli (level 10) imports bench"},
		"test support outside of tests":     {"engine/x.go", "import _ " + here + `test/pgtest"`, "imports test/pgtest, which is for tests only"},
		"a test that reaches upwards":       {"plan/x_test.go", "import _ " + here + `engine"`, "plan (level 1) imports engine (level 4) in a test"},
		"another platform's file":           {"plan/x_windows.go", "import _ " + here + `engine"`, "plan (level 1) imports engine"},
		"main that does more":               {"../cmd/pawl/main.go", "import _ " + here + `loop"`, "cmd/pawl imports loop, and may import cli only"},
		"a stage that imports much":         {"proc/stage/x.go", `import _ "fmt"`, "a stage may import os, runtime, syscall and golang.org/x/sys only"},
		"cgo":                               {"git/x.go", `import "C"`, "git uses cgo"},
		"a pure package with files":         {"plan/x.go", `import _ "os"`, "plan imports os, and a pure package does no I/O"},
		"a pure package that logs":          {"price/x.go", `import _ "log/slog"`, "price imports log/slog"},
		"a pure package on the network":     {"report/x.go", `import _ "net/http"`, "report imports net/http"},
		"a pure package that waits":         {"plan/x.go", "import \"time\"\nfunc f() { time.Sleep(1) }", "plan uses time.Sleep, and a pure package is told the time"},
		"a clock of one's own":              {"engine/x.go", "import \"time\"\nfunc f() time.Time { return time.Now() }", "engine uses time.Now: take a clock"},
		"a clock under another name":        {"engine/x.go", "import chrono \"time\"\nvar f = chrono.Since", "engine uses time.Since: take a clock"},
		"a clock without its name":          {"engine/x.go", `import . "time"`, "imports time with a dot"},
		"a regular expression at the start": {"engine/x.go", "import \"regexp\"\nvar f = regexp.MustCompile(`x`)", "engine uses regexp.MustCompile: lazyregexp"},
		"a process of one's own":            {"git/x.go", `import _ "os/exec"`, "git imports os/exec: only proc"},
		"a process by a system call":        {"git/x.go", "import \"syscall\"\nvar f = syscall.ForkExec", "git uses syscall.ForkExec: only proc"},
		"a database of one's own":           {"engine/x.go", `import _ "database/sql"`, "engine imports database/sql: only store"},
		"SQL":                               {"engine/x.go", "const q = `\nSELECT id\nFROM runs`", "engine has the SQL"},
		"SQL in pieces":                     {"engine/x.go", `var t = "x"; var q = "select " + t + " from " + t + " where"`, "engine has the SQL"},
		"an update":                         {"engine/x.go", `const q = "update runs set state = $1"`, "engine has the SQL"},
		"an insert":                         {"engine/x.go", `const q = "INSERT OR IGNORE INTO runs VALUES ($1)"`, "engine has the SQL"},
		"a delete":                          {"engine/x.go", `const q = "DELETE FROM runs"`, "engine has the SQL"},
		"a table":                           {"engine/x.go", `const q = "CREATE TABLE runs (id text)"`, "engine has the SQL"},
		"an init":                           {"engine/x.go", "func init() {}", "engine has an init function"},
		"a fault point declared twice":      {"engine/x.go", "import " + here + "fault\"\nvar p = fault.New(\"a.b\")\nvar q = fault.New(\"a.b\")", "declares the fault point a.b, which internal/engine/x.go:3 has"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := judged(t, map[string]string{c.file: c.body})
			if len(got) != 1 || !strings.Contains(got[0], c.want) {
				t.Errorf("said %q, want one sentence with %q", got, c.want)
			}
		})
	}
}

func TestTheRulesLeaveAloneWhatIsAllowed(t *testing.T) {
	const here = `"github.com/pawl-run/pawl/internal/`
	tree := map[string]string{
		"agent/claude/x.go":   "import _ " + here + `agent"`,
		"proc/x.go":           "import (\n_ " + here + "proc/stage\"\n_ \"os/exec\"\n\"time\"\n)\nvar f = time.Now",
		"proc/stage/x.go":     "import (\n_ \"os\"\n_ \"unsafe\"\n_ \"golang.org/x/sys/unix\"\n)\nfunc init() {}",
		"store/x.go":          "import _ \"database/sql\"\nconst q = `SELECT 1 FROM runs`",
		"store/x_test.go":     "import _ " + here + `test/pgtest"`,
		"engine/x.go":         "import (\n" + here + "fault\"\n\"time\"\n)\nvar p = fault.New(\"a.\" + side)\nvar d = time.Second\nfunc (t T) init() {}\ntype T int",
		"engine/x_test.go":    "import (\n_ \"os/exec\"\n\"time\"\n)\nvar now = time.Now",
		"plan/x.go":           `import _ "net/url"`,
		"cli/x.go":            "import _ " + here + "demo\"\nvar help = []string{\"Create a loop from a pattern\", \"Delete the table\", \"Update the loop, then set it off\"}",
		"bench/x.go":          "import _ " + here + `cli"`,
		"../cmd/pawl/main.go": "import _ " + here + `cli"`,
		"git/testdata/x.go":   `import _ "os/exec"`,
		"workspace/notes.txt": "not Go",
	}
	for _, sentence := range judged(t, tree) {
		t.Error(sentence)
	}
}

// judged reads a tree of files below internal/ and returns what the rules say.
func judged(t *testing.T, bodies map[string]string) []string {
	t.Helper()
	tree := fstest.MapFS{
		"cmd/pawl/doc.go":     {Data: []byte("package main")},
		"internal/arch/go.go": {Data: []byte("package arch")},
	}
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		file := filepath.ToSlash(filepath.Join("internal", name))
		tree[file] = &fstest.MapFile{Data: []byte("package x\n" + bodies[name])}
	}
	packages, err := read(tree)
	if err != nil {
		t.Fatal(err)
	}
	return violations(table, packages)
}
