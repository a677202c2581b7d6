package gate

import (
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Counter reads the output of a gate and counts the tests in it. It takes the
// combined output in pieces of any size, keeps at most one line of it, and
// ignores colors. The zero Counter is ready to use.
//
// It knows the events of go test -json and the lines of go test -v; the summaries
// of pytest, unittest, node's runner, jest, vitest, mocha, cargo, dotnet and
// maven; and TAP 13 and 14. The counts of several runners in one gate are added,
// and the format is then "go+node". It counts nothing in other output.
//
// A count shows what ran, not who wrote the output: the code under test shares
// the output with its runner. Only go test -json separates what tests print from
// what the runner says, so that no test imitates a result by accident. Test code
// can deliberately forge every format, including that one. That is why judging
// files come from the base, and why a count can make a gate fail but never makes
// it pass.
type Counter struct {
	lines lines

	golang   goCount
	pytest   pytestCount
	unittest unittestCount
	node     nodeCount
	tap      tapCount
	jest     jestCount
	vitest   vitestCount
	mocha    mochaCount
	cargo    cargoCount
	dotnet   dotnetCount
	maven    mavenCount
}

// recognizer counts what one kind of runner prints.
type recognizer interface {
	// addLine takes the next line, as a terminal would show it.
	addLine(s string)
	// counts returns the sum so far, and whether its runner printed anything.
	counts() (loop.TestCounts, bool)
}

// Write takes all of p and never fails.
func (c *Counter) Write(p []byte) (int, error) {
	c.lines.cutLines(p, c.countLine, func([]byte) {})
	return len(p), nil
}

// Counts ends the last line and returns the counts of everything written, and
// whether a runner with a known format printed anything. A runner that reports
// zero tests counts too.
func (c *Counter) Counts() (loop.TestCounts, bool) {
	c.lines.endLine(c.countLine)
	var all loop.TestCounts
	var formats []string
	for _, r := range c.recognizers() {
		n, spoke := r.counts()
		if !spoke {
			continue
		}
		formats = append(formats, n.Format)
		all.Passed += n.Passed
		all.Failed += n.Failed
		all.Skipped += n.Skipped
	}
	all.Format = strings.Join(formats, "+")
	return all, len(formats) > 0
}

func (c *Counter) recognizers() [11]recognizer {
	return [...]recognizer{
		&c.golang, &c.pytest, &c.unittest, &c.node, &c.tap, &c.jest, &c.vitest, &c.mocha, &c.cargo, &c.dotnet, &c.maven,
	}
}

func (c *Counter) countLine(raw []byte) {
	if e, ok := parseEvent(raw); ok {
		c.golang.addEvent(e)
		return
	}
	s := visibleText(raw)
	for _, r := range c.recognizers() {
		r.addLine(s)
	}
	if c.node.tap {
		// Node sums up its own TAP, whose points would be counted twice.
		c.tap.dropStream()
	}
}

// sum is the counts of one format.
type sum struct {
	passed, failed, skipped int
	spoke                   bool
}

func (s *sum) add(o sum) {
	s.passed += o.passed
	s.failed += o.failed
	s.skipped += o.skipped
	s.spoke = s.spoke || o.spoke
}

// countsOf returns the sum as counts of a format, if its runner printed anything.
func (s *sum) countsOf(format string) (loop.TestCounts, bool) {
	if !s.spoke {
		return loop.TestCounts{}, false
	}
	return loop.TestCounts{Format: format, Passed: s.passed, Failed: s.failed, Skipped: s.skipped}, true
}

// readClauses reads "2 passed, 1 failed" by calling take for each clause. It
// reports whether all of it was of that form and taken.
func readClauses(s, separator string, take func(n int, word string) bool) bool {
	for clause := range strings.SplitSeq(s, separator) {
		digits, word, _ := strings.Cut(strings.TrimSpace(clause), " ")
		n, ok := parseCount(digits)
		if !ok || !take(n, strings.TrimSpace(word)) {
			return false
		}
	}
	return true
}

// readLabels is readClauses for "Passed: 2, Failed: 1".
func readLabels(s, separator, sign string, take func(word string, n int) bool) bool {
	for label := range strings.SplitSeq(s, separator) {
		word, digits, _ := strings.Cut(label, sign)
		n, ok := parseCount(strings.TrimSpace(digits))
		if !ok || !take(strings.TrimSpace(word), n) {
			return false
		}
	}
	return true
}

// parseCount parses a count of at most nine digits, so that sums cannot overflow.
func parseCount(s string) (int, bool) {
	if s == "" || len(s) > 9 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}
