package agent

import (
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestALimitThatIsSaidInWordsHasItsClassAndItsReset(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 22, 19, 30, 0, 0, time.UTC) // A Sunday; 20:30 in Berlin.
	utc := func(day, hour, minute int) time.Time { return time.Date(2026, 11, day, hour, minute, 0, 0, time.UTC) }
	for words, want := range map[string]struct {
		class loop.FailureClass
		reset time.Time
	}{
		"You've hit your session limit · resets 3am":                          {loop.FailureRateLimit, utc(23, 3, 0)},
		"You've hit your 5-hour limit · resets 3am (Europe/Berlin)":           {loop.FailureRateLimit, utc(23, 2, 0)},
		"You’ve hit your 5-hour limit · resets 9pm (Europe/Berlin)":           {loop.FailureRateLimit, utc(22, 20, 0)},
		"5-hour limit reached ∙ resets 8pm":                                   {loop.FailureRateLimit, utc(22, 20, 0)},
		"Session limit reached ∙ resets 7:30pm":                               {loop.FailureRateLimit, utc(23, 19, 30)}, // Not this very minute.
		"Weekly limit reached ∙ resets Oct 9 at 5am":                          {loop.FailureRateLimit, time.Time{}},     // Too far away.
		"Weekly limit reached ∙ resets Nov 27 at 5:15am (UTC)":                {loop.FailureRateLimit, utc(27, 5, 15)},
		"Opus weekly limit reached ∙ resets Mon 12am":                         {loop.FailureRateLimit, utc(23, 0, 0)},
		"Claude AI usage limit reached|1795388400":                            {loop.FailureRateLimit, time.Unix(1795388400, 0).UTC()},
		"Claude AI usage limit reached|1795388400000":                         {loop.FailureRateLimit, time.Unix(1795388400, 0).UTC()},
		"Claude AI usage limit reached|1000000000":                            {loop.FailureRateLimit, time.Time{}}, // Long ago.
		"You're out of extra usage · resets 3:15am (America/Sao_Paulo)":       {loop.FailureRateLimit, utc(23, 6, 15)},
		"You're out of extra usage":                                           {loop.FailureQuota, time.Time{}},
		"Credit balance is too low":                                           {loop.FailureQuota, time.Time{}},
		"You've hit your usage limit. Try again in 3 days 2 hours 5 minutes.": {loop.FailureRateLimit, utc(25, 21, 35)},
		"You've hit your usage limit … try again at Nov 23rd, 2026 12:05 AM.": {loop.FailureRateLimit, utc(23, 0, 5)},
		"You've hit your usage limit … try again at Jan 1st, 2100 12:00 AM.":  {loop.FailureRateLimit, time.Time{}},
		"You've hit your limit · resets 3am (Europe/Nowhere)":                 {loop.FailureRateLimit, time.Time{}},
		"You've hit your limit · resets 25pm":                                 {loop.FailureRateLimit, time.Time{}},
		"usage limit reached, resets 14:00 (UTC)":                             {loop.FailureRateLimit, utc(23, 14, 0)},
		"the connection resets 3 times":                                       {"", time.Time{}},
		"API Error: Connection dropped":                                       {"", time.Time{}},
		"":                                                                    {"", time.Time{}},
	} {
		if class := LimitClass(words); class != want.class {
			t.Errorf("LimitClass(%q) = %q, want %q", words, class, want.class)
		}
		if at := LimitReset(words, now); !at.Equal(want.reset) {
			t.Errorf("LimitReset(%q) = %v, want %v", words, at, want.reset)
		}
	}
	if at := LimitReset("session limit · resets 3am", now.In(berlin)); !at.Equal(utc(23, 2, 0)) {
		t.Errorf("without a zone it is %v, want 3 o'clock where the machine is", at)
	}
	// The clock is put forward on the 28th of March 2027: 2:30 is 3:30.
	spring := time.Date(2027, 3, 28, 0, 0, 0, 0, berlin)
	if at := LimitReset("limit reached, resets 2:30am (Europe/Berlin)", spring); at.Before(spring) || at.Sub(spring) > 4*time.Hour {
		t.Errorf("in the hour that is left out it is %v", at)
	}
}

func FuzzLimitReset(f *testing.F) {
	for _, seed := range []string{"limit reached|1795388400", "resets Nov 27 at 5:15am (UTC)", "try again in 3 days 2 hours", "resets Mon 12am (Europe/Berlin)", "try again at Jan 1st, 2100 12:00 AM"} {
		f.Add(seed)
	}
	now := time.Date(2026, 11, 22, 19, 30, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, words string) {
		if at := LimitReset(words, now); !at.IsZero() && (!at.After(now) || at.Sub(now) > farthestReset) {
			t.Errorf("LimitReset(%q) = %v", words, at)
		}
	})
}
