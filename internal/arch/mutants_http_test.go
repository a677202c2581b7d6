package arch

// httpMutants take out what surfaces over HTTP refuse and bound.
var httpMutants = []mutant{
	{
		"a page of another site is answered", "internal/surface/httpguard/httpguard.go",
		[][2]string{{"if err := crossOrigin.Check(asked); err != nil {", "if err := crossOrigin.Check(asked); err != nil && o.AnyName {"}},
		"surface/compose.TestAttack103NoPageAsksAnything",
	},
	{
		"a page of another site may read", "internal/surface/httpguard/httpguard.go",
		[][2]string{{"asked.Method = http.MethodPost", "asked.Method = r.Method"}},
		"surface/httpguard.TestOnlyProgramsAndPagesOfTheSameAddressAreLetThrough",
	},
	{
		"any name of a host is taken", "internal/surface/httpguard/httpguard.go",
		[][2]string{{"if !o.AnyName && !isLoopback", "if o.AnyName && !isLoopback"}},
		"surface/compose.TestAttack103NoPageAsksAnything",
	},
	{
		"answers may be framed", "internal/surface/httpguard/httpguard.go",
		[][2]string{{"default-src 'none'; frame-ancestors 'none'", "default-src 'none'"}},
		"surface/compose.TestAttack107NoAnswerIsShownInAFrameOrReadByAPage",
	},
	{
		"a body may take for ever", "internal/surface/httpguard/httpguard.go",
		[][2]string{{"Add(bodyTime))", "Add(1000 * bodyTime))"}},
		"surface/daemon.TestNobodyHoldsAConnectionByBeingSlow",
	},
	{
		"a client that does not read is waited for", "internal/surface/httpguard/httpguard.go",
		[][2]string{{"Now().Add(w.patience))", "Now().Add(1000 * w.patience))"}},
		"surface/mcp.TestAttack118ClientsThatNeverReadHoldUpNotesForAWhileAndThenNoMore",
	},
	{
		"an idle connection is never closed", "internal/surface/daemon/socket.go",
		[][2]string{{"IdleTimeout: idleTime,", "IdleTimeout: 60 * idleTime,"}},
		"surface/daemon.TestNobodyHoldsAConnectionByBeingSlow",
	},
	{
		"a listener has any number of connections", "internal/surface/daemon/socket.go",
		[][2]string{{"netutil.LimitListener(l, most)", "netutil.LimitListener(l, 100*most)"}},
		"surface/daemon.TestAListenerHasSoManyConnectionsAtMost",
	},
	{
		"a token has any number of sessions", "internal/surface/mcp/sessions.go",
		[][2]string{{"if n < mostSessions {", "if n < 100*mostSessions {"}},
		"surface/mcp.TestAttack116AThousandIdleSessionsAreHeldInBounds",
	},
	{
		"a session that is used is ended for another", "internal/surface/mcp/sessions.go",
		[][2]string{{"u.last, u.open = s.uses, u.open+1", "u.open = u.open + 1"}},
		"surface/mcp.TestAttack116AThousandIdleSessionsAreHeldInBounds",
	},
	{
		"wrong tokens are always answered", "internal/surface/mcp/sessions.go",
		[][2]string{{"return g.recent[host] <= mostGuesses", "return g.recent[host] <= 1000*mostGuesses"}},
		"surface/mcp.TestAttack115GuessersAreAnsweredRarelyAndTheRightTokenAlways",
	},
	{
		"the right token waits for guessers", "internal/surface/mcp/http.go",
		[][2]string{{"if given && !isUser(byUser, userOf(strings.TrimSpace(token))) && !guessed", "if given && token != \"\" && !guessed"}},
		"surface/mcp.TestAttack115GuessersAreAnsweredRarelyAndTheRightTokenAlways",
	},
	{
		"what follows a message is dropped", "internal/surface/mcp/http.go",
		[][2]string{{"if said := frame.Refusal(body, err); said != nil {", "if said := frame.Refusal(body, err); said != nil && err != nil {"}},
		"surface/mcp.TestAttack116NoMessageOverHTTPIsAnsweredTwiceOrUnderstoodByHalf",
	},
	{
		"an agent names files", "internal/surface/api/look.go",
		[][2]string{{"(by.Role == loop.RoleAgent || by.Role == loop.RoleViewer) &&", "by.Role == loop.RoleViewer &&"}},
		"surface/compose.TestAttack119NoNameLeadsOutOfTheWorkspace",
	},
	{
		"a run is found by its id in every workspace", "internal/verbs/lookup/reach.go",
		[][2]string{{"if err == nil && l.WorkspaceID != w.ID {", "if err == nil && l.WorkspaceID == \"\" {"}},
		"surface/compose.TestNoVerbReachesWhatIsOfAnotherWorkspace",
	},
	{
		"somebody waits for a run of another workspace", "internal/verbs/runs/look.go",
		[][2]string{{"_, err := s.ws.RunByID(ctx, r, runID)", "_, err := r.Run(ctx, runID)"}},
		"surface/compose.TestNoVerbReachesWhatIsOfAnotherWorkspace",
	},
	{
		"a run works on a step that its loop has not", "internal/verbs/runs/prepare.go",
		[][2]string{{"if err := s.checkStep(ctx, p.Target.Loop, r.Overrides.Step); err != nil {", "if err := s.checkStep(ctx, p.Target.Loop, \"\"); err != nil {"}},
		"surface/compose.TestNoVerbReachesWhatIsOfAnotherWorkspace",
	},
	{
		"a message answers one of another workspace", "internal/formats/boards/boards/message.go",
		[][2]string{{"if m.Answers != \"\" {", "if m.Answers == \" \" {"}},
		"surface/compose.TestNoVerbReachesWhatIsOfAnotherWorkspace",
	},
	{
		"a ref names a run of another repository", "internal/verbs/runs/snapshots.go",
		[][2]string{{"run, err := s.ws.RunByID(ctx, r, id)", "run, err := r.Run(ctx, id)"}},
		"verbs/runs.TestARefThatNamesARunOfAnotherRepositoryIsNobodysWork",
	},
	{
		"equal calls at once are all carried out", "internal/record/store/calls.go",
		[][2]string{{"holder = $6 OR lease_until_ms < {now})", "holder = $6 OR lease_until_ms > 0)"}},
		"surface/compose.TestOfEqualCallsAtOnceOneIsCarriedOut",
	},
	{
		"a claim that was taken over answers", "internal/record/store/calls.go",
		[][2]string{{"AND fence = $3 AND answer = ''`\n)", "AND fence >= $3 AND answer = ''`\n)"}, {"c.Key), c.Fence)\n}\n\n// changeCall", "c.Key), 0)\n}\n\n// changeCall"}},
		"record/store.TestOneProcessAtATimeCarriesACallOut",
	},
	{
		"what a call makes and its answer are two transactions", "internal/formats/boards/boards/message.go",
		[][2]string{{"return tx.AnswerCall(ctx, s.claim, v)", "return nil"}},
		"surface/compose.TestACallWhoseProcessDiesIsCarriedOutOnce",
	},
	{
		"the run of a call is not looked for by its key", "internal/surface/api/runs.go",
		[][2]string{{"if c.Key == \"\" {\n\t\treturn f, false, nil", "if c.Key != \"\" {\n\t\treturn f, false, nil"}},
		"surface/compose.TestACallWhoseProcessDiesIsCarriedOutOnce",
	},
	{
		"a call with an unknown end is carried out a second time", "internal/verbs/verb/once.go",
		[][2]string{{"known.Begun && i.Once == Unknown {", "known.Begun && i.Once == 0 {"}},
		"surface/compose.TestACallThatNobodyKnowsTheEndOfIsNotMadeAgain",
	},
	{
		"a name in a request may come twice", "internal/surface/api/server.go",
		[][2]string{{"Values: 100_000}", "Values: 100_000, Twice: true}"}},
		"surface/compose.TestAttack131BombsOfJSONAreRefusedOverHTTP",
	},
	{
		"a transcript is unpacked to its end", "internal/record/store/pack.go",
		[][2]string{{"io.LimitReader(zip, packedText+1)", "io.LimitReader(zip, 100*packedText+1)"}, {"len(plain) > packedText {\n\t\terr", "len(plain) > 100*packedText {\n\t\terr"}},
		"record/store.TestAttack128ACompressedTranscriptThatGrowsWithoutEndIsRefused",
	},
}
