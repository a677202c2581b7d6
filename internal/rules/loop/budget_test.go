package loop_test

import (
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// The zone of a machine moves no window: at 23:30 in New York it is the next day,
// and at the end of a month the next month, in which all other machines count too.
func TestWindowsAreThoseOfUTCWhereverAMachineIs(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	auckland, err := time.LoadLocation("Pacific/Auckland")
	if err != nil {
		t.Fatal(err)
	}
	day := func(m time.Month, d int) time.Time { return time.Date(2026, m, d, 0, 0, 0, 0, time.UTC) }
	for name, c := range map[string]struct {
		now                            time.Time
		day, nextDay, month, nextMonth time.Time
	}{
		"23:30 in New York, in winter":     {time.Date(2026, 11, 21, 23, 30, 0, 0, newYork), day(11, 22), day(11, 23), day(11, 1), day(12, 1)},
		"a second before midnight in UTC":  {time.Date(2026, 11, 21, 18, 59, 59, 0, newYork), day(11, 21), day(11, 22), day(11, 1), day(12, 1)},
		"midnight in UTC":                  {time.Date(2026, 11, 21, 19, 0, 0, 0, newYork), day(11, 22), day(11, 23), day(11, 1), day(12, 1)},
		"23:30 on the last day of a month": {time.Date(2026, 11, 30, 23, 30, 0, 0, newYork), day(12, 1), day(12, 2), day(12, 1), day(1, 1).AddDate(1, 0, 0)},
		"the day on which clocks go back":  {time.Date(2026, 11, 1, 23, 30, 0, 0, newYork), day(11, 2), day(11, 3), day(11, 1), day(12, 1)},
		"the day on which they go forward": {time.Date(2026, 3, 8, 19, 59, 0, 0, newYork), day(3, 8), day(3, 9), day(3, 1), day(4, 1)},
		"a morning in Auckland":            {time.Date(2026, 11, 1, 9, 0, 0, 0, auckland), day(10, 31), day(11, 1), day(10, 1), day(11, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			for what, at := range map[string][2]time.Time{
				"the day begins": {loop.WindowDay.Start(c.now), c.day}, "the day ends": {loop.WindowDay.End(c.now), c.nextDay},
				"the month begins": {loop.WindowMonth.Start(c.now), c.month}, "the month ends": {loop.WindowMonth.End(c.now), c.nextMonth},
			} {
				if at[0] != at[1] {
					t.Errorf("%s at %v, want %v", what, at[0], at[1])
				}
			}
			if start, end := loop.WindowRun.Start(c.now), loop.WindowRun.End(c.now); !start.IsZero() || !end.IsZero() {
				t.Errorf("a run is counted from %v to %v, want no clock", start, end)
			}
		})
	}
}
