package gate

import (
	"strings"

	"github.com/pawl-run/pawl/internal/loop"
)

// tapCount counts the points of TAP 13 and 14, those of subtests and those of
// their parents, each once. A point with SKIP or TODO gives no verdict and
// counts as skipped. A point that the plan promised and that never came has
// failed, and so has a stream that bailed out.
//
// Lines like "ok 1" are TAP only if a version or a plan says so.
type tapCount struct {
	sum
	named
	stream tapStream
}

// tapStream is one run of one program, from its version or first point on.
type tapStream struct {
	sum
	version bool
	planned bool
	plan    int
	empty   bool   // the plan says that all was skipped
	points  int    // not those of subtests
	yaml    string // what ends the block of diagnostics at hand; empty outside
}

// real reports whether the stream is TAP and not something that looks like it.
func (t *tapStream) real() bool {
	return t.version || t.planned && t.points > 0 || t.empty
}

// complete reports whether all points came. Whatever looks like another one
// belongs to somebody else.
func (t *tapStream) complete() bool {
	return t.planned && t.points >= t.plan
}

// total is the sum of the stream, if it ends here.
func (t *tapStream) total() sum {
	n := t.sum
	n.spoke = true
	if t.planned {
		n.failed += max(0, t.plan-t.points)
	}
	return n
}

func (t *tapCount) line(s string) {
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
		t.diagnostics(strings.TrimSuffix(s, text) + "...")
	case top && (s == "TAP version 13" || s == "TAP version 14"):
		t.drain()
		t.stream.version = true
	case top && strings.HasPrefix(s, "Bail out!"):
		t.stream.failed++
	case top && strings.HasPrefix(s, "1.."):
		t.plan(s)
	default:
		t.point(text, top)
	}
}

// diagnostics begin only below a point, and end with their own indentation.
func (t *tapCount) diagnostics(end string) {
	if t.stream.points > 0 || t.stream.version {
		t.stream.yaml = end
	}
}

func (t *tapCount) plan(s string) {
	digits, why, _ := strings.Cut(strings.TrimPrefix(s, "1.."), " ")
	n, ok := number(digits)
	if !ok {
		return
	}
	if t.stream.planned {
		t.drain()
	}
	t.stream.planned, t.stream.plan = true, n
	t.stream.empty = n == 0 && givesNoVerdict(" "+why)
}

// point takes "ok 1 - title # SKIP why" and "not ok 2". Subtests are indented.
func (t *tapCount) point(s string, top bool) {
	rest, failed := strings.CutPrefix(s, "not ")
	rest, ok := strings.CutPrefix(rest, "ok")
	if !ok || rest != "" && rest[0] != ' ' {
		return
	}
	digits, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, numbered := number(digits)
	if !numbered && !t.stream.version {
		return
	}
	if t.stream.complete() || top && n == 1 && t.stream.points > 0 {
		t.drain()
	}
	if top {
		t.stream.points++
	}
	if !givesNoVerdict(rest) {
		t.saw(tapTitle(rest))
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

// tapTitle is what stands behind the number of a point.
func tapTitle(point string) string {
	title := strings.TrimLeft(point, " 0123456789")
	title = strings.TrimPrefix(strings.TrimSpace(title), "- ")
	title, _, _ = strings.Cut(title, " #")
	return steady(title)
}

// givesNoVerdict reports whether a point ends in a directive. A hash in a
// title is escaped.
func givesNoVerdict(point string) bool {
	_, directive, ok := strings.Cut(strings.ToUpper(point), " #")
	directive = strings.TrimSpace(directive)
	return ok && (strings.HasPrefix(directive, "SKIP") || strings.HasPrefix(directive, "TODO"))
}

// drain ends the stream at hand.
func (t *tapCount) drain() {
	if t.stream.real() {
		t.add(t.stream.total())
	}
	t.drop()
}

// drop forgets the stream at hand.
func (t *tapCount) drop() { t.stream = tapStream{} }

func (t *tapCount) counts() (loop.TestCounts, bool) {
	all := t.sum
	if t.stream.real() {
		all.add(t.stream.total())
	}
	return all.countsOf("tap")
}
