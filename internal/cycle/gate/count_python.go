package gate

import (
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// pytestCount adds up the last lines of pytest, with or without their frame of
// equals signs. A test that is expected to fail gives no verdict and counts as
// skipped, so that marking a test does not keep the count.
type pytestCount struct {
	sum
	named
}

func (p *pytestCount) addLine(s string) {
	if name, failed, ok := pytestTest(s); ok {
		p.addName(name, failed)
		return
	}
	at := strings.LastIndex(s, " in ")
	if at < 0 || !isDuration(strings.Trim(s[at+4:], " =")) {
		return
	}
	body := strings.Trim(s[:at], " =")
	if body == "no tests ran" {
		p.spoke = true
		return
	}
	var n sum
	if readClauses(body, ",", n.pytestClause) && n.spoke {
		p.add(n)
	}
}

// pytestTest matches the line of a test, as -v prints it, with or without
// workers, and as the summary of -rA has it. Parameters are not part of the name,
// because they may be generated while the test runs.
func pytestTest(s string) (name string, failed, ok bool) {
	for _, verdict := range []string{"PASSED", "FAILED"} {
		before, after, found := strings.Cut(s, verdict)
		if !found {
			continue
		}
		id := strings.TrimSpace(before)
		if id == "" || strings.HasPrefix(id, "[gw") {
			id, _, _ = strings.Cut(strings.TrimSpace(after), " - ")
		}
		id, _, _ = strings.Cut(id, "[")
		if file, _, ok := strings.Cut(id, "::"); ok && strings.HasSuffix(file, ".py") && !strings.Contains(file, " ") {
			return id, verdict == "FAILED", true
		}
	}
	return "", false, false
}

// pytestClause takes one clause of pytest's last line. Warnings alone are no result,
// because linters end with the same words.
func (s *sum) pytestClause(n int, word string) bool {
	switch word {
	case "warning", "warnings":
		return true
	case "passed", "xpassed", "subtests passed":
		s.passed += n
	case "failed", "error", "errors", "subtests failed":
		s.failed += n
	case "skipped", "xfailed", "subtests skipped":
		s.skipped += n
	case "deselected", "rerun":
	default:
		return false
	}
	s.spoke = true
	return true
}

// isDuration matches "0.12s", "0.12 seconds" and "62.10s (0:01:02)".
func isDuration(s string) bool {
	s, _, _ = strings.Cut(s, " (")
	digits, ok := strings.CutSuffix(s, "s")
	if long, cut := strings.CutSuffix(s, " seconds"); cut {
		digits, ok = long, true
	}
	return ok && digits != "" && strings.Trim(digits, "0123456789.") == ""
}

func (p *pytestCount) counts() (loop.TestCounts, bool) { return p.countsOf("pytest") }

// unittestCount adds up the last lines of Python's unittest: how many tests ran,
// and in the next non-empty line their results.
type unittestCount struct {
	sum
	named
	title string // a test with a description, whose result is in a later line
	ran   int
	ended bool // "Ran 3 tests" was the last line
}

func (u *unittestCount) addLine(s string) {
	if n, ok := unittestRan(s); ok {
		u.ran, u.ended = n, true
		return
	}
	u.takeTest(s)
	if !u.ended || strings.TrimSpace(s) == "" {
		return
	}
	u.ended = false
	word, details, _ := strings.Cut(s, " (")
	if word != "OK" && word != "FAILED" && word != "NO TESTS RAN" {
		return
	}
	n := sum{spoke: true}
	if details = strings.TrimSuffix(details, ")"); details != "" && !readLabels(details, ",", "=", n.unittestLabel) {
		return
	}
	n.passed = max(0, u.ran-n.failed-n.skipped)
	u.add(n)
}

// takeTest takes "test_it (mod.Case.test_it) ... ok", or the two lines of a test
// with a description.
func (u *unittestCount) takeTest(s string) {
	title, verdict, ended := strings.Cut(s, " ... ")
	if isUnittest(title) {
		u.title = title
	}
	if !ended {
		return
	}
	if u.title != "" && (verdict == "ok" || verdict == "FAIL" || verdict == "ERROR") {
		u.addName(u.title, verdict != "ok")
	}
	u.title = ""
}

// isUnittest matches "test_it (mod.Case.test_it)".
func isUnittest(s string) bool {
	method, rest, ok := strings.Cut(s, " (")
	return ok && strings.HasPrefix(method, "test") && !strings.Contains(method, " ") && strings.HasSuffix(rest, ")")
}

func (s *sum) unittestLabel(word string, n int) bool {
	switch word {
	case "failures", "errors", "unexpected successes":
		s.failed += n
	case "skipped", "expected failures":
		s.skipped += n
	default:
		return false
	}
	return true
}

// unittestRan matches "Ran 3 tests in 0.001s".
func unittestRan(s string) (int, bool) {
	rest, ok := strings.CutPrefix(s, "Ran ")
	if !ok {
		return 0, false
	}
	tests, took, ok := strings.Cut(rest, " in ")
	if !ok || !isDuration(took) {
		return 0, false
	}
	digits, word, _ := strings.Cut(tests, " ")
	n, ok := parseCount(digits)
	return n, ok && (word == "test" || word == "tests")
}

func (u *unittestCount) counts() (loop.TestCounts, bool) { return u.countsOf("unittest") }
