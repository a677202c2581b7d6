package plan_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

func TestWhatFollowsAFailedTurn(t *testing.T) {
	const never = -1
	type between struct{ least, most time.Duration } // of At after noon
	nobody := between{never, never}                  // At is zero
	for name, c := range map[string]struct {
		class   loop.FailureClass
		attempt int
		reset   time.Duration // after noon; 0 is unknown
		again   bool
		fresh   bool
		hold    bool
		at      between
	}{
		"the vendor failed":                       {loop.FailureServer, 1, 0, true, false, false, between{0, 4 * time.Second}},
		"the vendor failed again":                 {loop.FailureServer, 2, 0, true, false, false, between{0, 16 * time.Second}},
		"the vendor failed three times":           {loop.FailureServer, 3, 0, false, false, false, nobody},
		"a crash":                                 {loop.FailureCrash, 1, 0, true, false, false, between{0, 4 * time.Second}},
		"a third crash":                           {loop.FailureCrash, 3, 0, false, false, false, nobody},
		"a hang":                                  {loop.FailureHang, 1, 0, true, false, false, between{0, 4 * time.Second}},
		"a second hang":                           {loop.FailureHang, 2, 0, false, false, false, nobody},
		"killed by others":                        {loop.FailureKilled, 1, 0, true, false, false, between{0, 4 * time.Second}},
		"killed twice":                            {loop.FailureKilled, 2, 0, false, false, false, nobody},
		"a limit that is lifted soon":             {loop.FailureRateLimit, 1, 30 * time.Second, true, false, false, between{30 * time.Second, 32 * time.Second}},
		"a limit that was lifted just now":        {loop.FailureRateLimit, 1, -30 * time.Second, true, false, false, between{0, 2 * time.Second}},
		"a limit that is lifted soon, for ever":   {loop.FailureRateLimit, 3, 30 * time.Second, false, false, true, between{20 * time.Minute, 22 * time.Minute}},
		"a limit of 40 minutes":                   {loop.FailureRateLimit, 1, 40 * time.Minute, false, false, true, between{40 * time.Minute, 42 * time.Minute}},
		"a limit of a week":                       {loop.FailureRateLimit, 1, 168 * time.Hour, false, false, true, between{168 * time.Hour, 169 * time.Hour}},
		"a limit until the next century":          {loop.FailureRateLimit, 1, 73 * 8766 * time.Hour, false, false, true, nobody},
		"a limit whose reset is long over":        {loop.FailureRateLimit, 1, -time.Hour, false, false, true, between{5 * time.Minute, 7 * time.Minute}},
		"a limit without a reset":                 {loop.FailureRateLimit, 1, 0, false, false, true, between{5 * time.Minute, 7 * time.Minute}},
		"the fourth limit in a row":               {loop.FailureRateLimit, 4, 0, false, false, true, between{40 * time.Minute, 42 * time.Minute}},
		"the hundredth limit in a row":            {loop.FailureRateLimit, 100, 0, false, false, true, between{6 * time.Hour, 6*time.Hour + 2*time.Minute}},
		"an account that is used up":              {loop.FailureQuota, 1, time.Minute, false, false, true, nobody},
		"no credential":                           {loop.FailureAuth, 1, 0, false, false, true, nobody},
		"an unknown model":                        {loop.FailureRequest, 1, 0, false, false, true, nobody},
		"a conversation that is too long":         {loop.FailureOverflow, 1, 0, true, true, false, between{0, 0}},
		"a new conversation that is too long too": {loop.FailureOverflow, 2, 0, false, false, false, nobody},
		"a refusal":                               {loop.FailureRefusal, 1, 0, false, false, false, nobody},
		"an answer that was cut":                  {loop.FailureMaxTokens, 1, 0, false, false, false, nobody},
		"too many steps":                          {loop.FailureTurns, 1, 0, false, false, false, nobody},
		"nothing that can be read":                {loop.FailureMalformed, 1, 0, false, false, false, nobody},
		"a class of a later version":              {"new", 1, 0, false, false, false, nobody},
		"an attempt that nobody counted":          {loop.FailureServer, 0, 0, true, false, false, between{0, 4 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			var reset time.Time
			if c.reset != 0 {
				reset = noon.Add(c.reset)
			}
			for seed := range uint64(200) {
				got := plan.Retry(c.class, c.attempt, reset, noon, seed)
				if got.TryAgain != c.again || got.NewSession != c.fresh || got.Hold != c.hold || got.Why == "" {
					t.Fatalf("Retry = %+v", got)
				}
				if c.at == nobody {
					if !got.At.IsZero() {
						t.Fatalf("at %v, want no time", got.At)
					}
					continue
				}
				if after := got.At.Sub(noon); after < c.at.least || after > c.at.most {
					t.Fatalf("at %v after noon, want between %v and %v", after, c.at.least, c.at.most)
				}
			}
		})
	}
}

func TestThoseWhoWaitAreSpread(t *testing.T) {
	for name, c := range map[string]struct {
		at   func(seed uint64) time.Time
		span time.Duration
	}{
		"for a server": {func(seed uint64) time.Time { return plan.Retry(loop.FailureServer, 2, time.Time{}, noon, seed).At }, 16 * time.Second},
		"for a reset": {
			func(seed uint64) time.Time {
				return plan.Retry(loop.FailureRateLimit, 1, noon.Add(time.Hour), noon, seed).At
			},
			2 * time.Minute,
		},
		"to cool off": {func(seed uint64) time.Time { return plan.CoolOff(3, noon, seed) }, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			first, last := c.at(0), c.at(0)
			for seed := range uint64(1000) {
				at := c.at(seed)
				if again := c.at(seed); !again.Equal(at) {
					t.Fatalf("seed %d: %v, then %v", seed, at, again)
				}
				if at.Before(first) {
					first = at
				}
				if at.After(last) {
					last = at
				}
			}
			if last.Sub(first) < c.span*9/10 {
				t.Errorf("1000 of them wait from %v to %v, want them over %v", first, last, c.span)
			}
		})
	}
}

func TestADriverCoolsOffAfterThreeErrors(t *testing.T) {
	for name, c := range map[string]struct {
		failed int64
		want   time.Duration
	}{
		"none":              {0, 0},
		"fewer than none":   {-1, 0},
		"two":               {2, 0},
		"three":             {3, 15 * time.Minute},
		"four":              {4, 30 * time.Minute},
		"nine":              {9, 16 * time.Hour},
		"ten":               {10, 24 * time.Hour},
		"more than fit int": {1 << 62, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			got := plan.CoolOff(c.failed, noon, 7)
			if c.want == 0 {
				if !got.IsZero() {
					t.Errorf("CoolOff = %v, want none", got)
				}
				return
			}
			if after := got.Sub(noon); after < c.want || after > c.want+2*time.Minute {
				t.Errorf("CoolOff = %v, want %v and up to 2m", after, c.want)
			}
		})
	}
}

func TestAFailureNeverMakesARunWaitLong(t *testing.T) {
	classes := []loop.FailureClass{
		loop.FailureRateLimit, loop.FailureQuota, loop.FailureAuth, loop.FailureOverflow, loop.FailureRefusal, loop.FailureMaxTokens, loop.FailureServer,
		loop.FailureCrash, loop.FailureHang, loop.FailureMalformed, loop.FailureKilled, loop.FailureTurns, loop.FailureRequest, "other",
	}
	rapid.Check(t, func(t *rapid.T) {
		attempt := rapid.Int().Draw(t, "attempt")
		reset := noon.Add(time.Duration(rapid.Int64().Draw(t, "reset")))
		got := plan.Retry(rapid.SampledFrom(classes).Draw(t, "class"), attempt, reset, noon, rapid.Uint64().Draw(t, "seed"))
		switch {
		case got.TryAgain && got.Hold:
			t.Fatal("both tried again and held")
		case got.TryAgain && (got.At.Before(noon) || got.At.After(noon.Add(time.Minute))):
			t.Fatalf("the run waits until %v", got.At)
		case got.TryAgain && attempt > 2:
			t.Fatalf("try %d is followed by another", attempt)
		case !got.At.IsZero() && (got.At.Before(noon) || got.At.After(noon.AddDate(0, 0, 33))):
			t.Fatalf("held until %v", got.At)
		}
	})
}
