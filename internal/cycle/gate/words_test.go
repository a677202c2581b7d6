package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestEveryWordOfARunnersSumHasItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		output string
		want   loop.TestCounts
	}{
		"pytest": {
			"=== 1 passed, 2 xpassed, 3 subtests passed, 10 failed, 20 error, 30 subtests failed, 100 skipped, 200 xfailed, 300 subtests skipped, 7 deselected, 8 rerun, 9 warnings in 62.10s (0:01:02) ===\n",
			tests("pytest", 6, 60, 600),
		},
		"pytest, one warning":           {"1 passed, 2 errors, 1 warning in 0.12 seconds\n", tests("pytest", 1, 2, 0)},
		"pytest, only deselected":       {"5 deselected in 0.01s\n", tests("pytest", 0, 0, 0)},
		"pytest, only run again":        {"5 rerun in 0.01s\n", tests("pytest", 0, 0, 0)},
		"unittest":                      {"Ran 200 tests in 0.001s\n\nFAILED (failures=1, errors=2, skipped=10, expected failures=20, unexpected successes=4)\n", tests("unittest", 163, 7, 30)},
		"unittest, one":                 {"Ran 1 test in 0.001s\n\nOK\n", tests("unittest", 1, 0, 0)},
		"unittest, a test that fails":   {"Ran 1 test in 0.001s\n\nFAILED (errors=2)\n", tests("unittest", 0, 2, 0)},
		"node":                          {"# tests 1\n# suites 7\n# pass 1\n# fail 10\n# cancelled 20\n# skipped 100\n# todo 200\n# duration_ms 1.5\n", tests("node", 1, 30, 300)},
		"jest":                          {"Tests:       10 failed, 100 skipped, 200 pending, 300 todo, 1 passed, 611 total\n", tests("jest", 1, 10, 600)},
		"jest, broken suites":           {"Test Suites: 2 failed, 2 total\nTests:       1 passed, 1 total\n", tests("jest", 1, 2, 0)},
		"jest, a broken suite once":     {"Test Suites: 2 failed, 2 total\nTests:       1 passed, 1 total\nTests:       1 passed, 1 total\n", tests("jest", 2, 2, 0)},
		"jest, failures in a suite":     {"Test Suites: 2 failed, 2 total\nTests:       1 failed, 1 total\n", tests("jest", 0, 1, 0)},
		"vitest":                        {"      Tests  10 failed | 1 passed | 100 expected fail | 200 skipped | 300 todo (611)\n", tests("vitest", 1, 10, 600)},
		"vitest, a broken file once":    {" Test Files  2 failed (2)\n      Tests  1 passed (1)\n      Tests  1 passed (1)\n", tests("vitest", 2, 2, 0)},
		"vitest, no files":              {"No test files found, exiting with code 1\n", tests("vitest", 0, 0, 0)},
		"mocha, in milliseconds":        {"  3 passing (10ms)\n  100 pending\n  10 failing\n", tests("mocha", 3, 10, 100)},
		"mocha, in seconds":             {"  3 passing (2s)\n", tests("mocha", 3, 0, 0)},
		"mocha, in minutes":             {"  3 passing (2m)\n", tests("mocha", 3, 0, 0)},
		"mocha, in hours":               {"  3 passing (2h)\n", tests("mocha", 3, 0, 0)},
		"mocha, and what it lists":      {"  3 passing (2h)\n  something else\n  4 failing\n", tests("mocha", 3, 0, 0)},
		"cargo":                         {"test result: FAILED. 1 passed; 10 failed; 100 ignored; 7 measured; 8 filtered out; finished in 0.1s\n", tests("cargo", 1, 10, 100)},
		"cargo nextest":                 {"     Summary [   0.1s] 10 tests run: 1 passed (1 slow, 1 leaky), 10 failed (2 due to signals), 20 exec failed, 30 timed out, 100 skipped\n", tests("cargo", 1, 60, 100)},
		"dotnet":                        {"Failed!  - Failed:    10, Passed:     1, Skipped:   100, Total:   111, Duration: 12 ms - a.dll (net8.0)\n", tests("dotnet", 1, 10, 100)},
		"dotnet, all skipped":           {"Skipped!  - Failed:     0, Passed:     0, Skipped:     2, Total:     2, Duration: 12 ms - a.dll (net8.0)\n", tests("dotnet", 0, 0, 2)},
		"dotnet, no tests in it":        {"No test is available in /src/a.dll. Make sure that a test discoverer is registered.\n", tests("dotnet", 0, 0, 0)},
		"dotnet, both of its sums":      {"Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3, Duration: 12 ms - a.dll\nTest summary: total: 3, failed: 0, succeeded: 3, skipped: 0, duration: 1.0s\n", tests("dotnet", 3, 0, 0)},
		"maven":                         {"[ERROR] Tests run: 200, Failures: 10, Errors: 20, Skipped: 100, Flakes: 7\n", tests("maven", 70, 30, 100)},
		"maven, without a level":        {"Tests run: 3, Failures: 0, Errors: 0, Skipped: 0\n", tests("maven", 3, 0, 0)},
		"maven, more failed than ran":   {"Tests run: 1, Failures: 1, Errors: 1, Skipped: 0\n", tests("maven", 0, 2, 0)},
		"TAP 13":                        {"TAP version 13\nok\nnot ok\nok # todo later\n", tests("tap", 1, 1, 1)},
		"TAP 14":                        {"TAP version 14\nok\nok # Skip it\n", tests("tap", 1, 0, 1)},
		"TAP, all skipped":              {"1..0 # SKIP no network\n", tests("tap", 0, 0, 0)},
		"TAP, points that never came":   {"1..5\nok 1\nok 2\n", tests("tap", 2, 3, 0)},
		"TAP, a program after the next": {"1..1\nok 1\n1..1\nnot ok 1\n", tests("tap", 1, 1, 0)},
		"TAP, diagnostics":              {"1..2\nnot ok 1\n  ---\n  ok 2\n  not ok 3\n  ...\nok 2\n", tests("tap", 1, 1, 0)},
		"the events of two calls of go": {
			`{"Action":"fail","Package":"m","Test":"T"}` + "\n" + `{"Action":"fail","Package":"m"}` + "\n" + `{"Action":"fail","Package":"m"}` + "\n",
			tests("go", 0, 2, 0),
		},
		"a bench of go": {`{"Action":"bench","Package":"m","Test":"BenchmarkX"}` + "\n" + `{"Action":"pass","Package":"m"}` + "\n", tests("go", 0, 0, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := count([]byte(c.output)); got != c.want || !ok {
				t.Errorf("counts = %+v, %v, want %+v", got, ok, c.want)
			}
		})
	}
}

func TestASumWithAWordThatItsRunnerDoesNotUseIsNone(t *testing.T) {
	for name, output := range map[string]string{
		"pytest":                         "1 passed, 2 invented in 0.1s\n",
		"pytest, a time of no digits":    "1 passed in s\n",
		"pytest, a time of words":        "1 passed in a whiles\n",
		"unittest, a word":               "Ran 3 tests in 0.001s\n\nOK (invented=1)\n",
		"unittest, a line of others":     "3 tests in 0.001s\n\nOK\n",
		"go, an event that is indented":  `  {"Action":"pass","Package":"m","Test":"T"}` + "\n" + `  {"Action":"pass","Package":"m"}` + "\n",
		"unittest, what ran":             "Ran 3 miles in 0.001s\n\nOK\n",
		"unittest, a time":               "Ran 3 tests in time\n\nOK\n",
		"node":                           "# tests 3\n# invented 3\n# duration_ms 1\n",
		"node, two ways of writing":      "# tests 3\nℹ pass 3\n# ℹ duration_ms 1\n",
		"jest":                           "Tests:       1 invented, 2 passed, 3 total\n",
		"vitest":                         "      Tests  1 invented | 2 passed (3)\n",
		"vitest, the word of jest":       "      Tests  2 passed | 2 total (3)\n",
		"mocha, no unit":                 "  3 passing (10)\n",
		"mocha, another unit":            "  3 passing (10kg)\n",
		"mocha, no number":               "  3 passing (ms)\n",
		"mocha, an open bracket":         "  3 passing (10ms\n",
		"cargo nextest":                  "     Summary [   0.1s] 3 tests run: 3 invented\n",
		"cargo nextest, nothing ran":     "     Summary [   0.1s] all is fine\n",
		"cargo nextest, an open bracket": "     Summary [   0.1s] 3 tests run: 3 passed (1 slow\n",
		"dotnet, a word":                 "Passed!  - Invented:     3, Duration: 12 ms - a.dll\n",
		"dotnet, a verdict":              "Great!  - Failed:     0, Passed:     3, Skipped:     1, Total:     4, Duration: 12 ms - a.dll\n",
		"dotnet, a summary":              "Test summary: total: 4, invented: 3, duration: 1.0s\n",
		"maven":                          "Tests run: 3, Failures: 0, Invented: 0, Skipped: 0\n",
		"TAP, another version":           "TAP version 12\nok\n",
		"TAP, a plan of none":            "1..0\n",
		"TAP, subtests of nothing":       "1..1\n    ok\n",
		"go, a verdict without a name":   "--- PASS: TestA (0.00s)\n",
	} {
		t.Run(name, func(t *testing.T) {
			if n, ok := count([]byte(output)); ok {
				t.Errorf("counted %+v", n)
			}
		})
	}
}

func TestANumberOfNineDigitsIsTheLongestCount(t *testing.T) {
	if got, want := first(count([]byte("999999999 passed in 0.1s\n"))), tests("pytest", 999_999_999, 0, 0); got != want {
		t.Errorf("counts = %+v, want %+v", got, want)
	}
	if n, ok := count([]byte("1000000000 passed in 0.1s\n")); ok {
		t.Errorf("ten digits counted %+v", n)
	}
}

func TestAGateWithTooManyTestsIsComparedByCountsAlone(t *testing.T) {
	list := func(n int) []string { return make([]string, n) }
	for name, c := range map[string]struct {
		names loop.TestNames
		kept  bool
	}{
		"as many as are kept":           {loop.TestNames{Ran: list(20_000), Broken: list(1000)}, true},
		"one test more":                 {loop.TestNames{Ran: list(20_001)}, false},
		"one package that failed more":  {loop.TestNames{Broken: list(1001)}, false},
		"a gate that names no tests":    {loop.TestNames{}, true},
		"too many of both of the kinds": {loop.TestNames{Ran: list(20_001), Broken: list(1001)}, false},
	} {
		r := gate.Record(loop.GateResult{Tests: new(tests("go", 3, 0, 0)), Names: c.names})
		if kept := len(r.Names.Ran) == len(c.names.Ran) && len(r.Names.Broken) == len(c.names.Broken); kept != c.kept || r.TestCounts != tests("go", 3, 0, 0) {
			t.Errorf("%s: kept %v with %+v, want %v and the counts", name, kept, r.TestCounts, c.kept)
		}
	}
	if r := gate.Record(loop.GateResult{}); r.TestCounts != (loop.TestCounts{}) || r.Names == nil {
		t.Errorf("a gate without counts is recorded as %+v", r)
	}
	var broken strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&broken, `{"Action":"fail","Package":"m/p%d"}`+"\n", i)
	}
	var c gate.Counter
	if _, err := c.Write([]byte(broken.String())); err != nil {
		t.Fatal(err)
	}
	if n := len(c.Names().Broken); n != 1001 {
		t.Errorf("%d packages that failed are remembered, want one more than are kept", n)
	}
	if r := gate.Record(loop.GateResult{Names: c.Names()}); r.Names.Broken != nil {
		t.Errorf("%d packages are recorded of more", len(r.Names.Broken))
	}
}

func TestAPackageThatFailsUnderVIsRemembered(t *testing.T) {
	var c gate.Counter
	if _, err := c.Write([]byte("=== RUN   TestA\n--- PASS: TestA (0.00s)\nok  \tm/a\t0.1s\nFAIL\tm/b [build failed]\nFAIL\tm/c\t0.1s\nFAIL\n")); err != nil {
		t.Fatal(err)
	}
	c.Counts()
	if got := strings.Join(c.Names().Broken, " "); got != "m/b m/c" {
		t.Errorf("packages that failed: %q", got)
	}
}

func TestANameThatIsTooLongOrMissingLeavesTheOthersUnnamed(t *testing.T) {
	long := strings.Repeat("x", 1<<10)
	event := func(test string) string { return `{"Action":"pass","Package":"m","Test":"` + test + `"}` + "\n" }
	if got := named(event("TestA") + event(long[:len(long)-2])); len(got) != 2 {
		t.Errorf("with the longest name: %d names", len(got))
	}
	if got := named(event("TestA") + event(long[:len(long)-1])); len(got) != 1 || got[0] != "go m.TestA" {
		t.Errorf("with a name that is too long: %.80q", got)
	}
}
