package bench

import (
	"fmt"
	"os"
	"slices"
	"strings"
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

// row is one line of the table.
type row struct{ measure, value, target, baseline, ratio string }

// BenchmarkTable prints the table once, whatever b.N is.
func BenchmarkTable(b *testing.B) {
	if b.N > 1 {
		return
	}
	var rows []row
	for _, measure := range []func(*testing.B) []row{
		coldStart, starts, quietRuns, wholeRunSmall, wholeProcess, wholeRunLarge, longHistory, bootRows, taskRows, specRows, boardRows, runsPerSecond, manyLiveRuns, manyLoops, killSwitch, crashToResumed, definitionsPerSecond, hostileDefinitions,
	} {
		rows = append(rows, measure(b)...)
	}
	print(rows)
}

func print(rows []row) {
	head := row{"measure", "measured", "target", "baseline", "ratio"}
	w := [5]int{}
	for _, r := range append([]row{head}, rows...) {
		for i, c := range r.cells() {
			w[i] = max(w[i], len([]rune(c)))
		}
	}
	line := func(r row) {
		for i, c := range r.cells() {
			fmt.Printf("| %s%s ", c, strings.Repeat(" ", w[i]-len([]rune(c))))
		}
		fmt.Println("|")
	}
	fmt.Println()
	line(head)
	fmt.Printf("|%s|%s|%s|%s|%s|\n", dashes(w[0]), dashes(w[1]), dashes(w[2]), dashes(w[3]), dashes(w[4]))
	for _, r := range rows {
		line(r)
	}
	fmt.Println()
}

func (r row) cells() [5]string { return [5]string{r.measure, r.value, r.target, r.baseline, r.ratio} }

func dashes(n int) string { return strings.Repeat("-", n+2) }

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
