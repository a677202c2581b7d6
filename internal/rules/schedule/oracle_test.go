package schedule

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// oracle decides minute by minute, from the text of an expression, whether a
// clock reading matches. It shares no code with the package: each field is a
// set of numbers, and the zone is observed by watching a clock tick.
type oracle struct {
	sets         [5]map[int]bool
	lastDate     bool
	nth, last    map[[2]int]bool
	starD, starW bool
	wildcard     bool
}

func newOracle(expression string) oracle {
	o := oracle{nth: map[[2]int]bool{}, last: map[[2]int]bool{}}
	texts := strings.Fields(expression)
	o.starD, o.starW = texts[2][0] == '*', texts[4][0] == '*'
	o.wildcard = texts[0][0] == '*' || texts[1][0] == '*'
	limits := [5][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}}
	for i, text := range texts {
		o.sets[i] = map[int]bool{}
		for item := range strings.SplitSeq(text, ",") {
			o.add(i, item, limits[i])
		}
	}
	if len(o.sets[0]) == 60 || len(o.sets[1]) == 24 {
		o.wildcard = true
	}
	return o
}

func (o *oracle) add(i int, item string, limit [2]int) {
	if i == 2 && item == "L" {
		o.lastDate = true
		return
	}
	if weekday, nth, ok := strings.Cut(item, "#"); ok {
		o.nth[[2]int{oracleNumber(i, weekday) % 7, oracleNumber(i, nth)}] = true
		return
	}
	if weekday, ok := strings.CutSuffix(item, "L"); ok {
		o.last[[2]int{oracleNumber(i, weekday) % 7}] = true
		return
	}
	span, stepText, stepped := strings.Cut(item, "/")
	from, to, ranged := strings.Cut(span, "-")
	lo, hi, step := limit[0], limit[1], 1
	if span != "*" {
		lo = oracleNumber(i, from)
		switch {
		case ranged:
			hi = oracleNumber(i, to)
		case !stepped:
			hi = lo
		}
	}
	if stepped {
		step = oracleNumber(i, stepText)
	}
	for v := lo; v <= hi; v++ {
		if (v-lo)%step == 0 {
			if i == 4 {
				v7 := v % 7
				o.sets[i][v7] = true
				continue
			}
			o.sets[i][v] = true
		}
	}
}

func oracleNumber(i int, text string) int {
	names := map[int]string{3: "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC", 4: "SUNMONTUEWEDTHUFRISAT"}[i]
	if at := strings.Index(names, strings.ToUpper(text)); len(text) == 3 && at >= 0 {
		return at/3 + map[int]int{3: 1}[i]
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		panic("oracle: " + text)
	}
	return n
}

// matches takes a clock reading as a time in UTC.
func (o *oracle) matches(wall time.Time) bool {
	return o.sets[0][wall.Minute()] && o.sets[1][wall.Hour()] && o.matchesDay(wall)
}

// matchesDay takes any clock reading of the day.
func (o *oracle) matchesDay(wall time.Time) bool {
	if !o.sets[3][int(wall.Month())] {
		return false
	}
	weekday := int(wall.Weekday())
	nextWeek := wall.AddDate(0, 0, 7).Month() != wall.Month()
	date := o.sets[2][wall.Day()] || o.lastDate && wall.AddDate(0, 0, 1).Month() != wall.Month()
	week := o.sets[4][weekday] || o.nth[[2]int{weekday, (wall.Day() + 6) / 7}] || o.last[[2]int{weekday}] && nextWeek
	if o.starD || o.starW {
		return date && week
	}
	return date || week
}

// tick is one real minute and what the clock shows then.
type tick struct{ at, wall time.Time }

// ticks watches the clock of a zone for some minutes.
func ticks(from time.Time, minutes int, loc *time.Location) []tick {
	all := make([]tick, minutes)
	for i := range all {
		at := from.Add(time.Duration(i) * time.Minute)
		y, mo, d := at.In(loc).Date()
		h, mi, _ := at.In(loc).Clock()
		all[i] = tick{at, time.Date(y, mo, d, h, mi, 0, 0, time.UTC)}
	}
	return all
}

// fires walks the ticks: a wildcard expression fires whenever the clock shows
// a match; any other fires for each reading that is shown for the first time,
// and at the first minute after readings that the clock jumped over.
func (o *oracle) fires(all []tick, loc *time.Location) []time.Time {
	var fired []time.Time
	// A reading may have been shown before the first tick: the clock was put
	// back less than a day ago.
	var seen time.Time
	for _, before := range ticks(all[0].at.Add(-24*time.Hour), 24*60+1, loc) {
		if before.wall.After(seen) {
			seen = before.wall
		}
	}
	for _, now := range all[1:] {
		if o.wildcard {
			if o.matches(now.wall) {
				fired = append(fired, now.at)
			}
			continue
		}
		due := false
		for seen.Before(now.wall) {
			seen = seen.Add(time.Minute)
			due = due || o.matches(seen)
		}
		if due {
			fired = append(fired, now.at)
		}
	}
	return fired
}

// walk collects what Next says for the same minutes.
func walk(c Cadence, all []tick, loc *time.Location) []time.Time {
	var fired []time.Time
	last := all[len(all)-1].at
	for at := c.Next(all[0].at, loc); !at.IsZero() && !at.After(last); at = c.Next(at, loc) {
		fired = append(fired, at)
	}
	return fired
}

func sameTimes(a, b []time.Time) bool {
	return slices.EqualFunc(a, b, time.Time.Equal)
}
