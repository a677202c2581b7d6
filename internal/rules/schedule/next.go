package schedule

import (
	"math/bits"
	"time"
)

// maxYear is the last year of the calendar that is searched.
const maxYear = 9999

// cycleMonths is how far nextWall searches: after 400 years the calendar repeats.
const cycleMonths = 400 * 12

var firstOfCycle = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// Wall times are time.Time values in UTC with the fields that a clock in the zone
// shows. They are not instants.

// nextWall is the first matching wall minute at or after wall, which must be a
// whole minute. It reports false if there is none in 400 years.
func (c *cron) nextWall(wall time.Time) (time.Time, bool) {
	year, month, date := wall.Date()
	if c.matchDate(year, month, date) {
		if h, m, ok := c.nextClock(wall.Hour(), wall.Minute()); ok {
			return time.Date(year, month, date, h, m, 0, 0, time.UTC), true
		}
	}
	from := date + 1
	for range cycleMonths + 1 {
		if d, ok := c.dateFrom(year, month, from); ok {
			h, m, _ := c.nextClock(0, 0)
			return time.Date(year, month, d, h, m, 0, 0, time.UTC), true
		}
		from = 1
		if month++; month > time.December {
			year, month = year+1, time.January
		}
	}
	return time.Time{}, false
}

// dateFrom is the first matching day of a month that is from or later.
func (c *cron) dateFrom(year int, month time.Month, from int) (int, bool) {
	if c.month&(1<<month) == 0 {
		return 0, false
	}
	for date := from; date <= daysIn(year, month); date++ {
		if c.matchDate(year, month, date) {
			return date, true
		}
	}
	return 0, false
}

// matchDate follows the old rule of cron: if both day fields are restricted,
// either of them is enough.
func (c *cron) matchDate(year int, month time.Month, date int) bool {
	if c.month&(1<<month) == 0 {
		return false
	}
	last := daysIn(year, month)
	weekday := time.Date(year, month, date, 0, 0, 0, 0, time.UTC).Weekday()
	byDate := c.date&(1<<date) != 0 || c.lastDate && date == last
	byWeekday := c.weekday&(1<<weekday) != 0 ||
		c.nth[weekday]&(1<<((date-1)/7+1)) != 0 ||
		c.lastWeekday&(1<<weekday) != 0 && date+7 > last
	if c.dateStar || c.weekdayStar {
		return byDate && byWeekday
	}
	return byDate || byWeekday
}

// nextClock is the first matching time of a day at or after hour:minute.
func (c *cron) nextClock(hour, minute int) (h, m int, ok bool) {
	if c.hour&(1<<hour) != 0 {
		if rest := c.minute >> minute; rest != 0 {
			return hour, minute + bits.TrailingZeros64(rest), true
		}
	}
	later := c.hour >> (hour + 1)
	if later == 0 {
		return 0, 0, false
	}
	return hour + 1 + bits.TrailingZeros64(later), bits.TrailingZeros64(c.minute), true
}

func daysIn(year int, month time.Month) int {
	if month == time.February && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		return 29
	}
	return [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1]
}

// nextFixed maps each matching wall minute to one instant. The mapping is monotonic,
// so the first instant after after is the answer.
func (c *cron) nextFixed(after time.Time, loc *time.Location) time.Time {
	_, offset := after.In(loc).Zone()
	wall := wallMinute(after.Unix() + int64(offset)).Add(time.Minute)
	for {
		match, ok := c.nextWall(wall)
		if !ok || match.Year() > maxYear {
			return time.Time{}
		}
		if at := firstShown(match, loc); at.After(after) {
			return at
		}
		wall = match.Add(time.Minute)
	}
}

// firstShown is the first instant at which a clock in loc shows wall, or the
// end of the gap if the clock skips it.
func firstShown(wall time.Time, loc *time.Location) time.Time {
	// Two days before, no zone can show wall yet.
	at := time.Unix(wall.Unix(), 0).Add(-2 * day).In(loc)
	for {
		_, offset := at.Zone()
		begins, _ := at.ZoneBounds()
		ends := stretchEnd(at)
		shown := time.Unix(wall.Unix()-int64(offset), 0).In(loc)
		switch {
		case !begins.IsZero() && shown.Before(begins):
			return begins
		case ends.IsZero() || shown.Before(ends):
			return shown
		}
		at = ends
	}
}

// nextElapsed goes through the stretches of time in which the zone's offset is
// constant, and matches the wall time in each.
func (c *cron) nextElapsed(after time.Time, loc *time.Location) time.Time {
	at := time.Unix(after.Unix()+1, 0).In(loc)
	for {
		_, offset := at.Zone()
		ends := stretchEnd(at)
		wall := wallMinute(at.Unix() + int64(offset) + 59)
		match, ok := c.nextWall(wall)
		if !ok || match.Year() > maxYear {
			return time.Time{}
		}
		next := time.Unix(match.Unix()-int64(offset), 0).In(loc)
		if ends.IsZero() || next.Before(ends) {
			return next
		}
		at = ends
	}
}

// stretchEnd returns a time after at up to which the offset of its zone is constant,
// or the zero time for ever. The offset need not change there.
func stretchEnd(at time.Time) time.Time {
	_, ends := at.ZoneBounds()
	if ends.IsZero() || ends.After(at) {
		return ends
	}
	// Beyond the transitions that a zone lists, ZoneBounds takes every year for
	// 365 days and ends the last stretch of a leap year a day early.
	return at.Add(time.Hour)
}

// wallMinute converts seconds of wall time, truncated to the minute.
func wallMinute(seconds int64) time.Time {
	wall := time.Unix(seconds, 0).UTC()
	return wall.Add(-time.Duration(wall.Second()) * time.Second)
}
