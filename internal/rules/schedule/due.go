package schedule

import (
	"fmt"
	"hash/fnv"
	"time"
	_ "time/tzdata" // A zone means the same on every host.

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Firing is one time at which a loop fires.
type Firing struct {
	Planned time.Time // what the cadence says; the zero time means never
	Due     time.Time // Planned, and what the jitter adds
}

// Zone finds a time zone by its name in the time zone database; empty is UTC.
func Zone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" { // It would mean another zone on each node.
		return nil, fmt.Errorf("unknown time zone %s; write one of the time zone database, like Europe/Berlin, or UTC", name)
	}
	return zone, nil
}

// Next returns the first firing of a loop with the definition that is planned after
// after. Its intervals are counted from anchor: a loop that is registered at 10:07 and
// fires every hour is due at 11:07. The zero Firing means never: the definition has no
// cadence, or says that nothing fires the loop.
func Next(d loop.Definition, anchor, after time.Time) (Firing, error) {
	c, zone, err := plannedBy(d, anchor)
	if err != nil || c == (Cadence{}) {
		return Firing{}, err
	}
	return firingAt(d, c, zone, nextIn(d, c, zone, after)), nil
}

// mostDays is how many days ahead a firing within the hours is looked for: with leap years,
// a cadence that fires once a year fires in that time.
const mostDays = 366 * 8

// nextIn is the next time of a cadence within the hours at which the loop works; the zero
// time if it never fires.
func nextIn(d loop.Definition, c Cadence, zone *time.Location, after time.Time) time.Time {
	at := c.Next(after, zone)
	for range mostDays {
		if at.IsZero() || d.Tasks.WorksAt(at.In(zone).Hour()) {
			return at
		}
		local := at.In(zone)
		begin := time.Date(local.Year(), local.Month(), local.Day(), d.Tasks.FromHour, 0, 0, 0, zone)
		if !begin.After(at) {
			begin = time.Date(local.Year(), local.Month(), local.Day()+1, d.Tasks.FromHour, 0, 0, 0, zone)
		}
		at = c.Next(begin.Add(-time.Nanosecond), zone)
	}
	return time.Time{}
}

func plannedBy(d loop.Definition, anchor time.Time) (Cadence, *time.Location, error) {
	if d.Cadence == "" || d.NeverFires() {
		return Cadence{}, nil, nil
	}
	zone, err := Zone(d.Timezone)
	if err != nil {
		return Cadence{}, nil, err
	}
	c, err := ParseFor(d.Cadence, d.Name)
	return c.Anchored(anchor), zone, err
}

// firingAt is the firing of a loop that is planned for a time. A jitter never puts it off
// until the one after it.
func firingAt(d loop.Definition, c Cadence, zone *time.Location, planned time.Time) Firing {
	f := Firing{planned, planned}
	if d.Jitter == 0 || planned.IsZero() {
		return f
	}
	most := d.Jitter
	if next := nextIn(d, c, zone, planned); !next.IsZero() {
		most = min(most, next.Sub(planned)-time.Second)
	}
	f.Due = planned.Add(spread(d, planned, most))
	return f
}

// spread is a time up to most, the same each time for one loop and one planned time.
func spread(d loop.Definition, planned time.Time, most time.Duration) time.Duration {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%s\x00%d", d.Name, planned.Unix())
	return time.Duration(hash.Sum64()%uint64(most/time.Second+1)) * time.Second
}

// SameDue reports whether two definitions of a loop fire at the same times.
func SameDue(a, b loop.Definition) bool {
	from, until := a.Tasks.Hours()
	otherFrom, otherUntil := b.Tasks.Hours()
	return a.Cadence == b.Cadence && a.Name == b.Name && a.Timezone == b.Timezone && a.Jitter == b.Jitter &&
		from == otherFrom && until == otherUntil && a.NeverFires() == b.NeverFires()
}

// Bounds of what Ticks decides.
const (
	MaxCatchUp = 100         // that many missed runs are made up for, at most
	lateAfter  = time.Minute // a firing is missed that could not start for so long
)

// Ticks gives each planned time from f until now its verdict, and returns when the loop
// fires next. The last of them fires a run, with catch_up: all each of the last MaxCatchUp.
// The others are skipped, or are coalesced: the run after them makes up for them. With a
// jitter, runs that make up for what was missed are put off once, so that loops do not all
// start when a machine wakes up: then no time has a verdict yet, and next is f, due later.
func Ticks(d loop.Definition, anchor time.Time, f Firing, now time.Time) (ticks []loop.Tick, next Firing, err error) {
	c, zone, err := plannedBy(d, anchor)
	if err != nil || c == (Cadence{}) {
		return nil, Firing{}, err
	}
	var fires []Firing
	add := func(at time.Time, v loop.TickVerdict, reason string) {
		if n := len(ticks); n > 0 && ticks[n-1].Verdict == v && ticks[n-1].Reason == reason && v != loop.TickRan {
			ticks[n-1].Last, ticks[n-1].N = at, ticks[n-1].N+1
			return
		}
		ticks = append(ticks, loop.Tick{First: at, Last: at, N: 1, Verdict: v, Reason: reason})
	}
	next = f
	first := firingAt(d, c, zone, f.Planned)
	putOff := f.Due.After(first.Due) // It was put off already.
	if !putOff {
		first = f
	}
	for missed := first; !next.Planned.IsZero() && !next.Due.After(now); missed = next {
		late := now.Sub(missed.Due)
		switch {
		case d.StartDeadline > 0 && late > d.StartDeadline:
			add(missed.Planned, loop.TickSkipped, loop.TickLate)
		case d.CatchUp == loop.CatchUpSkip && d.StartDeadline == 0 && late > lateAfter:
			add(missed.Planned, loop.TickSkipped, loop.TickMissed)
		default:
			fires = append(fires, missed)
		}
		next = firingAt(d, c, zone, nextIn(d, c, zone, missed.Planned))
	}
	runs := min(len(fires), 1)
	if d.CatchUp == loop.CatchUpAll {
		runs = min(len(fires), MaxCatchUp)
	}
	if n := len(fires); n > 0 && !putOff && now.Sub(fires[n-1].Due) > lateAfter {
		most := d.Jitter
		if !next.Planned.IsZero() {
			most = min(most, next.Due.Sub(now)-time.Second)
		}
		if d.StartDeadline > 0 { // All of the runs are still in time afterwards.
			most = min(most, fires[n-runs].Due.Add(d.StartDeadline-lateAfter).Sub(now))
		}
		if due := now.Add(spread(d, fires[n-1].Planned, max(most, 0))); due.After(now) {
			return nil, Firing{f.Planned, due}, nil
		}
	}
	for i, fire := range fires {
		if i < len(fires)-runs {
			add(fire.Planned, loop.TickCoalesced, "")
			continue
		}
		add(fire.Planned, loop.TickRan, "")
	}
	return ticks, next, nil
}

// Note says what is odd about the clock at a planned time, compared to the firing before
// it; empty if nothing is.
func (f Firing) Note(d loop.Definition, before time.Time) (string, error) {
	c, zone, err := plannedBy(d, before)
	if err != nil || c == (Cadence{}) || before.IsZero() {
		return "", err
	}
	_, was := before.In(zone).Zone()
	local := f.Planned.In(zone)
	name, is := local.Zone()
	if was == is {
		return "", nil
	}
	way, by := "forward", time.Duration(is-was)*time.Second
	if by < 0 {
		way, by = "back", -by
	}
	note := fmt.Sprintf("the clocks have gone %s by %s (now %s)", way, by, name)
	if c.every == 0 && !c.cron.wildcard && c.cron.minute&(1<<local.Minute())*(c.cron.hour&(1<<local.Hour())) == 0 {
		note += "; its time does not exist on this day, so it fires right after the gap"
	}
	return note, nil
}

// SetBack reports whether a loop waits for longer than its cadence says because the clock was
// set back: it was registered, or one of its times was decided, after now, and it is planned
// for later than its next two times, the first of which it returns. Nothing fires these, if
// the ledger has them already.
func SetBack(d loop.Definition, l loop.Loop, now time.Time) (next time.Time, yes bool) {
	if !l.Created.After(now) && !l.Ticked.After(now) {
		return next, false
	}
	first, err := Next(d, l.Created, now)
	if err != nil || first.Planned.IsZero() {
		return next, false
	}
	second, err := Next(d, l.Created, first.Planned)
	return first.Planned, err == nil && !second.Planned.IsZero() && l.Registered.Planned.After(second.Planned)
}

// LastCame is the newest of the times at which a loop was registered and came. What is dated
// after now does not count: the clock was set back.
func LastCame(created, now time.Time, came ...time.Time) time.Time {
	for _, at := range came {
		if at.After(created) && !at.After(now) {
			created = at
		}
	}
	return created
}

// Late reports whether a loop has stopped coming: two firings that were planned after
// since, when it last came, are over. It returns when the first of them was planned.
func Late(d loop.Definition, anchor, since, now time.Time) (planned time.Time, late bool) {
	first, err := Next(d, anchor, since)
	if err != nil || first.Planned.IsZero() {
		return planned, false
	}
	second, err := Next(d, anchor, first.Planned)
	return first.Planned, err == nil && !second.Planned.IsZero() && second.Due.Before(now)
}
