package schedule_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/schedule"
)

func TestEventsThatWaitFireOneRunOrGoOnWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		scene schedule.Scene
		want  string
	}{
		"nothing is in the way":                    {schedule.Scene{}, "ran, coalesced"},
		"a run is live":                            {schedule.Scene{Live: true}, "waits running, waits running"},
		"a kill switch is set":                     {schedule.Scene{Stopped: true}, "waits paused, waits paused"},
		"a kill switch is set while a run is live": {schedule.Scene{Stopped: true, Live: true}, "waits paused, waits paused"},
		"a run has not begun":                      {schedule.Scene{Queued: "r"}, "coalesced r, coalesced r"},
		"one has not begun and another is live":    {schedule.Scene{Queued: "r", Live: true}, "coalesced r, coalesced r"},
		"one has not begun, and a switch is set":   {schedule.Scene{Queued: "r", Stopped: true}, "waits paused, waits paused"},
	} {
		t.Run(name, func(t *testing.T) {
			waiting := []loop.FiringEvent{{ID: "a", Verdict: loop.FiringWaits}, {ID: "b", Verdict: loop.FiringWaits, Reason: loop.WaitsRunning}}
			var got []string
			for _, e := range schedule.DecideEvents(waiting, c.scene) {
				got = append(got, strings.Join(strings.Fields(fmt.Sprint(e.Verdict, " ", e.Reason, " ", e.RunID)), " "))
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("they are %q, want %s", got, c.want)
			}
			if waiting[0].Verdict != loop.FiringWaits {
				t.Error("the list of the caller was changed")
			}
		})
	}
}

func TestNoEventIsDroppedAndAtMostOneFires(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := schedule.Scene{
			Stopped: rapid.Bool().Draw(rt, "stopped"), Live: rapid.Bool().Draw(rt, "live"), Queued: rapid.SampledFrom([]string{"", "r"}).Draw(rt, "queued"),
		}
		list := make([]loop.FiringEvent, rapid.IntRange(0, 20).Draw(rt, "events"))
		for i := range list {
			list[i] = loop.FiringEvent{ID: fmt.Sprint(i), Verdict: loop.FiringWaits}
		}
		ran, waits := 0, 0
		decided := schedule.DecideEvents(list, s)
		for i, e := range decided {
			if e.ID != list[i].ID {
				rt.Fatalf("event %d is %s", i, e.ID)
			}
			switch e.Verdict {
			case loop.FiringRan:
				ran++
			case loop.FiringWaits:
				waits++
			case loop.FiringCoalesced:
			}
		}
		if len(decided) != len(list) || ran > 1 || waits > 0 && waits < len(list) || ran == 1 && (s.Stopped || s.Live || s.Queued != "") {
			rt.Fatalf("of %d events %d ran and %d wait: %+v", len(list), ran, waits, s)
		}
	})
}
