package gate_test

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestAGateThatCouldNotDoItsWorkIsToldFromOneThatFailed(t *testing.T) {
	silent := &loop.TestCounts{Format: "go"}
	for name, c := range map[string]struct {
		res      loop.GateResult
		writable bool
		why, fix string // parts; empty: it ran
	}{
		"it passes":                 {loop.GateResult{Pass: true}, false, "", ""},
		"it fails":                  {loop.GateResult{Exit: 1, Evidence: "1 failed, 3 passed"}, false, "", ""},
		"its program is not there":  {loop.GateResult{Exit: 127, Evidence: "sh: 1: jest: not found"}, false, "jest: not found", "install it, or correct verify"},
		"it may not be executed":    {loop.GateResult{Exit: 126}, false, "exit status 126", "install it"},
		"a module is missing":       {loop.GateResult{Exit: 1, Evidence: "/usr/bin/python3.12: No module named pytest"}, false, "No module named pytest", "setup"},
		"a test misses a module":    {loop.GateResult{Exit: 1, Evidence: "ModuleNotFoundError: No module named 'yaml'"}, false, "", ""},
		"a script is missing":       {loop.GateResult{Exit: 1, Evidence: "npm error Missing script: \"test\"\nnpm error"}, false, "Missing script", "package.json"},
		"a rule is missing":         {loop.GateResult{Exit: 2, Evidence: "make: *** No rule to make target 'test'.  Stop."}, false, "No rule to make target 'test'", "Makefile"},
		"a prerequisite is missing": {loop.GateResult{Exit: 2, Evidence: "make: *** No rule to make target 'a.c', needed by 'a.o'.  Stop."}, false, "", ""},
		"no module of Go":           {loop.GateResult{Exit: 1, Evidence: "go: go.mod file not found in current directory or any parent directory; see 'go help modules'"}, false, "go.mod file not found", "cd DIR"},
		"no package of Rust":        {loop.GateResult{Exit: 101, Evidence: "error: could not find `Cargo.toml` in `/w` or any parent directory"}, false, "Cargo.toml", "cd DIR"},
		"no tests reported":         {loop.GateResult{Tests: silent, Note: "no tests reported"}, false, "the base has no tests", "commit a test"},
		"the first may be written":  {loop.GateResult{Tests: silent, Note: "no tests reported"}, true, "", ""},
		"only skipped ones":         {loop.GateResult{Tests: &loop.TestCounts{Skipped: 2}}, false, "", ""},
		"it does not compile":       {loop.GateResult{Exit: 1, Tests: silent}, false, "", ""},
		"pytest found none":         {loop.GateResult{Exit: 5, Evidence: "===== no tests ran in 0.01s ====="}, false, "the base has no tests", "verify"},
		"jest found none":           {loop.GateResult{Exit: 1, Evidence: "No tests found, exiting with code 1\nRun with"}, false, "the base has no tests", "verify"},
		"unittest found none":       {loop.GateResult{Exit: 5, Evidence: "Ran 0 tests in 0.000s\n\nNO TESTS RAN"}, false, "the base has no tests", "verify"},
	} {
		t.Run(name, func(t *testing.T) {
			c.res.Name = "verify"
			scope := []string{"src/**"}
			if c.writable {
				scope = append(scope, "src/**/*_test.go")
			}
			why, fix := gate.Obstacle(c.res, loop.Definition{Scope: scope})
			if (why == "") != (c.why == "") || !strings.Contains(why, c.why) || !strings.Contains(fix, c.fix) {
				t.Errorf("obstacle = %q, %q; want %q, %q", why, fix, c.why, c.fix)
			}
		})
	}
}
