package gate

import (
	"fmt"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// uncounted is the note on a gate that looks like a test runner but whose output
// contains no counts.
const uncounted = "no test counts in its output: only the exit status counted"

// Judge compares what a gate counted with its exit status and with the counts of
// the same gate on the base; nil if nothing was counted there. It never turns a
// failure into a pass, and turns a pass into a failure if the output contradicts
// the exit status:
//
//   - tests failed all the same,
//   - none reported, or
//   - fewer reported than on the base. A gate that was counted on the base and
//     cannot be counted any more has reported none.
//
// Note then says why. A gate that was never counted is judged by its exit
// status alone. Judging twice changes nothing. Which tests reported is compared
// by Comparison.
func Judge(res loop.GateResult, base *loop.TestCounts) loop.GateResult {
	if base != nil {
		res.Base = new(*base)
	}
	if !res.Pass {
		return res
	}
	if why := findObjection(res.Tests, base); why != "" {
		res.Pass, res.Note = false, why
	}
	return res
}

// findObjection returns why an exit status of 0 is not believed; empty if it is.
func findObjection(tests, base *loop.TestCounts) string {
	before := 0
	if base != nil {
		before = base.Ran()
	}
	switch {
	case tests == nil && before > 0:
		return fmt.Sprintf("fewer tests reported than on the base: none could be counted, not %d", before)
	case tests == nil:
		return ""
	case tests.Failed > 0:
		return fmt.Sprintf("its output says that %d of %d tests failed, in spite of exit status 0", tests.Failed, tests.Ran())
	case tests.Ran() == 0 && tests.Skipped > 0:
		return fmt.Sprintf("no tests reported (%d skipped)", tests.Skipped)
	case tests.Ran() == 0:
		return "no tests reported"
	case tests.Ran() < before:
		return fmt.Sprintf("fewer tests reported than on the base: %d, not %d", tests.Ran(), before)
	}
	return ""
}
