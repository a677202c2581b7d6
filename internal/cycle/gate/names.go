package gate

import (
	"maps"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Bounds of what is remembered of names. A gate with more tests than maxKept is
// compared by counts alone.
const (
	maxNames  = 200_000
	maxKept   = 20_000
	maxName   = 1 << 10 // bytes; no test that a person names is longer
	maxBroken = 1000
)

// named holds the tests of one format by name.
type named struct {
	ran     map[string]struct{}
	failing map[string]struct{} // of ran
	lines   int                 // how many results had a name, including repeated names
}

// addName takes the name of a test that passed or failed.
func (n *named) addName(name string, failed bool) {
	n.lines++
	if name == "" || len(name) > maxName || len(n.ran) >= maxNames {
		return
	}
	if n.ran == nil {
		n.ran = map[string]struct{}{}
	}
	n.ran[name] = struct{}{}
	if failed {
		if n.failing == nil {
			n.failing = map[string]struct{}{}
		}
		n.failing[name] = struct{}{}
	}
}

// failedNames lists the tests that failed, with their format in front.
func (n *named) failedNames(format string) (list []string) {
	for name := range n.failing {
		list = append(list, format+" "+name)
	}
	return list
}

// prefixedNames lists the names with their format in front, or none if some tests that
// reported have no name.
func (n *named) prefixedNames(format string, ran int) []string {
	if n.lines < ran {
		return nil
	}
	list := make([]string, 0, len(n.ran))
	for name := range n.ran {
		list = append(list, format+" "+name)
	}
	return list
}

// Names ends the last line and returns the tests that reported, of the formats
// that name every test: go, cargo, TAP, pytest with -v or a summary of what
// passed, and unittest with -v. Call it after Counts.
func (c *Counter) Names() loop.TestNames {
	var names loop.TestNames
	for _, list := range [][]string{
		c.golang.testNames(),
		c.pytest.prefixedNames("pytest", c.pytest.passed+c.pytest.failed),
		c.unittest.prefixedNames("unittest", c.unittest.passed+c.unittest.failed),
		c.cargo.prefixedNames("cargo", c.cargo.passed+c.cargo.failed),
		c.tapNames(),
	} {
		names.Ran = append(names.Ran, list...)
	}
	slices.Sort(names.Ran)
	names.Failed = slices.Sorted(slices.Values(slices.Concat(c.golang.failedNames("go"), c.pytest.failedNames("pytest"),
		c.unittest.failedNames("unittest"), c.cargo.failedNames("cargo"), c.tap.failedNames("tap"))))
	names.Broken = slices.Sorted(maps.Keys(c.golang.broken))
	return names
}

// tapNames are the names of TAP, which node's runner prints too.
func (c *Counter) tapNames() []string {
	tap, spoke := c.tap.counts()
	node, nodeSpoke := c.node.counts()
	if !spoke && !nodeSpoke {
		return nil
	}
	return c.tap.prefixedNames("tap", tap.Ran()+node.Ran())
}

// Record returns what is kept of a gate's result for later runs on the same tree.
func Record(res loop.GateResult) loop.TestRecord {
	res.Took = 0 // A reused result takes no time.
	r := loop.TestRecord{Names: &res.Names, Result: &res}
	if res.Tests != nil {
		r.TestCounts = *res.Tests
	}
	if len(res.Names.Ran) > maxKept || len(res.Names.Failed) > maxKept || len(res.Names.Broken) > maxBroken {
		r.Names = &loop.TestNames{}
	}
	return r
}

// stableTitle returns the part of a title that is the same in every run: without
// parameters in brackets, and with # for digits.
func stableTitle(title string) string {
	if i := strings.IndexAny(title, "([{"); i >= 0 {
		title = title[:i]
	}
	if title = strings.TrimSpace(title); !strings.Contains(title, " ") {
		return title
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '#'
		}
		return r
	}, title))
}
