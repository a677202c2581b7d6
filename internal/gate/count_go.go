package gate

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/pawl-run/pawl/internal/loop"
)

// event is what go test -json prints in one line.
type event struct {
	Action     string
	Package    string
	Test       string
	ImportPath string
	Output     string
}

// parseEvent reads one line as an event of go test, and only as that: other
// JSON is none of its business.
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

// maxPackages bounds the packages that are remembered at a time.
const maxPackages = 4096

// goCount counts every test, subtest, example and fuzz seed that ended, each
// once, so that a parent counts beside its subtests on the base as well as on
// the candidate. A package that failed without a failed test in it (it did not
// build, or its process died) counts as one that failed.
type goCount struct {
	sum
	guilty  map[string]struct{} // packages under test that have a failed test
	verbose bool                // "=== RUN" was seen outside of events
}

func (g *goCount) event(e event) {
	if e.Test == "" {
		g.packageEnded(e)
		return
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

func (g *goCount) packageEnded(e event) {
	switch e.Action {
	case "fail":
		if _, known := g.guilty[e.Package]; !known {
			g.failed++
		}
	case "pass", "skip":
	default:
		return
	}
	g.spoke = true
	delete(g.guilty, e.Package)
}

// line counts what go test -v says of each test. Without -v only failures are
// printed, of which no count can be made: nothing is counted before a test is
// announced.
func (g *goCount) line(s string) {
	if strings.HasPrefix(s, "=== RUN ") {
		g.verbose, g.spoke = true, true
		return
	}
	if !g.verbose {
		return
	}
	verdict, found := strings.CutPrefix(strings.TrimLeft(s, " "), "--- ")
	if !found || !strings.HasSuffix(s, "s)") {
		return
	}
	switch word, _, _ := strings.Cut(verdict, ": "); word {
	case "PASS":
		g.passed++
	case "FAIL":
		g.failed++
	case "SKIP":
		g.skipped++
	}
}

func (g *goCount) counts() (loop.TestCounts, bool) { return g.named("go") }
