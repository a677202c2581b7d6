package arch

// httpMutants take out what surfaces over HTTP refuse and bound.
var httpMutants = []mutant{
	{
		"a page of another site is answered", "internal/httpguard/httpguard.go",
		[][2]string{{"if err := crossOrigin.Check(asked); err != nil {", "if err := crossOrigin.Check(asked); err != nil && o.AnyName {"}},
		"compose.TestAttack103NoPageAsksAnything",
	},
	{
		"a page of another site may read", "internal/httpguard/httpguard.go",
		[][2]string{{"asked.Method = http.MethodPost", "asked.Method = r.Method"}},
		"httpguard.TestOnlyProgramsAndPagesOfTheSameAddressAreLetThrough",
	},
	{
		"any name of a host is taken", "internal/httpguard/httpguard.go",
		[][2]string{{"if !o.AnyName && !isLoopback", "if o.AnyName && !isLoopback"}},
		"compose.TestAttack103NoPageAsksAnything",
	},
	{
		"answers may be framed", "internal/httpguard/httpguard.go",
		[][2]string{{"default-src 'none'; frame-ancestors 'none'", "default-src 'none'"}},
		"compose.TestAttack107NoAnswerIsShownInAFrameOrReadByAPage",
	},
	{
		"a body may take for ever", "internal/httpguard/httpguard.go",
		[][2]string{{"Add(bodyTime))", "Add(1000 * bodyTime))"}},
		"daemon.TestNobodyHoldsAConnectionByBeingSlow",
	},
	{
		"a client that does not read is waited for", "internal/httpguard/httpguard.go",
		[][2]string{{"Now().Add(w.patience))", "Now().Add(1000 * w.patience))"}},
		"mcp.TestAttack118ClientsThatNeverReadHoldUpNotesForAWhileAndThenNoMore",
	},
	{
		"an idle connection is never closed", "internal/daemon/socket.go",
		[][2]string{{"IdleTimeout: idleTime,", "IdleTimeout: 60 * idleTime,"}},
		"daemon.TestNobodyHoldsAConnectionByBeingSlow",
	},
	{
		"a listener has any number of connections", "internal/daemon/socket.go",
		[][2]string{{"netutil.LimitListener(l, most)", "netutil.LimitListener(l, 100*most)"}},
		"daemon.TestAListenerHasSoManyConnectionsAtMost",
	},
	{
		"a token has any number of sessions", "internal/mcp/sessions.go",
		[][2]string{{"if n < mostSessions {", "if n < 100*mostSessions {"}},
		"mcp.TestAttack116AThousandIdleSessionsAreHeldInBounds",
	},
	{
		"a session that is used is ended for another", "internal/mcp/sessions.go",
		[][2]string{{"u.last, u.open = s.uses, u.open+1", "u.open = u.open + 1"}},
		"mcp.TestAttack116AThousandIdleSessionsAreHeldInBounds",
	},
	{
		"wrong tokens are always answered", "internal/mcp/sessions.go",
		[][2]string{{"return g.recent[host] <= mostGuesses", "return g.recent[host] <= 1000*mostGuesses"}},
		"mcp.TestAttack115GuessersAreAnsweredRarelyAndTheRightTokenAlways",
	},
	{
		"the right token waits for guessers", "internal/mcp/http.go",
		[][2]string{{"if given && !isUser(byUser, userOf(strings.TrimSpace(token))) && !guessed", "if given && token != \"\" && !guessed"}},
		"mcp.TestAttack115GuessersAreAnsweredRarelyAndTheRightTokenAlways",
	},
	{
		"what follows a message is dropped", "internal/mcp/http.go",
		[][2]string{{"if said := frame.Refusal(body, err); said != nil {", "if said := frame.Refusal(body, err); said != nil && err != nil {"}},
		"mcp.TestAttack116NoMessageOverHTTPIsAnsweredTwiceOrUnderstoodByHalf",
	},
	{
		"an agent names files", "internal/api/look.go",
		[][2]string{{"(by.Role == loop.RoleAgent || by.Role == loop.RoleViewer) &&", "by.Role == loop.RoleViewer &&"}},
		"compose.TestAttack119NoNameLeadsOutOfTheWorkspace",
	},
	{
		"a run is found by its id in every workspace", "internal/lookup/reach.go",
		[][2]string{{"if err == nil && l.WorkspaceID != w.ID {", "if err == nil && l.WorkspaceID == \"\" {"}},
		"compose.TestNoVerbReachesWhatIsOfAnotherWorkspace",
	},
	{
		"somebody waits for a run of another workspace", "internal/runs/look.go",
		[][2]string{{"_, err := s.ws.RunByID(ctx, r, runID)", "_, err := r.Run(ctx, runID)"}},
		"compose.TestNoVerbReachesWhatIsOfAnotherWorkspace",
	},
	{
		"a run works on a step that its loop has not", "internal/runs/prepare.go",
		[][2]string{{"if err := s.checkStep(ctx, p.Target.Loop, r.Overrides.Step); err != nil {", "if err := s.checkStep(ctx, p.Target.Loop, \"\"); err != nil {"}},
		"compose.TestNoVerbReachesWhatIsOfAnotherWorkspace",
	},
	{
		"a message answers one of another workspace", "internal/boards/message.go",
		[][2]string{{"if m.Answers != \"\" {", "if m.Answers == \" \" {"}},
		"compose.TestNoVerbReachesWhatIsOfAnotherWorkspace",
	},
	{
		"a ref names a run of another repository", "internal/runs/snapshots.go",
		[][2]string{{"run, err := s.ws.RunByID(ctx, r, id)", "run, err := r.Run(ctx, id)"}},
		"runs.TestARefThatNamesARunOfAnotherRepositoryIsNobodysWork",
	},
	{
		"equal calls at once are all carried out", "internal/store/calls.go",
		[][2]string{{"holder = $6 OR lease_until_ms < {now})", "holder = $6 OR lease_until_ms > 0)"}},
		"compose.TestOfEqualCallsAtOnceOneIsCarriedOut",
	},
	{
		"a claim that was taken over answers", "internal/store/calls.go",
		[][2]string{{"AND fence = $3 AND answer = ''`\n)", "AND fence >= $3 AND answer = ''`\n)"}, {"c.Key), c.Fence)\n}\n\n// changeCall", "c.Key), 0)\n}\n\n// changeCall"}},
		"store.TestOneProcessAtATimeCarriesACallOut",
	},
	{
		"what a call makes and its answer are two transactions", "internal/boards/message.go",
		[][2]string{{"return tx.AnswerCall(ctx, s.claim, v)", "return nil"}},
		"compose.TestACallWhoseProcessDiesIsCarriedOutOnce",
	},
	{
		"the run of a call is not looked for by its key", "internal/api/once.go",
		[][2]string{{"if c.Key == \"\" {\n\t\treturn f, false, nil", "if c.Key != \"\" {\n\t\treturn f, false, nil"}},
		"compose.TestACallWhoseProcessDiesIsCarriedOutOnce",
	},
	{
		"a call is made again of which nobody knows what it did", "internal/api/once.go",
		[][2]string{{"known.Begun && onceBy[i.Name] == unknown {", "known.Begun && onceBy[i.Name] == 0 {"}},
		"compose.TestACallThatNobodyKnowsTheEndOfIsNotMadeAgain",
	},
	{
		"a name in a request may come twice", "internal/api/server.go",
		[][2]string{{"Values: 100_000}", "Values: 100_000, Twice: true}"}},
		"compose.TestAttack131BombsOfJSONAreRefusedOverHTTP",
	},
	{
		"a transcript is unpacked to its end", "internal/store/pack.go",
		[][2]string{{"io.LimitReader(zip, packedText+1)", "io.LimitReader(zip, 100*packedText+1)"}, {"len(plain) > packedText {\n\t\terr", "len(plain) > 100*packedText {\n\t\terr"}},
		"store.TestAttack128ACompressedTranscriptThatGrowsWithoutEndIsRefused",
	},
}
