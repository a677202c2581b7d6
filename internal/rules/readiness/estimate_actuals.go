package readiness

import "slices"

// Actuals compares the tokens per run of past runs with an estimate. Percentiles are
// by the nearest rank.
type Actuals struct {
	Runs int
	P50  int64
	P95  int64

	// Ratio is P50 as a multiple of the estimate, 0 if either is missing.
	Ratio float64

	// Drift is the median of the newest third of the runs as a multiple of that of
	// the oldest third, 0 if the oldest third used nothing or is empty.
	Drift float64

	// Drifted reports, for six runs or more, that the newest third used at least twice
	// as much as the oldest: the loop does more than it was planned for.
	Drifted bool
}

// driftRuns is the fewest runs whose thirds are compared.
const driftRuns = 6

// CompareActuals compares the tokens of past runs, oldest first, with the TokensPerRun
// of an estimate. Every run counts: the caller leaves out quiet ones, which use
// nothing.
func CompareActuals(totals []int64, estimated int64) Actuals {
	third := len(totals) / 3
	oldest := percentile(totals[:third], 50)
	newest := percentile(totals[len(totals)-third:], 50)
	a := Actuals{
		Runs: len(totals),
		P50:  percentile(totals, 50),
		P95:  percentile(totals, 95),
		// 2*oldest could overflow.
		Drifted: len(totals) >= driftRuns && newest > 0 && newest-oldest >= oldest,
	}
	a.Ratio = ratio(a.P50, estimated)
	a.Drift = ratio(newest, oldest)
	return a
}

// percentile returns the value at the nearest rank, 0 if there are no values.
func percentile(values []int64, percent int) int64 {
	if len(values) == 0 {
		return 0
	}
	rank := (len(values)*percent + 99) / 100
	return slices.Sorted(slices.Values(values))[rank-1]
}

func ratio(a, b int64) float64 {
	if b <= 0 {
		return 0
	}
	return float64(a) / float64(b)
}
