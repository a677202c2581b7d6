package gate

import (
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// tapCount counts the points of TAP 13 and 14, those of subtests and those of
// their parents, each once. A point with SKIP or TODO gives no verdict and counts
// as skipped. A missing point of the plan counts as failed, and so does a stream
// that bailed out.
//
// Lines like "ok 1" are TAP only if there is a version or a plan.
type tapCount struct {
	sum
	named
	stream tapStream
}

// tapStream is the output of one run of a program, from its version or first
// point on.
type tapStream struct {
	sum
	version bool
	planned bool
	plan    int
	empty   bool   // the plan says that everything was skipped
	points  int    // excluding subtests
	yaml    string // the end of the current block of diagnostics; empty outside of one
}

// isTAP reports whether the stream really is TAP.
func (t *tapStream) isTAP() bool {
	return t.version || t.planned && t.points > 0 || t.empty
}

// isComplete reports whether all points of the plan have come. Further points
// belong to another stream.
func (t *tapStream) isComplete() bool {
	return t.planned && t.points >= t.plan
}

// totalSum returns the sum of the stream if it ends here.
func (t *tapStream) totalSum() sum {
	n := t.sum
	n.spoke = true
	if t.planned {
		n.failed += max(0, t.plan-t.points)
	}
	return n
}

func (t *tapCount) addLine(s string) {
	text := strings.TrimLeft(s, " ")
	top := len(text) == len(s)
	if top && text != "" {
		t.stream.yaml = ""
	}
	switch {
	case s == t.stream.yaml && s != "":
		t.stream.yaml = ""
	case t.stream.yaml != "":
	case !top && text == "---":
		t.beginDiagnostics(strings.TrimSuffix(s, text) + "...")
	case top && (s == "TAP version 13" || s == "TAP version 14"):
		t.endStream()
		t.stream.version = true
	case top && strings.HasPrefix(s, "Bail out!"):
		t.stream.failed++
	case top && strings.HasPrefix(s, "1.."):
		t.readPlan(s)
	default:
		t.addPoint(text, top)
	}
}

// beginDiagnostics begins a block of diagnostics, which is only valid below a
// point and ends with its own indentation.
func (t *tapCount) beginDiagnostics(end string) {
	if t.stream.points > 0 || t.stream.version {
		t.stream.yaml = end
	}
}

func (t *tapCount) readPlan(s string) {
	digits, why, _ := strings.Cut(strings.TrimPrefix(s, "1.."), " ")
	n, ok := parseCount(digits)
	if !ok {
		return
	}
	if t.stream.planned {
		t.endStream()
	}
	t.stream.planned, t.stream.plan = true, n
	t.stream.empty = n == 0 && givesNoVerdict(" "+why)
}

// addPoint takes "ok 1 - title # SKIP why" and "not ok 2". Subtests are indented.
func (t *tapCount) addPoint(s string, top bool) {
	rest, failed := strings.CutPrefix(s, "not ")
	rest, ok := strings.CutPrefix(rest, "ok")
	if !ok || rest != "" && rest[0] != ' ' {
		return
	}
	digits, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, numbered := parseCount(digits)
	if !numbered && !t.stream.version {
		return
	}
	if t.stream.isComplete() || top && n == 1 && t.stream.points > 0 {
		t.endStream()
	}
	if top {
		t.stream.points++
	}
	if !givesNoVerdict(rest) {
		t.addName(tapTitle(rest), failed)
	}
	switch {
	case givesNoVerdict(rest):
		t.stream.skipped++
	case failed:
		t.stream.failed++
	default:
		t.stream.passed++
	}
}

// tapTitle returns the title after the number of a point.
func tapTitle(point string) string {
	title := strings.TrimLeft(point, " 0123456789")
	title = strings.TrimPrefix(strings.TrimSpace(title), "- ")
	title, _, _ = strings.Cut(title, " #")
	return stableTitle(title)
}

// givesNoVerdict reports whether a point ends in a directive. A hash in a
// title is escaped.
func givesNoVerdict(point string) bool {
	_, directive, ok := strings.Cut(strings.ToUpper(point), " #")
	directive = strings.TrimSpace(directive)
	return ok && (strings.HasPrefix(directive, "SKIP") || strings.HasPrefix(directive, "TODO"))
}

// endStream ends the current stream.
func (t *tapCount) endStream() {
	if t.stream.isTAP() {
		t.add(t.stream.totalSum())
	}
	t.dropStream()
}

// dropStream discards the current stream.
func (t *tapCount) dropStream() { t.stream = tapStream{} }

func (t *tapCount) counts() (loop.TestCounts, bool) {
	all := t.sum
	if t.stream.isTAP() {
		all.add(t.stream.totalSum())
	}
	return all.countsOf("tap")
}
