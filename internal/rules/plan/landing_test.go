package plan_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

func TestWhatARunDoesAboutAYesThatHasNotLanded(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		tries   int
		tried   time.Duration // before now
		expires time.Duration // after now
		want    plan.LandingMove
		reason  loop.Reason
		at      time.Duration // after now
	}{
		"its run never began":                 {0, 0, time.Hour, plan.LandingTry, "", 0},
		"it failed a moment ago":              {1, 0, time.Hour, plan.LandingWait, loop.ReasonLandingWaits, 5 * time.Minute},
		"it failed five minutes ago":          {1, 5 * time.Minute, time.Hour, plan.LandingTry, "", 0},
		"it failed twice":                     {2, 5 * time.Minute, time.Hour, plan.LandingWait, loop.ReasonLandingWaits, 15 * time.Minute},
		"it failed three times":               {3, time.Hour, 24 * time.Hour, plan.LandingWait, loop.ReasonLandingWaits, 20 * time.Minute},
		"it failed four times":                {4, time.Hour, 24 * time.Hour, plan.LandingWait, loop.ReasonLandingWaits, 260 * time.Minute},
		"it failed four times, long ago":      {4, 6 * time.Hour, 24 * time.Hour, plan.LandingTry, "", 0},
		"it failed five times":                {5, 48 * time.Hour, 24 * time.Hour, plan.LandingRest, loop.ReasonLandingRests, 0},
		"it is due, and the yes has expired":  {1, time.Hour, 0, plan.LandingExpire, "", 0},
		"it rests, and the yes has expired":   {5, time.Hour, -time.Hour, plan.LandingExpire, "", 0},
		"the clock was set back after a try":  {1, -time.Hour, 24 * time.Hour, plan.LandingTry, "", 0},
		"no try, and the yes expires in time": {0, 0, time.Nanosecond, plan.LandingTry, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := loop.Approval{Tries: c.tries, Tried: now.Add(-c.tried), Expires: now.Add(c.expires)}
			got := plan.NextLanding(a, now)
			want := plan.LandingDecision{Move: c.want, Reason: c.reason, Why: got.Why}
			if c.at != 0 {
				want.At = now.Add(c.at)
			}
			if got != want || got.Why == "" {
				t.Errorf("NextLanding = %+v, want %+v with a reason in words", got, want)
			}
		})
	}
}

// However often a loop wakes, a yes is tried five times at most without a person, each time
// after a longer wait, and never once it has expired.
func TestALandingIsTriedFiveTimesAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
		a := loop.Approval{Expires: start.Add(time.Duration(rapid.Int64Range(0, int64(7*24*time.Hour)).Draw(t, "valid")))}
		tries, last := 0, time.Duration(0)
		now := start
		for _, gap := range rapid.SliceOf(rapid.Int64Range(0, int64(8*time.Hour))).Draw(t, "wakes") {
			now = now.Add(time.Duration(gap))
			d := plan.NextLanding(a, now)
			if d.Move == plan.LandingWait && (!d.At.After(now) || d.At.Sub(a.Tried) > 6*time.Hour) {
				t.Fatalf("it waits until %s at %s after a try at %s", d.At, now, a.Tried)
			}
			if d.Move != plan.LandingTry {
				continue
			}
			if !now.Before(a.Expires) {
				t.Fatalf("it is tried at %s, and the yes was valid until %s", now, a.Expires)
			}
			if wait := now.Sub(a.Tried); tries > 0 && wait < last {
				t.Fatalf("try %d comes after %s, the one before after %s at least", tries+1, wait, last)
			}
			if tries > 0 {
				last = max(5*time.Minute, min(4*last, 6*time.Hour))
			}
			tries++
			a.Tries, a.Tried = tries, now
		}
		if tries > plan.MaxLandings {
			t.Fatalf("it was tried %d times", tries)
		}
	})
}
