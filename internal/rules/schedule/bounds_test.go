package schedule

import (
	"strings"
	"testing"
	"time"
)

func TestEveryMonthAndWeekdayHasItsName(t *testing.T) {
	start := time.Date(2025, 12, 31, 23, 59, 0, 0, time.UTC)
	for i, name := range []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"} {
		want := time.Date(2026, time.Month(i+1), 1, 0, 0, 0, 0, time.UTC)
		if got := mustParse(t, "0 0 1 "+name+" *").Next(start, time.UTC); !got.Equal(want) {
			t.Errorf("%s fires at %s, want %s", name, got, want)
		}
	}
	for i, name := range []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"} {
		if got := mustParse(t, "0 0 * * "+name).Next(start, time.UTC).Weekday(); got != time.Weekday(i) {
			t.Errorf("%s fires on a %s", name, got)
		}
	}
}

// The first day of 1970 was a Thursday.
func TestAWeekWithoutAnAnchorBeginsOnThursday(t *testing.T) {
	after := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	if got, want := mustParse(t, "1w").Next(after, nil), time.Date(2026, 9, 3, 0, 0, 0, 0, time.UTC); !got.Equal(want) {
		t.Errorf("1w fires at %s, want %s", got, want)
	}
}

func TestBeforeItsAnchorAnIntervalFiresAtEveryStepToo(t *testing.T) {
	anchor := time.Date(2026, 1, 1, 0, 3, 7, 500, time.UTC)
	c := mustParse(t, "10m").Anchored(anchor)
	for second := range 3 * 600 {
		after := anchor.Add(-time.Duration(second) * time.Second)
		want := anchor.Add(-time.Duration(second/600) * 10 * time.Minute)
		if second%600 == 0 {
			want = want.Add(10 * time.Minute)
		}
		if got := c.Next(after, nil); !got.Equal(want) {
			t.Fatalf("Next(%s) = %s, want %s", after, got, want)
		}
	}
}

func TestATimeThatTheClockShowsTwiceFiresTheFirstTimeOnly(t *testing.T) {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	// On this night 1:30 comes at 5:30 and at 6:30 UTC.
	after := time.Date(2026, 11, 1, 6, 30, 0, 0, time.UTC)
	if got, want := mustParse(t, "45 1 * * *").Next(after, zone), time.Date(2026, 11, 2, 6, 45, 0, 0, time.UTC); !got.Equal(want) {
		t.Errorf("fires at %s, want %s", got.UTC(), want)
	}
}

func TestCronHasNoInterval(t *testing.T) {
	if every, ok := mustParse(t, "0 0 * * *").Interval(); ok {
		t.Errorf("Interval = %v, true", every)
	}
}

func TestWhatCannotBeReadIsRefusedAtItsBounds(t *testing.T) {
	for _, text := range []string{
		"0 0 * * XX#2", "0 0 * * XXL", "0 0 * * 1,8#2", "0 0 * * 1,8L", "999999w", "1000000m",
		"30501w", "213504d", // They overflow to a few days.
	} {
		if c, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", text, c)
		}
	}
	if every, ok := mustParse(t, "100000m").Interval(); !ok || every != 100_000*time.Minute {
		t.Errorf("100000m is %v", every)
	}
}

func TestAnErrorQuotesNoMoreThanTheBeginningOfALongItem(t *testing.T) {
	long := strings.Repeat("X", 30)
	_, err := Parse("0 0 * * " + long)
	if err == nil || !strings.Contains(err.Error(), `"`+long[:20]+`…"`) {
		t.Errorf("Parse = %v, want 20 letters and an ellipsis", err)
	}
	if _, err := Parse("0 0 * * " + long[:20]); err == nil || !strings.Contains(err.Error(), `"`+long[:20]+`"`) {
		t.Errorf("Parse = %v, want all 20 letters", err)
	}
}

func TestACadenceFiresInTheYears1To9999Only(t *testing.T) {
	for after, fires := range map[time.Time]bool{
		time.Date(0, 12, 31, 23, 59, 59, 0, time.UTC): false,
		time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC):      true,
		time.Date(9999, 6, 1, 0, 0, 0, 0, time.UTC):   true,
		time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC):  false,
	} {
		for _, text := range []string{"1h", "0 0 * * *", "*/5 * * * *"} {
			if got := mustParse(t, text).Next(after, nil); got.IsZero() == fires || fires && !got.After(after) {
				t.Errorf("%s: after %s it fires at %s", text, after, got)
			}
		}
	}
}
