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
	for _, name := range []string{"arch", "ground/clock", "ground/fault", "rules/loop", "test/pgtest"} {
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
		for _, neighbour := range r.only {
			if _, ok := find(table, neighbour); !ok {
				t.Errorf("%s may import %s, which has no row", r.name, neighbour)
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
		"a leaf of a package that has none": {"cycle/gate/extra/x.go", "", "package cycle/gate/extra is not in the table"},
		"an import upwards":                 {"rules/plan/x.go", "import _ " + here + `cycle/engine"`, "rules/plan imports cycle/engine: a package imports from its own folder"},
		"an import of a folder beside":      {"record/store/x.go", "import _ " + here + `confine/workspace"`, "record/store imports confine/workspace"},
		"two formats":                       {"formats/spine/x.go", "import _ " + here + `formats/spec"`, "formats/spine imports formats/spec"},
		"a product that measures":           {"surface/cli/x.go", "import _ " + here + `bench"`, "surface/cli imports bench"},
		"test support outside of tests":     {"cycle/engine/x.go", "import _ " + here + `test/pgtest"`, "imports test/pgtest, which is for tests only"},
		"a test that reaches upwards":       {"rules/plan/x_test.go", "import _ " + here + `cycle/engine"`, "rules/plan imports cycle/engine in a test"},
		"another platform's file":           {"rules/plan/x_windows.go", "import _ " + here + `cycle/engine"`, "rules/plan imports cycle/engine"},
		"main that does more":               {"../cmd/pawl/main.go", "import _ " + here + `rules/loop"`, "cmd/pawl imports rules/loop, and may import surface/cli only"},
		"a stage that imports much":         {"ground/proc/stage/x.go", `import _ "fmt"`, "a stage may import os, runtime, syscall and golang.org/x/sys only"},
		"cgo":                               {"git/x.go", `import "C"`, "git uses cgo"},
		"a pure package with files":         {"rules/plan/x.go", `import _ "os"`, "rules/plan imports os, and a pure package does no I/O"},
		"a pure package that logs":          {"rules/price/x.go", `import _ "log/slog"`, "rules/price imports log/slog"},
		"a pure package of another folder":  {"formats/boards/board/x.go", `import _ "net/http"`, "formats/boards/board imports net/http"},
		"a pure package that waits":         {"rules/plan/x.go", "import \"time\"\nfunc f() { time.Sleep(1) }", "rules/plan uses time.Sleep, and a pure package is told the time"},
		"a clock of one's own":              {"cycle/engine/x.go", "import \"time\"\nfunc f() time.Time { return time.Now() }", "cycle/engine uses time.Now: take a clock"},
		"a clock under another name":        {"cycle/engine/x.go", "import chrono \"time\"\nvar f = chrono.Since", "cycle/engine uses time.Since: take a clock"},
		"a clock without its name":          {"cycle/engine/x.go", `import . "time"`, "imports time with a dot"},
		"a regular expression at the start": {"cycle/engine/x.go", "import \"regexp\"\nvar f = regexp.MustCompile(`x`)", "cycle/engine uses regexp.MustCompile: lazyregexp"},
		"a process of one's own":            {"git/x.go", `import _ "os/exec"`, "git imports os/exec: only proc"},
		"a process by a system call":        {"git/x.go", "import \"syscall\"\nvar f = syscall.ForkExec", "git uses syscall.ForkExec: only proc"},
		"a database of one's own":           {"cycle/engine/x.go", `import _ "database/sql"`, "cycle/engine imports database/sql: only store"},
		"SQL":                               {"cycle/engine/x.go", "const q = `\nSELECT id\nFROM runs`", "cycle/engine has the SQL"},
		"SQL in pieces":                     {"cycle/engine/x.go", `var t = "x"; var q = "select " + t + " from " + t + " where"`, "cycle/engine has the SQL"},
		"an update":                         {"cycle/engine/x.go", `const q = "update runs set state = $1"`, "cycle/engine has the SQL"},
		"an insert":                         {"cycle/engine/x.go", `const q = "INSERT OR IGNORE INTO runs VALUES ($1)"`, "cycle/engine has the SQL"},
		"a delete":                          {"cycle/engine/x.go", `const q = "DELETE FROM runs"`, "cycle/engine has the SQL"},
		"a table":                           {"cycle/engine/x.go", `const q = "CREATE TABLE runs (id text)"`, "cycle/engine has the SQL"},
		"an init":                           {"cycle/engine/x.go", "func init() {}", "cycle/engine has an init function"},
		"a fault point declared twice":      {"cycle/engine/x.go", "import " + here + "ground/fault\"\nvar p = fault.New(\"a.b\")\nvar q = fault.New(\"a.b\")", "declares the fault point a.b, which internal/cycle/engine/x.go:3 has"},
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
		"agents/agent/claude/x.go": "import _ " + here + `agents/agent"`,
		"agents/turn/x.go":         "import _ " + here + `rules/loop"`,
		"formats/boot/x.go":        "import _ " + here + `formats/boot/bootlink"`,
		"ground/proc/x.go":         "import (\n_ " + here + "ground/proc/stage\"\n_ \"os/exec\"\n\"time\"\n)\nvar f = time.Now",
		"ground/proc/stage/x.go":   "import (\n_ \"os\"\n_ \"unsafe\"\n_ \"golang.org/x/sys/unix\"\n)\nfunc init() {}",
		"record/store/x.go":        "import _ \"database/sql\"\nconst q = `SELECT 1 FROM runs`",
		"record/store/x_test.go":   "import _ " + here + `test/pgtest"`,
		"cycle/engine/x.go":        "import (\n" + here + "ground/fault\"\n\"time\"\n)\nvar p = fault.New(\"a.\" + side)\nvar d = time.Second\nfunc (t T) init() {}\ntype T int",
		"cycle/engine/x_test.go":   "import (\n_ \"os/exec\"\n\"time\"\n)\nvar now = time.Now",
		"rules/plan/x.go":          `import _ "net/url"`,
		"surface/cli/x.go":         "import _ " + here + "verbs/demo\"\nvar help = []string{\"Create a loop from a pattern\", \"Delete the table\", \"Update the loop, then set it off\"}",
		"bench/x.go":               "import _ " + here + `surface/cli"`,
		"../cmd/pawl/main.go":      "import _ " + here + `surface/cli"`,
		"git/testdata/x.go":        `import _ "os/exec"`,
		"confine/notes.txt":        "not Go",
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
