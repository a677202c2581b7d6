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
