package readiness

import "slices"

// Actuals is what past runs used, in tokens per run, beside what was estimated.
// A percentile is the smallest total that so many runs did not exceed.
type Actuals struct {
	Runs int
	P50  int64
	P95  int64

	// Ratio is P50 as a multiple of the estimate, 0 if there is none of either.
	Ratio float64

	// Drift is the median of the newest third of the runs as a multiple of that
	// of the oldest third, 0 if the oldest used nothing or there are no thirds.
	Drift float64

	// Drifted reports that the newest third uses at least twice what the oldest
	// did, in six runs or more: the loop does more than it was scoped for.
	Drifted bool
}

// driftRuns is how many runs it takes for thirds that say something.
const driftRuns = 6

// CompareActuals takes the tokens of past runs, the oldest first, and the TokensPerRun
// of an estimate. Every run counts: quiet ones, which use nothing, are for the
// caller to leave out.
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

// percentile is the value at the nearest rank, 0 of nothing.
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
