package schedule

import (
	"math/bits"
	"time"
)

// The rate of a cron expression is counted over four whole years with one leap year.
// They are constant, so that the rate does not depend on the current day.
const (
	rateFromYear = 2025
	rateDays     = 4*365 + 1
)

// PerDay returns how often the cadence fires in 24 hours on average. For cron it
// counts firings in UTC from the beginning of 2025 to the end of 2028. It is 0 for
// the zero Cadence, and for an expression whose dates are not in those four years,
// such as a 29 February that is a Sunday.
func (c Cadence) PerDay() float64 {
	switch {
	case c.every > 0:
		return float64(day) / float64(c.every)
	case c.cron == (cron{}):
		return 0
	}
	times := bits.OnesCount64(c.cron.minute) * bits.OnesCount64(c.cron.hour)
	return float64(c.cron.rateDates()*times) / rateDays
}

// rateDates counts the days of those years that match.
func (c *cron) rateDates() int {
	n := 0
	for months := range 4 * 12 {
		year, month := rateFromYear+months/12, time.Month(1+months%12)
		for date := 1; date <= daysIn(year, month); date++ {
			if c.matchDate(year, month, date) {
				n++
			}
		}
	}
	return n
}
