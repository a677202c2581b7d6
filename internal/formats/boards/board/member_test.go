package board_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func TestAnAgentCoolsOffAfterThreeErrorsInARow(t *testing.T) {
	var m board.Mind
	for i, want := range []time.Duration{0, 0, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 6 * time.Hour, 6 * time.Hour} {
		m = m.Erred(noon)
		until := time.Duration(0)
		if m.CoolUntil != 0 {
			until = m.CoolUntil.Time().Sub(noon)
		}
		if until != want {
			t.Errorf("after error %d it cools off for %s, want %s", i+1, until, want)
		}
	}
	if cools, why := m.Cools(noon.Add(6*time.Hour - time.Millisecond)); !cools || why != "after 8 errors in a row it works again at 2026-05-04T18:00:00Z" {
		t.Errorf("cools = %v, %q", cools, why)
	}
	if cools, _ := m.Cools(noon.Add(6 * time.Hour)); cools {
		t.Error("it cools off for longer than it says")
	}
	m = m.Succeeded(noon)
	if cools, _ := m.Cools(noon); cools || m.WorkingMemory.ErrorCount != 0 {
		t.Errorf("after a success: %+v", m)
	}
	if m = m.Erred(noon).Erred(noon); m.CoolUntil != 0 {
		t.Error("it cools off after two errors")
	}
}

func TestACoolOffNeverBecomesShorterButByASuccess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m board.Mind
		now := noon
		var last time.Duration
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, 10*3600).Draw(t, "seconds")) * time.Second)
			if rapid.IntRange(0, 9).Draw(t, "success") == 0 {
				m, last = m.Succeeded(now), 0
				continue
			}
			before := m.CoolUntil
			m = m.Erred(now)
			if m.CoolUntil < before {
				t.Fatalf("the end of the cool-off went back from %d to %d", before, m.CoolUntil)
			}
			if m.WorkingMemory.ErrorCount < 3 {
				if m.CoolUntil != 0 {
					t.Fatalf("it cools off after %d errors", m.WorkingMemory.ErrorCount)
				}
				continue
			}
			pause := m.CoolUntil.Time().Sub(now)
			if pause < last || pause < 30*time.Minute || pause > 6*time.Hour {
				t.Fatalf("a cool-off of %s after one of %s", pause, last)
			}
			last = pause
		}
	})
}

func TestAnAgentStandsByOnlyIfItLookedAShortTimeAgoAndNothingCame(t *testing.T) {
	for name, c := range map[string]struct {
		routed time.Duration // ago
		never  bool
		inbox  int
		want   bool
	}{
		"a short time ago":          {routed: 14*time.Minute + 59*time.Second, want: true},
		"something is in its inbox": {routed: time.Minute, inbox: 1},
		"fifteen minutes ago":       {routed: 15 * time.Minute},
		"never":                     {never: true},
		"in the future":             {routed: -time.Second},
	} {
		m := board.Mind{RoutedAt: board.At(noon.Add(-c.routed))}
		if c.never {
			m.RoutedAt = 0
		}
		got, why := m.StandsBy(c.inbox, noon)
		if got != c.want || got != (why != "") {
			t.Errorf("%s: %v, %q, want %v", name, got, why, c.want)
		}
	}
	if _, why := (board.Mind{RoutedAt: board.At(noon.Add(-90 * time.Second))}).StandsBy(0, noon); why != "its inbox is empty, and it looked at its boards 1m30s ago, which counts for 15m" {
		t.Error(why)
	}
}

func TestAnAgentWhoseHeartbeatIsOldIsOffline(t *testing.T) {
	for name, c := range map[string]struct {
		interval string
		ago      time.Duration
		want     board.Presence
	}{
		"just now":                      {"", 0, board.Working},
		"two intervals":                 {"", 40 * time.Minute, board.Working},
		"more than two":                 {"", 40*time.Minute + time.Millisecond, board.Offline},
		"a short interval":              {"1m", 2*time.Minute + time.Second, board.Offline},
		"an interval that cannot be":    {"soon", 39 * time.Minute, board.Working},
		"a clock that is behind others": {"1m", -time.Hour, board.Working},
	} {
		m := board.Member{Interval: c.interval}
		if got := m.Present(board.Mind{Status: board.Working, LastHeartbeat: board.At(noon.Add(-c.ago))}, noon); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if got := (board.Member{}).Present(board.Mind{Status: board.Online}, noon); got != board.Offline {
		t.Errorf("one that never had a heartbeat is %s", got)
	}
}

func TestABackoffDoublesToHalfAMinuteAndHasFullJitter(t *testing.T) {
	for i, seconds := range []float64{1, 2, 4, 8, 16, 30, 30, 30} {
		if got := board.Backoff(i+1, 0); got != 0 {
			t.Errorf("try %d: at least %s, want 0", i+1, got)
		}
		if got, want := board.Backoff(i+1, 0.5), time.Duration(seconds/2*float64(time.Second)); got != want {
			t.Errorf("try %d: %s, want %s", i+1, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		if got := board.Backoff(rapid.IntRange(-5, 1<<40).Draw(t, "try"), rapid.Float64().Draw(t, "draw")); got < 0 || got > 30*time.Second {
			t.Fatalf("a pause of %s", got)
		}
	})
}

func TestRingsKeepTheNewestFifty(t *testing.T) {
	var m board.Mind
	for i := range 120 {
		m = m.Reflect("learned "+strconv.Itoa(i), noon).Completed("tk_"+strconv.Itoa(i), 3*time.Second, noon)
	}
	r, done := m.WorkingMemory.Reflections, m.WorkingMemory.RecentTasks
	if len(r) != 50 || r[0] != "learned 70" || r[49] != "learned 119" || len(done) != 50 || done[49] != "tk_119" {
		t.Errorf("reflections %q, tasks %q", r, done)
	}
	if h := m.HealthMetrics; h.TasksCompleted != 120 || h.AvgCompletionTime != 3000 {
		t.Errorf("health %+v", h)
	}
	if got := board.Remember([]string{"a", "b"}, "a"); !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("what is remembered again is %q", got)
	}
}

func TestAPrefixIsWholeWordsOfOneCommand(t *testing.T) {
	for line, want := range map[string]board.Prefix{
		"go test":             {"go", "test"},
		`make "all of it" -k`: {"make", "all of it", "-k"},
		"go test; rm -rf .":   nil,
		"go test > out":       nil,
		"go test | tee x":     nil,
		"echo $(date)":        nil,
		"echo $HOME":          nil,
		"":                    nil,
		"go 'test":            nil,
		"A=1 go test":         nil,
	} {
		got, err := board.ParsePrefix(line)
		if !cmp.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q is %q, %v, want %q", line, got, err, want)
		}
	}
}
