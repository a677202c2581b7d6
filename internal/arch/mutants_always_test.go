package arch

// alwaysMutants take out what keeps loops that come back by themselves from firing twice,
// too often or never.
var alwaysMutants = []mutant{
	{
		"a loop is fired from the row that was read before it was locked", "internal/cycle/trigger/trigger.go",
		[][2]string{{"if !ok || l.Registered != d.Registered {", "if !ok {"}, {"d.Loop = l\n", "d.Ticked = l.Ticked\n"}},
		"cycle/trigger.TestNoPlannedTimeIsLostOrFiresTwice",
	},
	{
		"any number of missed runs is made up for", "internal/rules/schedule/due.go",
		[][2]string{{"runs = min(len(fires), MaxCatchUp)", "runs = len(fires)"}},
		"rules/schedule.TestWhatBecomesOfPlannedTimes",
	},
	{
		"a jitter reaches past the next firing", "internal/rules/schedule/due.go",
		[][2]string{{"most = min(most, next.Sub(planned)-time.Second)", "most = max(most, next.Sub(planned)+time.Second)"}},
		"rules/schedule.TestAJitterSpreadsAndIsTheSameEachTime",
	},
	{
		"an event fires a loop that a switch stops", "internal/rules/schedule/events.go",
		[][2]string{{"case s.Stopped:", "case s.Stopped && s.Live:"}},
		"rules/schedule.TestEventsThatWaitFireOneRunOrGoOnWaiting",
	},
	{
		"an event that its run may not act on is spent", "internal/cycle/engine/events.go",
		[][2]string{{"rt.ReturnUntilAnswer(ctx) })", "nil })"}},
		"cycle/engine.TestARunThatMayNotActBeforeAnAnswerKeepsItsEventsUntilThen",
	},
	{
		"an answer frees no event that waits for it", "internal/record/store/events.go",
		[][2]string{{"const endAnswerWait = `UPDATE firing_events SET reason = ''", "const endAnswerWait = `UPDATE firing_events SET reason = 'answer'"}},
		"cycle/trigger.TestAnEventThatItsRunMayNotActOnWaitsForTheAnswerOrForAnother",
	},
	{
		"an event that stops its run each time comes for ever", "internal/record/store/events.go",
		[][2]string{{"run_id <> '' AND stopped < $3`", "run_id <> '' AND returned < 100 * $3`"}},
		"cycle/trigger.TestAnEventThatStopsItsRunEachTimeIsGivenUp",
	},
	{
		"a delivery that comes again is taken again", "internal/cycle/listen/webhook.go",
		[][2]string{{"if fresh == 0 {", "if fresh < 0 {"}},
		"surface/compose.TestAttack086ADeliveryFiresItsLoopOnce",
	},
	{
		"a delivery that was signed long ago is taken", "internal/ground/webhook/webhook.go",
		[][2]string{{"sent.Before(now.Add(-Tolerance))", "sent.Before(now.Add(-1000 * Tolerance))"}},
		"ground/webhook.TestAttack086OnlyWhatWasSignedNowWithTheKeyIsVerified",
	},
	{
		"nobody is told that a late loop comes again", "internal/verbs/notify/late.go",
		[][2]string{{"over = append(over, n.Key)", "over = append(over, n.Key+n.LoopID)"}},
		"verbs/notify.TestALoopThatStopsComingIsToldOnceAndOnceThatItComesAgain",
	},
}
