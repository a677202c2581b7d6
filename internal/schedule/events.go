package schedule

import "github.com/pawl-run/pawl/internal/loop"

// Scene is what decides about the events that wait for a loop.
type Scene struct {
	Stopped bool   // a kill switch is set
	Live    bool   // a run of the loop is live
	Queued  string // id of a run that another event has fired and that has not begun; empty: there is none
}

// DecideEvents says what becomes of the events that wait for a loop and whose time has
// come. A run that has not begun takes them all in. Otherwise the first of them fires a
// run, whose id the caller sets, and which has the others too. While the loop is stopped or
// at work they wait: none is ever dropped.
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
