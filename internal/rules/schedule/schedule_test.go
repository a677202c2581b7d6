package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // The zones must be there on every machine.

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/test/sample"
)

var zones = []string{
	"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo",
	"Asia/Kathmandu", "Pacific/Apia", "Africa/Casablanca", "UTC",
}

// patterns are the expressions that the oracle replays around every
// transition.
var patterns = strings.Split(`* * * * *
*/5 * * * *
*/7 * * * *
*/15 * * * *
*/30 * * * *
0 * * * *
30 * * * *
59 * * * *
15,45 * * * *
0 */2 * * *
0 */3 * * *
30 */6 * * *
10-20 * * * *
10-40/10 * * * *
* 2 * * *
*/10 2 * * *
*/20 1-3 * * *
* 0 * * *
0 0 * * *
1 0 * * *
30 0 * * *
59 23 * * *
0 1 * * *
30 1 * * *
45 1 * * *
0 2 * * *
1 2 * * *
15 2 * * *
30 2 * * *
59 2 * * *
0 3 * * *
30 3 * * *
0,30 1-3 * * *
0 0-23 * * *
0 1-22 * * *
0-59 2 * * *
0 2,14 * * *
5/20 2 * * *
0 9 * * 1-5
0 9 * * MON-FRI
30 2 * * 7
30 2 * * 0
30 1 * * SUN
0 0 * * 6,7
0 2 * * 5-7
0 12 1 * *
30 2 1 * *
0 0 1,15 * *
30 2 L * *
0 0 L * *
30 23 30 12 *
0 9 30 12 *
0 0 31 * *
30 1 * 10,11 *
30 2 * MAR,APR *
30 2 * 3-4 7
0 0 13 * 5
30 2 */2 * 7
0 2 * * 7#2
30 2 * * 7L
30 1 * * SUN#1,SUNL
0 6 29 2 *`, "\n")

func load(tb testing.TB, name string) *time.Location {
	tb.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		tb.Fatal(err)
	}
	return loc
}

func mustParse(tb testing.TB, text string) Cadence {
	tb.Helper()
	c, err := Parse(text)
	if err != nil {
		tb.Fatalf("Parse(%q): %v", text, err)
	}
	return c
}

// transitions are all instants from 2000 to 2040 at which a zone's offset
// changes; a zone without any gives one instant to look at.
func transitions(loc *time.Location) []time.Time {
	var all []time.Time
	offset := func(at time.Time) int { _, o := at.In(loc).Zone(); return o }
	for at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() <= 2040; at = at.Add(time.Hour) {
		for minute := range 60 {
			if offset(at) == offset(at.Add(time.Hour)) {
				break
			}
			change := at.Add(time.Duration(minute) * time.Minute)
			if offset(change) != offset(change.Add(time.Minute)) {
				all = append(all, change.Add(time.Minute))
			}
		}
	}
	if len(all) == 0 {
		all = append(all, time.Date(2016, 2, 29, 0, 0, 0, 0, loc))
	}
	return all
}

func TestCronKeepsItsPromisesAtEveryTransitionFrom2000To2040(t *testing.T) {
	if len(patterns) < 60 {
		t.Fatalf("%d patterns, want at least 60", len(patterns))
	}
	type pair struct {
		cadence Cadence
		oracle  oracle
	}
	var pairs []pair
	for _, text := range patterns {
		pairs = append(pairs, pair{mustParse(t, text), newOracle(text)})
	}
	for _, zone := range zones {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			loc := load(t, zone)
			seen := map[int]int{}
			for _, at := range transitions(loc) {
				_, before := at.Add(-time.Minute).In(loc).Zone()
				_, after := at.In(loc).Zone()
				seen[after-before]++
				if !sample.All() && seen[after-before]%5 != 1 { // A sample: of those that move the clock by as much, every fifth.
					continue
				}
				// The day that Apia skipped makes its window look longer on the clock.
				all := ticks(at.Add(-26*time.Hour).Truncate(time.Minute), 52*60, loc)
				for _, p := range pairs {
					want, got := p.oracle.fires(all, loc), walk(p.cadence, all, loc)
					if !sameTimes(got, want) {
						t.Fatalf("%s around %s:\n got %v\nwant %v", p.cadence, at, got, want)
					}
				}
			}
		})
	}
}

func TestNextAgreesWithTheOracleForRandomExpressions(t *testing.T) {
	more := append(slices.Clone(zones), "Asia/Tehran", "America/St_Johns", "Antarctica/Troll", "Pacific/Chatham")
	locs, changesOf := map[string]*time.Location{}, map[*time.Location][]time.Time{}
	for _, zone := range more {
		locs[zone] = load(t, zone)
		changesOf[locs[zone]] = transitions(locs[zone])
	}
	rapid.Check(t, func(t *rapid.T) {
		text := drawExpression(t)
		c, err := Parse(text)
		if err != nil {
			if !strings.Contains(err.Error(), "never fires") {
				t.Fatalf("Parse(%q): %v", text, err)
			}
			t.Skip("impossible date")
		}
		loc := locs[rapid.SampledFrom(more).Draw(t, "zone")]
		changes := changesOf[loc]
		at := changes[rapid.IntRange(0, len(changes)-1).Draw(t, "transition")]
		at = at.Add(time.Duration(rapid.IntRange(-4000, 1000).Draw(t, "minutes")) * time.Minute).Truncate(time.Minute)
		all := ticks(at, 4000, loc)
		o := newOracle(text)
		if got, want := walk(c, all, loc), o.fires(all, loc); !sameTimes(got, want) {
			t.Fatalf("%s from %s:\n got %v\nwant %v", text, at, got, want)
		}
	})
}

func drawExpression(t *rapid.T) string {
	limits := [5][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 7}}
	texts := make([]string, 5)
	for i, limit := range limits {
		n := rapid.IntRange(limit[0], limit[1])
		item := rapid.Custom(func(t *rapid.T) string {
			a, b := n.Draw(t, "a"), n.Draw(t, "b")
			step := rapid.IntRange(1, limit[1]-limit[0]).Draw(t, "step")
			switch rapid.IntRange(0, 4).Draw(t, "form") {
			case 0:
				return fmt.Sprint(a)
			case 1:
				return fmt.Sprintf("%d-%d", min(a, b), max(a, b))
			case 2:
				return fmt.Sprintf("%d-%d/%d", min(a, b), max(a, b), step)
			case 3:
				return fmt.Sprintf("*/%d", step)
			}
			if i == 2 {
				return "L"
			}
			return fmt.Sprint(b)
		})
		texts[i] = "*"
		if rapid.Bool().Draw(t, "restricted") {
			texts[i] = strings.Join(rapid.SliceOfN(item, 1, 3).Draw(t, "items"), ",")
		}
	}
	return strings.Join(texts, " ")
}

func TestNextIsStrictlyLaterAndMissesNothingInBetween(t *testing.T) {
	loc := load(t, "America/New_York")
	texts := append([]string{"1m", "10m", "7h", "1d", "1d12h", "2w", "@daily", "@hourly"}, patterns...)
	rapid.Check(t, func(t *rapid.T) {
		c, err := Parse(rapid.SampledFrom(texts).Draw(t, "cadence"))
		if err != nil {
			t.Fatal(err)
		}
		anchor := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "anchor"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
		c = c.Anchored(anchor)
		after := time.Unix(rapid.Int64Range(-4e9, 8e9).Draw(t, "after"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
		next := c.Next(after, loc)
		if !next.After(after) {
			t.Fatalf("%s: Next(%s) = %s, not later", c, after, next)
		}
		between := after.Add(time.Duration(rapid.Int64Range(0, int64(next.Sub(after))-1).Draw(t, "part")))
		if again := c.Next(between, loc); !again.Equal(next) {
			t.Fatalf("%s: Next(%s) = %s, but Next(%s) = %s", c, after, next, between, again)
		}
	})
}

func TestNextAtKnownTransitions(t *testing.T) {
	for name, c := range map[string]struct{ cadence, zone, after, want string }{
		"a fixed time in a spring gap runs right after it": {"30 2 * * *", "America/New_York", "2026-03-08T00:00:00-05:00", "2026-03-08T03:00:00-04:00"},
		"and is back to normal the day after":              {"30 2 * * *", "America/New_York", "2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"},
		"two fixed times in one gap run once":              {"0,30 2 * * *", "Europe/Berlin", "2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"},
		"a fixed time in a fold runs the first time":       {"30 1 * * *", "America/New_York", "2026-11-01T00:00:00-04:00", "2026-11-01T01:30:00-04:00"},
		"and not the second":                               {"30 1 * * *", "America/New_York", "2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"},
		"a wildcard hour runs in both folded hours":        {"0 * * * *", "America/New_York", "2026-11-01T01:00:00-04:00", "2026-11-01T01:00:00-05:00"},
		"a wildcard hour stays an hour in the gap":         {"0 * * * *", "Europe/Berlin", "2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00"},
		"half an hour of gap counts too":                   {"15 2 * * *", "Australia/Lord_Howe", "2026-10-04T00:00:00+10:30", "2026-10-04T02:30:00+11:00"},
		"a skipped day runs at its end":                    {"0 9 30 12 *", "Pacific/Apia", "2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00"},
		"Sunday is 7":                                      {"0 9 * * 7", "UTC", "2026-01-01T00:00:00Z", "2026-01-04T09:00:00Z"},
		"L is the last day":                                {"0 9 L * *", "UTC", "2028-02-01T00:00:00Z", "2028-02-29T09:00:00Z"},
		"the last Friday":                                  {"0 9 * * FRIL", "UTC", "2026-01-01T00:00:00Z", "2026-01-30T09:00:00Z"},
		"the second Tuesday":                               {"0 9 * * 2#2", "UTC", "2026-01-01T00:00:00Z", "2026-01-13T09:00:00Z"},
		"a leap day across a century":                      {"0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		"a fifth Monday in February":                       {"0 0 * 2 1#5", "UTC", "2072-03-01T00:00:00Z", "2112-02-29T00:00:00Z"},
		"either day field is enough":                       {"0 0 13 * 5", "UTC", "2026-01-10T00:00:00Z", "2026-01-13T00:00:00Z"},
		"seconds and fractions are passed over":            {"* * * * *", "UTC", "2026-01-01T00:00:00.000000001Z", "2026-01-01T00:01:00Z"},
		"an interval counts from 1970":                     {"6h", "Europe/Berlin", "2026-01-01T00:00:00Z", "2026-01-01T07:00:00+01:00"},
		"an interval of days ignores the clock":            {"1d", "Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-30T02:00:00+02:00"},
	} {
		t.Run(name, func(t *testing.T) {
			after, err := time.Parse(time.RFC3339, c.after)
			if err != nil {
				t.Fatal(err)
			}
			got := mustParse(t, c.cadence).Next(after, load(t, c.zone)).Format(time.RFC3339)
			if got != c.want {
				t.Errorf("%s after %s = %s, want %s", c.cadence, c.after, got, c.want)
			}
		})
	}
}

func TestIntervalsAreAnchored(t *testing.T) {
	anchor := time.Date(2026, 1, 1, 0, 3, 7, 500, time.UTC)
	c := mustParse(t, "10m").Anchored(anchor)
	for after, want := range map[time.Time]time.Time{
		anchor:                        anchor.Add(10 * time.Minute),
		anchor.Add(-1):                anchor,
		anchor.Add(9 * time.Minute):   anchor.Add(10 * time.Minute),
		anchor.Add(-25 * time.Minute): anchor.Add(-20 * time.Minute),
		anchor.AddDate(1, 0, 0):       anchor.AddDate(1, 0, 0).Add(10 * time.Minute),
		anchor.AddDate(-900, 0, 0):    anchor.AddDate(-900, 0, 0).Add(10 * time.Minute),
		anchor.AddDate(7000, 0, 0):    anchor.AddDate(7000, 0, 0).Add(10 * time.Minute),
		anchor.Add(10 * time.Minute):  anchor.Add(20 * time.Minute),
	} {
		if got := c.Next(after, nil); !got.Equal(want) {
			t.Errorf("Next(%s) = %s, want %s", after, got, want)
		}
	}
}

func TestNeverIsTheZeroTime(t *testing.T) {
	if got := (Cadence{}).Next(time.Unix(0, 0), nil); !got.IsZero() {
		t.Errorf("the zero cadence fires at %s", got)
	}
	for _, after := range []time.Time{time.Date(9999, 12, 31, 23, 59, 0, 0, time.UTC), time.Unix(1<<60, 0)} {
		if got := mustParse(t, "0 0 * * *").Next(after, time.UTC); !got.IsZero() {
			t.Errorf("after %s it fires at %s", after, got)
		}
	}
}
