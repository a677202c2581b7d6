package bench

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/test/pgtest"
)

// A child of the crash row is this same binary.
func TestMain(m *testing.M) {
	if os.Getenv(crashEnv) != "" {
		os.Exit(crashChild())
	}
	os.Exit(pgtest.Main(m))
}

// BenchmarkTable prints the table once, whatever b.N is.
func BenchmarkTable(b *testing.B) {
	if b.N > 1 {
		return
	}
	var rows []row
	for _, measure := range []func(*testing.B) []row{
		coldStart, starts, quietRuns, wholeRunSmall, wholeProcess, wholeRunLarge, longHistory, bootRows, taskRows, specRows, boardRows, runsPerSecond, manyLiveRuns, fewLoops, manyLoops, simulatedMonth, killSwitch, crashToResumed, definitionsPerSecond, hostileDefinitions,
	} {
		rows = append(rows, measure(b)...)
	}
	report(b, "table", rows)
}

// median of durations; the slice is sorted in place.
func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

func timed(fn func()) time.Duration {
	start := time.Now()
	fn()
	return time.Since(start)
}
