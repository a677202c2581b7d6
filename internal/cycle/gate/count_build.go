package gate

import (
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// cargoCount adds up the results of all test programs that cargo test ran, and
// the summaries of cargo nextest. Benchmarks are not tests.
type cargoCount struct {
	sum
	named
}

func (c *cargoCount) addLine(s string) {
	if name, failed, ok := cargoTest(s); ok {
		c.addName(name, failed)
		return
	}
	n := sum{spoke: true}
	if rest, ok := strings.CutPrefix(s, "test result: "); ok {
		_, rest, _ = strings.Cut(rest, ". ")
		rest, _, _ = strings.Cut(rest, "; finished in ")
		if readClauses(rest, ";", n.cargoClause) {
			c.add(n)
		}
		return
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(s), "Summary [")
	if !ok {
		return
	}
	_, rest, ok = strings.Cut(rest, " run: ")
	if ok && readClauses(withoutParentheses(rest), ",", n.cargoClause) {
		c.add(n)
	}
}

// cargoTest matches "test tests::adds ... ok". A documentation test has its line
// number in its name, which any change above it alters.
func cargoTest(s string) (name string, failed, ok bool) {
	rest, ok := strings.CutPrefix(s, "test ")
	name, verdict, ended := strings.Cut(rest, " ... ")
	if !ok || !ended || verdict != "ok" && verdict != "FAILED" {
		return "", false, false
	}
	name = strings.TrimSuffix(name, " - should panic")
	if strings.Contains(name, " (line ") {
		name = stableTitle(name)
	}
	return name, verdict == "FAILED", true
}

func (s *sum) cargoClause(n int, word string) bool {
	switch word {
	case "passed":
		s.passed += n
	case "failed", "exec failed", "timed out":
		s.failed += n
	case "ignored", "skipped":
		s.skipped += n
	case "measured", "filtered out":
	default:
		return false
	}
	return true
}

// withoutParentheses drops text in parentheses: "3 passed (1 slow, 1 flaky), 1
// failed".
func withoutParentheses(s string) string {
	for {
		before, rest, ok := strings.Cut(s, "(")
		_, after, closed := strings.Cut(rest, ")")
		if !ok || !closed {
			return s
		}
		s = before + after
	}
}

func (c *cargoCount) counts() (loop.TestCounts, bool) { return c.countsOf("cargo") }

// dotnetCount adds up the line of each test assembly. If there is none, as with
// the terminal logger, it uses the summary of the build.
type dotnetCount struct {
	sum
	summary sum
}

func (d *dotnetCount) addLine(s string) {
	n := sum{spoke: true}
	if rest, ok := strings.CutPrefix(s, "Test summary: "); ok {
		rest, _, _ = strings.Cut(rest, ", duration: ")
		if readLabels(rest, ",", ":", n.dotnetLabel) {
			d.summary.add(n)
		}
		return
	}
	if strings.HasPrefix(s, "No test is available in ") {
		d.spoke = true
		return
	}
	verdict, rest, ok := strings.Cut(s, "!  - ")
	if !ok || verdict != "Passed" && verdict != "Failed" && verdict != "Skipped" {
		return
	}
	rest, _, _ = strings.Cut(rest, ", Duration: ")
	if readLabels(rest, ",", ":", n.dotnetLabel) {
		d.add(n)
	}
}

func (s *sum) dotnetLabel(word string, n int) bool {
	switch strings.ToLower(word) {
	case "passed", "succeeded":
		s.passed += n
	case "failed":
		s.failed += n
	case "skipped":
		s.skipped += n
	case "total":
	default:
		return false
	}
	return true
}

func (d *dotnetCount) counts() (loop.TestCounts, bool) {
	if d.spoke {
		return d.countsOf("dotnet")
	}
	return d.summary.countsOf("dotnet")
}

// mavenCount adds up the totals of Surefire and Failsafe, one per module. The
// totals include the lines of single classes, which also say how long they took.
type mavenCount struct{ sum }

func (m *mavenCount) addLine(s string) {
	if rest, ok := strings.CutPrefix(s, "["); ok {
		_, s, _ = strings.Cut(rest, "] ")
	}
	if s == "No tests to run." {
		m.spoke = true
		return
	}
	if !strings.HasPrefix(s, "Tests run: ") {
		return
	}
	n, ran := sum{spoke: true}, 0
	whole := readLabels(s, ",", ":", func(word string, k int) bool {
		switch word {
		case "Tests run":
			ran = k
		case "Failures", "Errors":
			n.failed += k
		case "Skipped":
			n.skipped += k
		case "Flakes":
		default:
			return false
		}
		return true
	})
	if whole && strings.Contains(s, "Skipped") {
		n.passed = max(0, ran-n.failed-n.skipped)
		m.add(n)
	}
}

func (m *mavenCount) counts() (loop.TestCounts, bool) { return m.countsOf("maven") }
