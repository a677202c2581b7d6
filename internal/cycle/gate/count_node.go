package gate

import (
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// nodeCount adds up the block with which node's runner ends, as TAP comments
// or as the spec reporter shows it. Its lines follow each other, from "tests"
// to "duration_ms"; a test that prints one of them counts nothing.
type nodeCount struct {
	sum
	block  sum
	inside bool
	tap    bool // the last line ended a block, and that in TAP
}

func (n *nodeCount) addLine(s string) {
	n.tap = false
	rest, tap := strings.CutPrefix(s, "# ")
	rest, spec := strings.CutPrefix(rest, "ℹ ")
	key, value, _ := strings.Cut(rest, " ")
	if tap == spec {
		n.inside = false
		return
	}
	if key == "duration_ms" && n.inside {
		n.block.spoke, n.inside, n.tap = true, false, tap
		n.add(n.block)
		return
	}
	count, ok := parseCount(value)
	if key == "tests" && ok {
		n.block, n.inside = sum{}, true
		return
	}
	n.inside = n.inside && ok && n.block.nodeLine(key, count)
}

func (s *sum) nodeLine(key string, n int) bool {
	switch key {
	case "suites":
	case "pass":
		s.passed += n
	case "fail", "cancelled":
		s.failed += n
	case "skipped", "todo":
		s.skipped += n
	default:
		return false
	}
	return true
}

func (n *nodeCount) counts() (loop.TestCounts, bool) { return n.countsOf("node") }

// jestCount adds up the line "Tests:" of jest. A suite that could not run reports
// no tests; if nothing else failed, it counts as a failed test.
type jestCount struct {
	sum
	suites int // failed suites of the current summary
}

func (j *jestCount) addLine(s string) {
	var n sum
	if rest, ok := strings.CutPrefix(s, "Test Suites:"); ok {
		readClauses(rest, ",", n.jestClause)
		j.suites = n.failed
		return
	}
	if strings.HasPrefix(s, "No tests found, exiting with code ") {
		j.spoke = true
		return
	}
	rest, ok := strings.CutPrefix(s, "Tests:")
	if !ok || !readClauses(rest, ",", n.jestClause) || !n.spoke {
		return
	}
	if n.failed == 0 {
		n.failed = j.suites
	}
	j.suites = 0
	j.add(n)
}

// jestClause takes one clause; the last one, the total, makes the line a summary.
func (s *sum) jestClause(n int, word string) bool {
	switch word {
	case "passed":
		s.passed += n
	case "failed":
		s.failed += n
	case "skipped", "pending", "todo":
		s.skipped += n
	case "total":
		s.spoke = true
	default:
		return false
	}
	return true
}

func (j *jestCount) counts() (loop.TestCounts, bool) { return j.countsOf("jest") }

// vitestCount adds up the line "Tests" of vitest, and counts files like jest's
// suites.
type vitestCount struct {
	sum
	files int // failed, of the summary at hand
}

func (v *vitestCount) addLine(s string) {
	s = strings.TrimSpace(s)
	if rest, ok := strings.CutPrefix(s, "Test Files  "); ok {
		n, _ := vitestSum(rest)
		v.files = n.failed
		return
	}
	if strings.HasPrefix(s, "No test files found, exiting with code ") {
		v.spoke = true
		return
	}
	rest, ok := strings.CutPrefix(s, "Tests  ")
	if !ok {
		return
	}
	n, ok := vitestSum(rest)
	if !ok {
		return
	}
	if n.failed == 0 {
		n.failed = v.files
	}
	v.files = 0
	v.add(n)
}

// vitestSum reads "1 failed | 2 passed (3)" and "no tests".
func vitestSum(s string) (sum, bool) {
	n := sum{spoke: true}
	s = strings.TrimSpace(s)
	if s == "no tests" {
		return n, true
	}
	s, _, total := strings.Cut(s, " (")
	ok := readClauses(s, "|", func(k int, word string) bool {
		if word == "expected fail" {
			word = "skipped"
		}
		return word != "total" && n.jestClause(k, word)
	})
	return n, ok && total
}

func (v *vitestCount) counts() (loop.TestCounts, bool) { return v.countsOf("vitest") }

// mochaCount adds up "3 passing (10ms)" and, in the lines right below, what is
// pending and failing.
type mochaCount struct {
	sum
	inside bool
}

func (m *mochaCount) addLine(s string) {
	digits, rest, _ := strings.Cut(strings.TrimSpace(s), " ")
	n, ok := parseCount(digits)
	switch {
	case ok && mochaPassing(rest):
		m.inside = true
		m.add(sum{passed: n, spoke: true})
	case ok && m.inside && rest == "pending":
		m.skipped += n
	case ok && m.inside && rest == "failing":
		m.failed += n
	default:
		m.inside = false
	}
}

// mochaPassing matches "passing (10ms)", with any unit.
func mochaPassing(s string) bool {
	s, ok := strings.CutPrefix(s, "passing (")
	s, closed := strings.CutSuffix(s, ")")
	unit := strings.TrimLeft(s, "0123456789")
	return ok && closed && unit != s && (unit == "ms" || unit == "s" || unit == "m" || unit == "h")
}

func (m *mochaCount) counts() (loop.TestCounts, bool) { return m.countsOf("mocha") }
