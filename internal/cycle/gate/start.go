package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// obstacles are what interpreters and runners print that could not run any test, with
// the fix. They match whole lines, because a test may print the same in its output.
var obstacles = []struct {
	line *lazyregexp.Regexp
	fix  string
}{
	{lazyregexp.New(`(?m)^\S*python[0-9.]*: (No module named .+)$`), "add it to what setup installs, install it, or correct %s"},
	{lazyregexp.New(`(?m)^npm (?:ERR!|error) (Missing script: .+)$`), "add the script to package.json, or correct %s"},
	{lazyregexp.New(`(?m)^make: \*\*\* (No rule to make target '[^']+')\.  Stop\.$`), "add the rule to the Makefile, or correct %s"},
	{lazyregexp.New(`(?m)^make: \*\*\* (No targets specified and no makefile found)\.  Stop\.$`), "add a Makefile, or correct %s"},
	{lazyregexp.New(`(?m)^go: (go\.mod file not found .+|cannot find main module.*)$`), "commit a go.mod, change to its folder first (cd DIR && …), or correct %s"},
	{lazyregexp.New(`(?m)^(error: could not find .Cargo\.toml. .+)$`), "change to the folder of Cargo.toml first (cd DIR && …), or correct %s"},
}

// noTests matches the messages of runners that fail because they found no tests.
var noTests = lazyregexp.New(`(?m)^(?:=+ )?(?:no tests ran in .+|NO TESTS RAN.*|No tests found, exiting with code 1)$`)

// Obstacle says why a gate could not do its work at all on a base, and how to fix it:
// its program or a part of it is missing, or there is no test. Both are empty if the
// gate ran, whatever it said, and if there are no tests but the scope of the definition
// names some, so that an agent may write the first.
func Obstacle(g loop.GateResult, d loop.Definition) (why, fix string) {
	writable := slices.ContainsFunc(d.Scope, policy.Judging)
	none := g.Exit == 0 && g.Tests != nil && g.Tests.Ran()+g.Tests.Skipped == 0 || !g.Pass && noTests.MatchString(g.Evidence)
	switch {
	case g.Pass:
		return "", ""
	case Missing(g):
		return strings.TrimSuffix(fmt.Sprintf("its program cannot be run (exit status %d): %s", g.Exit, g.Evidence), ": "), "install it, or correct " + g.Name
	case none && writable:
		return "", ""
	case none:
		return "the base has no tests", fmt.Sprintf("commit a test, allow tests by name in scope, or let %s run a command that has something to check", g.Name)
	}
	for _, o := range obstacles {
		if m := o.line.FindStringSubmatch(g.Evidence); m != nil {
			return m[1], fmt.Sprintf(o.fix, g.Name)
		}
	}
	return "", ""
}
