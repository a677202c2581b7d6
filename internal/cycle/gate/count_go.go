package gate

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// event is one line of the output of go test -json.
type event struct {
	Action     string
	Package    string
	Test       string
	ImportPath string
	Output     string
}

// parseEvent reads one line as an event of go test. It reports false for other JSON.
func parseEvent(line []byte) (event, bool) {
	var e event
	if !bytes.HasPrefix(line, []byte("{")) || !bytes.Contains(line, []byte(`"Action":"`)) {
		return e, false
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return e, false
	}
	switch e.Action {
	case "start", "run", "pause", "cont", "pass", "bench", "fail", "output", "skip", "attr", "artifacts":
		return e, e.Package != ""
	case "build-output", "build-fail":
		return e, e.ImportPath != ""
	}
	return e, false
}

// maxPackages bounds the packages that are remembered at the same time.
const maxPackages = 4096

// goCount counts every test, subtest, example and fuzz seed that ended, each
// once: a parent counts in addition to its subtests, both on the base and on the
// candidate. A package that failed without a failed test (it did not build, or
// its process died) counts as one failed test.
type goCount struct {
	sum
	named
	guilty  map[string]struct{} // packages under test that have a failed test
	broken  map[string]struct{} // packages that failed
	verbose bool                // "=== RUN" was seen outside of events
	pending []pendingTest       // tests of -v whose package is named in a later line
}

type pendingTest struct {
	name   string
	failed bool
}

func (g *goCount) addEvent(e event) {
	if e.Test == "" {
		g.endPackage(e)
		return
	}
	if (e.Action == "pass" || e.Action == "fail") && !strings.Contains(e.Test, "/") {
		g.addName(e.Package+"."+e.Test, e.Action == "fail")
	}
	switch e.Action {
	case "pass":
		g.passed++
	case "skip":
		g.skipped++
	case "fail":
		g.failed++
		if g.guilty == nil {
			g.guilty = map[string]struct{}{}
		}
		if len(g.guilty) < maxPackages {
			g.guilty[e.Package] = struct{}{}
		}
	}
}

func (g *goCount) endPackage(e event) {
	switch e.Action {
	case "fail":
		if _, known := g.guilty[e.Package]; !known {
			g.failed++
		}
		g.markBroken(e.Package)
	case "pass", "skip":
	default:
		return
	}
	g.spoke = true
	delete(g.guilty, e.Package)
}

// addLine counts the tests that go test -v reports. Without -v only failures are
// printed, which gives no count: nothing is counted before a test is announced.
func (g *goCount) addLine(s string) {
	if strings.HasPrefix(s, "=== RUN ") {
		g.verbose, g.spoke = true, true
		return
	}
	if !g.verbose {
		return
	}
	if pkg, ok := packageLine(s); ok {
		g.namePending(pkg)
		if strings.HasPrefix(s, "FAIL") {
			g.markBroken(pkg)
		}
		return
	}
	verdict, found := strings.CutPrefix(strings.TrimLeft(s, " "), "--- ")
	if !found || !strings.HasSuffix(s, "s)") {
		return
	}
	word, rest, _ := strings.Cut(verdict, ": ")
	if test, _, ok := strings.Cut(rest, " ("); ok && s[0] == '-' && (word == "PASS" || word == "FAIL") && len(g.pending) < maxNames {
		g.pending = append(g.pending, pendingTest{test, word == "FAIL"})
	}
	switch word {
	case "PASS":
		g.passed++
	case "FAIL":
		g.failed++
	case "SKIP":
		g.skipped++
	}
}

// packageLine parses the line that go test prints at the end of a package.
func packageLine(s string) (pkg string, ok bool) {
	f := strings.Split(s, "\t")
	if len(f) < 2 || strings.TrimSpace(f[0]) != "ok" && f[0] != "FAIL" {
		return "", false
	}
	pkg, _, _ = strings.Cut(f[1], " ")
	return pkg, pkg != ""
}

func (g *goCount) namePending(pkg string) {
	for _, test := range g.pending {
		g.addName(pkg+"."+test.name, test.failed)
	}
	g.pending = nil
}

func (g *goCount) markBroken(pkg string) {
	if g.broken == nil {
		g.broken = map[string]struct{}{}
	}
	if len(g.broken) <= maxBroken {
		g.broken[pkg] = struct{}{}
	}
}

// testNames returns the top-level tests of each package. Subtests may have names
// that are generated while they run.
func (g *goCount) testNames() []string {
	if len(g.pending) > 0 {
		return nil // Of these no package is known.
	}
	return g.prefixedNames("go", 0)
}

func (g *goCount) counts() (loop.TestCounts, bool) { return g.countsOf("go") }
