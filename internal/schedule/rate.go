package schedule

import (
	"math/bits"
	"time"
)

// The rate of a cron expression is counted over four whole years, one of them
// a leap year. They are constant: the rate of a text never depends on the day
// on which it is asked for.
const (
	rateFromYear = 2025
	rateDays     = 4*365 + 1
)

// PerDay is how often the cadence fires in 24 hours on average. Cron counts its
// firings in UTC from the beginning of 2025 to the end of 2028. The zero
// Cadence gives 0, and so does an expression for a date that those four years
// do not have, such as a 29 February that is a Sunday.
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

// rateDates is how many days of the counted years match.
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
