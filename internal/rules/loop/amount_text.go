package loop

import (
	"fmt"
	"strings"
	"time"
)

// FormatAmount writes a number of one of Dimensions with its unit.
func FormatAmount(what string, n int64) string {
	switch what {
	case "micro_usd":
		return FormatDollars(n) + " USD"
	case "wall":
		return FormatDuration(time.Duration(n))
	case "output":
		what = "output tokens"
	}
	if n == 1 {
		what = strings.TrimSuffix(what, "s")
	}
	return fmt.Sprintf("%d %s", n, what)
}

// FormatDollars writes millionths of a dollar as dollars, exactly, with at least two
// digits after the point.
func FormatDollars(micro int64) string {
	text := fmt.Sprintf("%d.%06d", micro/1_000_000, max(micro%1_000_000, -(micro%1_000_000)))
	for range 4 {
		text = strings.TrimSuffix(text, "0")
	}
	if micro < 0 && micro > -1_000_000 {
		return "-" + text
	}
	return text
}

// FormatDuration writes a duration as exactly as people want it, without the zeros
// that Go writes at its end. Only a duration of zero is written as zero.
func FormatDuration(d time.Duration) string {
	for _, unit := range []time.Duration{time.Second, time.Millisecond} {
		if d.Abs() >= 60*unit {
			d = d.Truncate(unit)
			break
		}
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
