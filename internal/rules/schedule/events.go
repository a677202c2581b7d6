package schedule

import "github.com/pawl-run/pawl/internal/rules/loop"

// Scene is what decides about the events that wait for a loop.
type Scene struct {
	Stopped bool   // a kill switch is set
	Live    bool   // a run of the loop is live
	Queued  string // id of a run that another event has fired and that has not begun; empty: there is none
}

// DecideEvents decides about the events of a loop that are due. If a run of the loop is
// queued, it takes them all. Otherwise the first event fires a run, whose id the caller
// sets, and that run takes the others too. While the loop is stopped or at work, they wait:
// no event is ever dropped.
func DecideEvents(list []loop.FiringEvent, s Scene) []loop.FiringEvent {
	decided := make([]loop.FiringEvent, len(list))
	for i, e := range list {
		switch {
		case s.Stopped:
			e.Reason = loop.WaitsPaused
		case s.Queued != "":
			e.Verdict, e.Reason, e.RunID = loop.FiringCoalesced, "", s.Queued
		case s.Live:
			e.Reason = loop.WaitsRunning
		case i == 0:
			e.Verdict, e.Reason = loop.FiringRan, ""
		default:
			e.Verdict, e.Reason = loop.FiringCoalesced, ""
		}
		decided[i] = e
	}
	return decided
}
