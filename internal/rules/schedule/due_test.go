package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func at(t interface{ Fatal(args ...any) }, text string) time.Time {
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestWhatBecomesOfPlannedTimes(t *testing.T) {
	hourly := loop.Definition{Name: "l", Cadence: "1h"}
	with := func(change func(*loop.Definition)) loop.Definition {
		d := hourly
		change(&d)
		return d
	}
	for name, c := range map[string]struct {
		d    loop.Definition
		now  string // on 2026-01-05, for whose 10:00 in UTC the first firing is planned, or with its own day
		want string
		next string
	}{
		"it comes in time":                     {hourly, "10:00:03", "10:00 ran", "11:00"},
		"it is not due yet":                    {hourly, "09:59:59", "", "10:00"},
		"the clock went back by a week":        {hourly, "2025-12-29T10:00:00", "", "10:00"},
		"a week is over":                       {hourly, "2026-01-12T10:00:00", "10:00-09:00 168 coalesced, 10:00 ran", "11:00"},
		"the clock went ahead by a year":       {hourly, "2027-01-05T10:30:00", "10:00-09:00 8760 coalesced, 10:00 ran", "11:00"},
		"of a year, the last hundred":          {with(func(d *loop.Definition) { d.CatchUp = loop.CatchUpAll }), "2027-01-05T10:30:00", "10:00-06:00 8661 coalesced, then 100 ran", "11:00"},
		"one makes up for all":                 {hourly, "13:30:00", "10:00-12:00 3 coalesced, 13:00 ran", "14:00"},
		"each is made up for":                  {with(func(d *loop.Definition) { d.CatchUp = loop.CatchUpAll }), "12:30:00", "10:00 ran, 11:00 ran, 12:00 ran", "13:00"},
		"none is made up for":                  {with(func(d *loop.Definition) { d.CatchUp = loop.CatchUpSkip }), "12:30:00", "10:00-12:00 3 skipped missed", "13:00"},
		"what comes in time is not missed":     {with(func(d *loop.Definition) { d.CatchUp = loop.CatchUpSkip }), "12:00:30", "10:00-11:00 2 skipped missed, 12:00 ran", "13:00"},
		"too late for all but the last":        {with(func(d *loop.Definition) { d.StartDeadline = 20 * time.Minute }), "12:10:00", "10:00-11:00 2 skipped start_deadline, 12:00 ran", "13:00"},
		"too late for all":                     {with(func(d *loop.Definition) { d.StartDeadline = 20 * time.Minute }), "12:30:00", "10:00-12:00 3 skipped start_deadline", "13:00"},
		"a deadline is also a bound for skip":  {with(func(d *loop.Definition) { d.StartDeadline, d.CatchUp = 20*time.Minute, loop.CatchUpSkip }), "12:10:00", "10:00-11:00 2 skipped start_deadline, 12:00 ran", "13:00"},
		"a deadline makes up for fewer of all": {with(func(d *loop.Definition) { d.StartDeadline, d.CatchUp = 90*time.Minute, loop.CatchUpAll }), "12:10:00", "10:00 skipped start_deadline, 11:00 ran, 12:00 ran", "13:00"},
	} {
		t.Run(name, func(t *testing.T) {
			const day, layout = "2026-01-05T", "15:04"
			if !strings.Contains(c.now, "T") {
				c.now = day + c.now
			}
			first, now := at(t, day+"10:00:00Z"), at(t, c.now+"Z")
			ticks, next, err := Ticks(c.d, first, Firing{first, first}, now)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, k := range ticks {
				text := k.First.UTC().Format(layout)
				if k.N > 1 {
					text += fmt.Sprintf("-%s %d", k.Last.UTC().Format(layout), k.N)
				}
				got = append(got, strings.TrimSpace(fmt.Sprint(text, " ", k.Verdict, " ", k.Reason)))
			}
			if n := len(got); n > MaxCatchUp {
				got = append(got[:n-MaxCatchUp], fmt.Sprintf("then %d ran", MaxCatchUp))
			}
			if text := strings.Join(got, ", "); text != c.want || next.Planned.UTC().Format(layout) != c.next {
				t.Errorf("%s, next %s; want %s, next %s", text, next.Planned.UTC().Format(layout), c.want, c.next)
			}
		})
	}
}

// However late somebody comes, each planned time gets one verdict, and the next firing is
// the first that is still to come.
func TestEachPlannedTimeHasOneVerdict(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := loop.Definition{
			Name:          rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "name"),
			Cadence:       rapid.SampledFrom([]string{"10m", "1h", "7h", "*/20 * * * *", "30 2 * * *", "H H * * 1-5"}).Draw(rt, "cadence"),
			Timezone:      rapid.SampledFrom([]string{"", "America/New_York", "Australia/Lord_Howe"}).Draw(rt, "zone"),
			CatchUp:       rapid.SampledFrom([]loop.CatchUp{"", loop.CatchUpSkip, loop.CatchUpOne, loop.CatchUpAll}).Draw(rt, "catch up"),
			StartDeadline: rapid.SampledFrom([]time.Duration{0, time.Minute, 3 * time.Hour}).Draw(rt, "deadline"),
			Jitter:        rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(rt, "jitter"),
		}
		anchor := at(rt, "2026-03-01T00:07:00Z").Add(time.Duration(rapid.IntRange(0, 60*24*60).Draw(rt, "minutes")) * time.Minute)
		f, err := Next(d, anchor, anchor)
		if err != nil {
			rt.Fatal(err)
		}
		if again, _ := Next(d, anchor, anchor); !again.Planned.Equal(f.Planned) || !again.Due.Equal(f.Due) {
			rt.Fatalf("the next firing is %v and then %v", f, again)
		}
		now := f.Due.Add(time.Duration(rapid.IntRange(-30, 4*24*60).Draw(rt, "late")) * time.Minute)
		ticks, next, err := Ticks(d, anchor, f, now)
		if err != nil {
			rt.Fatal(err)
		}
		if len(ticks) == 0 && next.Due.After(now) && !f.Due.After(now) { // It was put off, once.
			_, after, err := Ticks(d, anchor, Firing{f.Planned, f.Due.Add(time.Second)}, now) // As if it was put off before.
			if err != nil || !next.Planned.Equal(f.Planned) || next.Due.Sub(now) > d.Jitter || !next.Due.Before(after.Due) {
				rt.Fatalf("%v is put off at %s to %v, and %v comes after it, %v", f, now, next, after, err)
			}
			deadlines := d.StartDeadline > 0
			if now = next.Due.Add(time.Duration(rapid.IntRange(0, 40).Draw(rt, "later")) * time.Second); rapid.IntRange(0, 3).Draw(rt, "asleep") == 0 {
				now, deadlines = now.Add(30*time.Hour), false
			}
			if ticks, next, err = Ticks(d, anchor, next, now); err != nil {
				rt.Fatal(err)
			}
			if ran := slices.ContainsFunc(ticks, func(k loop.Tick) bool { return k.Verdict == loop.TickRan }); len(ticks) == 0 || deadlines && !ran {
				rt.Fatalf("at %s, after it was put off, the ticks are %+v", now, ticks)
			}
		}
		c, zone, _ := plannedBy(d, anchor)
		planned, ran := f.Planned, 0
		for _, k := range ticks {
			if !k.First.Equal(planned) {
				rt.Fatalf("a tick begins at %s, want %s: %+v", k.First, planned, ticks)
			}
			last := planned
			for range k.N {
				last, planned = planned, c.Next(planned, zone)
			}
			if !k.Last.Equal(last) {
				rt.Fatalf("%+v ends at %s", k, last)
			}
			if k.Verdict == loop.TickRan {
				ran++
			}
			if (k.Verdict == loop.TickSkipped) != (k.Reason != "") || k.Verdict == loop.TickRan && k.N != 1 {
				rt.Fatalf("tick %+v", k)
			}
		}
		if !next.Planned.Equal(planned) || !next.Due.After(now) || next.Due.Before(next.Planned) || !next.Due.Before(c.Next(planned, zone)) {
			rt.Fatalf("next %v at %s, want planned for %s", next, now, planned)
		}
		if next.Due.Sub(next.Planned) > d.Jitter {
			rt.Fatalf("%v is put off by more than %s", next, d.Jitter)
		}
		if most := map[bool]int{true: MaxCatchUp, false: 1}[d.CatchUp == loop.CatchUpAll]; ran > most {
			rt.Fatalf("%d runs make up for what was missed", ran)
		}
	})
}

func TestAJitterSpreadsAndIsTheSameEachTime(t *testing.T) {
	anchor := at(t, "2026-01-05T10:00:00Z")
	seen := map[time.Duration]bool{}
	for i := range 200 {
		d := loop.Definition{Name: fmt.Sprint("l", i), Cadence: "1h", Jitter: 10 * time.Minute}
		f, err := Next(d, anchor, anchor)
		if err != nil {
			t.Fatal(err)
		}
		off := f.Due.Sub(f.Planned)
		if off < 0 || off > d.Jitter {
			t.Fatalf("%s is put off by %s", d.Name, off)
		}
		seen[off/time.Minute] = true
	}
	if len(seen) < 9 {
		t.Errorf("200 loops start in %d different minutes, want all of 10", len(seen))
	}
}

func TestWhatWasMissedIsMadeUpForSpreadByTheJitter(t *testing.T) {
	anchor := at(t, "2026-01-05T10:00:00Z")
	now := anchor.Add(5*time.Hour + 20*time.Minute)
	starts := func(change func(*loop.Definition)) (minutes map[time.Duration]bool) {
		t.Helper()
		minutes = map[time.Duration]bool{}
		for i := range 200 {
			d := loop.Definition{Name: fmt.Sprint("l", i), Cadence: "1h", Jitter: 10 * time.Minute}
			change(&d)
			f, err := Next(d, anchor, anchor)
			if err != nil {
				t.Fatal(err)
			}
			ticks, next, err := Ticks(d, anchor, f, now)
			off := time.Duration(0)
			if len(ticks) == 0 && err == nil {
				off = next.Due.Sub(now)
				ticks, next, err = Ticks(d, anchor, next, next.Due)
			}
			if n := len(ticks); err != nil || n == 0 || ticks[n-1].Verdict != loop.TickRan || !next.Due.After(now.Add(off)) {
				t.Fatalf("%s: ticks %+v, next %v, %v", d.Name, ticks, next, err)
			}
			minutes[off/time.Minute] = true
		}
		return minutes
	}
	if n := len(starts(func(*loop.Definition) {})); n < 9 || n > 11 {
		t.Errorf("200 loops that a machine wakes up with start in %d different minutes, want all of 10", n)
	}
	for name, c := range map[string]struct {
		change func(*loop.Definition)
		most   time.Duration
	}{
		"without a jitter":              {func(d *loop.Definition) { d.Jitter = 0 }, 0},
		"not past the next time":        {func(d *loop.Definition) { d.Cadence, d.Jitter = "30m", time.Hour }, 39 * time.Minute},
		"not past their deadline":       {func(d *loop.Definition) { d.StartDeadline = 22 * time.Minute }, 11 * time.Minute},
		"not past the deadline of each": {func(d *loop.Definition) { d.StartDeadline, d.CatchUp = 22*time.Minute, loop.CatchUpAll }, 11 * time.Minute},
	} {
		for off := range starts(c.change) {
			if off > c.most/time.Minute {
				t.Errorf("%s: one is put off by %d minutes", name, off)
			}
		}
	}
	// In time, and when it was put off before, it comes at once.
	d := loop.Definition{Name: "l", Cadence: "1h", Jitter: 10 * time.Minute}
	f, _ := Next(d, anchor, anchor)
	for _, f := range []Firing{{f.Planned, now.Add(-40 * time.Second)}, {f.Planned, now.Add(-time.Hour)}} {
		if ticks, next, err := Ticks(d, anchor, f, now); err != nil || len(ticks) == 0 {
			t.Errorf("due at %s, it is put off to %v, %v", f.Due, next, err)
		}
	}
	if ticks, _, err := Ticks(d, anchor, f, f.Due.Add(50*time.Second)); err != nil || len(ticks) != 1 {
		t.Errorf("in time, the ticks are %+v, %v", ticks, err)
	}
}

func TestALoopIsLateOnceTwoOfItsTimesAreOver(t *testing.T) {
	anchor := at(t, "2026-01-05T10:00:00Z")
	for name, c := range map[string]struct {
		d    loop.Definition
		now  string
		want string
	}{
		"one is over":              {loop.Definition{Cadence: "1h"}, "2026-01-05T11:59:00Z", ""},
		"the second comes now":     {loop.Definition{Cadence: "1h"}, "2026-01-05T12:00:00Z", ""},
		"two are over":             {loop.Definition{Cadence: "1h"}, "2026-01-05T12:00:01Z", "2026-01-05T11:00:00Z"},
		"a jitter is no delay":     {loop.Definition{Name: "l", Cadence: "1h", Jitter: 50 * time.Minute}, "2026-01-05T12:00:01Z", ""},
		"a weekend is none":        {loop.Definition{Cadence: "0 9 * * 1-5"}, "2026-01-07T08:59:00Z", ""},
		"without a cadence":        {loop.Definition{}, "2027-01-05T12:00:01Z", ""},
		"with a cadence of nobody": {loop.Definition{Cadence: "sometimes"}, "2027-01-05T12:00:01Z", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if planned, late := Late(c.d, anchor, anchor, at(t, c.now)); late {
				got = planned.UTC().Format(time.RFC3339)
			}
			if got != c.want {
				t.Errorf("late since %q, want %q", got, c.want)
			}
		})
	}
}

func TestALoopWaitsTooLongAfterItsClockWasSetBack(t *testing.T) {
	now, hour := at(t, "2026-01-05T10:00:00Z"), time.Hour
	hourly, monthly := loop.Definition{Name: "l", Cadence: "1h"}, loop.Definition{Name: "l", Cadence: "0 9 1 * *"}
	for name, c := range map[string]struct {
		d                        loop.Definition
		created, ticked, planned time.Duration // from now
		want                     string
	}{
		"by a week":                     {hourly, -300 * hour, 168 * hour, 169 * hour, "2026-01-05T11:00:00Z"},
		"by a year":                     {hourly, -9000 * hour, 8760 * hour, 8761 * hour, "2026-01-05T11:00:00Z"},
		"by two hours and a half":       {hourly, -300 * hour, 2 * hour, 3 * hour, "2026-01-05T11:00:00Z"},
		"by an hour":                    {hourly, -300 * hour, hour, 2 * hour, ""},
		"since it was registered":       {hourly, 168 * hour, 0, 169 * hour, "2026-01-05T11:00:00Z"},
		"not at all":                    {hourly, -300 * hour, 0, hour, ""},
		"not at all, and it is rare":    {monthly, -300 * hour, -100 * hour, 623 * hour, ""},
		"not at all, and it was edited": {hourly, -300 * hour, -100 * hour, 623 * hour, ""},
		"by less than its cadence":      {monthly, -300 * hour, 168 * hour, 623 * hour, ""},
		"without a cadence":             {loop.Definition{}, -300 * hour, 168 * hour, 169 * hour, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := loop.Loop{Created: now.Add(c.created), Ticked: now.Add(c.ticked), Registered: loop.Registration{Planned: now.Add(c.planned)}}
			got := ""
			if next, yes := SetBack(c.d, l, now); yes {
				got = next.UTC().Format(time.RFC3339)
			}
			if got != c.want {
				t.Errorf("its next time would be %q, want %q", got, c.want)
			}
		})
	}
}

func TestADefinitionWhoseTimesCannotBeReadIsAnError(t *testing.T) {
	now := at(t, "2026-01-05T10:00:00Z")
	for name, d := range map[string]loop.Definition{
		"a cadence of words": {Cadence: "sometimes"}, "a zone of nobody": {Cadence: "0 9 * * *", Timezone: "Mars/Olympus"},
	} {
		t.Run(name, func(t *testing.T) {
			if f, err := Next(d, now, now); err == nil {
				t.Errorf("Next = %v", f)
			}
			if ticks, next, err := Ticks(d, now, Firing{now, now}, now); err == nil {
				t.Errorf("Ticks = %v, %v", ticks, next)
			}
			if note, err := (Firing{now, now}).Note(d, now); err == nil {
				t.Errorf("Note = %q", note)
			}
		})
	}
}

func TestANoteSaysWhatTheClocksDid(t *testing.T) {
	for name, c := range map[string]struct{ cadence, before, planned, want string }{
		"nothing":            {"30 2 * * *", "2026-03-06T07:30:00Z", "2026-03-07T07:30:00Z", ""},
		"forward, over it":   {"30 2 * * *", "2026-03-07T07:30:00Z", "2026-03-08T07:00:00Z", "the clocks have gone forward by 1h0m0s (now EDT); its time does not exist on this day, so it fires right after the gap"},
		"forward, before it": {"0 9 * * *", "2026-03-07T14:00:00Z", "2026-03-08T13:00:00Z", "the clocks have gone forward by 1h0m0s (now EDT)"},
		"back":               {"30 2 * * *", "2026-10-31T06:30:00Z", "2026-11-01T07:30:00Z", "the clocks have gone back by 1h0m0s (now EST)"},
		"an interval":        {"1h", "2026-03-08T06:30:00Z", "2026-03-08T07:30:00Z", "the clocks have gone forward by 1h0m0s (now EDT)"},
	} {
		t.Run(name, func(t *testing.T) {
			f := Firing{Planned: at(t, c.planned)}
			if note, err := f.Note(loop.Definition{Cadence: c.cadence, Timezone: "America/New_York"}, at(t, c.before)); err != nil || note != c.want {
				t.Errorf("the note is %q, %v; want %q", note, err, c.want)
			}
		})
	}
}

func TestAnAgentFiresInItsHoursAndNotAtAllWithoutEnabled(t *testing.T) {
	work := func(cadence, zone string, from, until int) loop.Definition {
		return loop.Definition{Name: "dev", Cadence: cadence, Timezone: zone, Tasks: &loop.TaskLoop{Enabled: true, FromHour: from, UntilHour: until}}
	}
	never := work("1h", "", 0, 0)
	never.Tasks.Enabled = false
	for name, c := range map[string]struct {
		d           loop.Definition
		after, want string // empty: never
	}{
		"in its hours":                 {work("1h", "", 9, 17), "2026-05-04T10:30:00Z", "2026-05-04T11:00:00Z"},
		"the first":                    {work("1h", "", 9, 17), "2026-05-04T08:30:00Z", "2026-05-04T09:00:00Z"},
		"not the one at which it ends": {work("1h", "", 9, 17), "2026-05-04T16:00:00Z", "2026-05-05T09:00:00Z"},
		"past midnight":                {work("1h", "", 22, 6), "2026-05-04T23:30:00Z", "2026-05-05T00:00:00Z"},
		"past midnight, by day":        {work("1h", "", 22, 6), "2026-05-04T06:00:00Z", "2026-05-04T22:00:00Z"},
		"in its zone":                  {work("1h", "Asia/Tokyo", 9, 17), "2026-05-04T12:00:00Z", "2026-05-05T00:00:00Z"},
		"all day":                      {work("1h", "", 9, 9), "2026-05-04T03:30:00Z", "2026-05-04T04:00:00Z"},
		"a cadence of other hours":     {work("0 3 * * *", "", 9, 17), "2026-05-04T03:30:00Z", ""},
		"without enabled":              {never, "2026-05-04T03:30:00Z", ""},
	} {
		want := time.Time{}
		if c.want != "" {
			want = at(t, c.want)
		}
		got, err := Next(c.d, time.Unix(0, 0).UTC(), at(t, c.after))
		if err != nil || !got.Due.Equal(want) {
			t.Errorf("%s: %v, %v, want %v", name, got.Due, err, want)
		}
		ticks, next, err := Ticks(c.d, time.Unix(0, 0).UTC(), got, want)
		if err != nil || len(ticks) > 1 || !want.IsZero() && (len(ticks) != 1 || !c.d.Tasks.WorksAt(next.Due.In(next.Due.Location()).Hour())) {
			t.Errorf("%s: ticks %v, next %v, %v", name, ticks, next, err)
		}
	}
	if a, b := work("1h", "", 9, 17), work("1h", "", 9, 18); !SameDue(a, a) || SameDue(a, b) || SameDue(work("1h", "", 0, 0), never) {
		t.Error("definitions with other hours fire at the same times")
	}
}
