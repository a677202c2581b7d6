package arch

// agentMutants take out what keeps an agent to the workspaces, loops and definitions that people
// have let it reach.
var agentMutants = []mutant{
	{
		"whoever is no person reaches what nobody has registered", "internal/verbs/verb/reach.go",
		[][2]string{{"; !p.Lookup.Placed {", "; p == nil {"}},
		"surface/api.TestWhoIsNoPersonReachesRegisteredWorkspacesOnly",
	},
	{
		"an agent registers the workspace that it asks about", "internal/verbs/verb/reach.go",
		[][2]string{{"w, err := c.Open(ctx, false)", "w, err := c.Open(ctx, i.Writes)"}},
		"surface/api.TestWhoIsNoPersonReachesRegisteredWorkspacesOnly",
	},
	{
		"a workspace is registered because its git directory says so", "internal/record/node/place.go",
		[][2]string{{"placed = at.placed\n", "placed = ws.ID != \"\"\n"}},
		"record/node.TestOnlyAWorkspaceThatTheStoreHasHereIsPlaced",
	},
	{
		"a grant is the name of a loop, of whatever workspace", "internal/rules/loop/grant.go",
		[][2]string{{"if l.Workspace == workspace {", "if l.Workspace != \"\" {"}},
		"rules/loop.TestALoopOfAGrantIsOfAWorkspace",
	},
	{
		"an agent runs what no person has accepted", "internal/verbs/runs/accepted.go",
		[][2]string{{"if accepted || err != nil && !lookup.Absent(err) {", "if accepted || err == nil {"}},
		"verbs/runs.TestAnAgentRunsWhatAPersonHasAccepted",
	},
	{
		"a definition is accepted whatever it says by now", "internal/record/store/acceptances.go",
		[][2]string{{"WHERE loop_id = $1 AND digest = $2`", "WHERE loop_id = $1 AND $2 <> ''`"}},
		"verbs/runs.TestAnAgentRunsWhatAPersonHasAccepted",
	},
	{
		"an agent runs what confines nothing", "internal/verbs/runs/accepted.go",
		[][2]string{{"if sandbox.Tier(d.Sandbox) == sandbox.None {", "if sandbox.Tier(d.Sandbox) == \"\" {"}},
		"verbs/runs.TestAnAgentRunsNothingThatIsNotConfined",
	},
	{
		"a repository of another user is opened", "internal/record/node/owner.go",
		[][2]string{{"if err != nil || len(others) == 0 {\n\t\treturn err\n", "if err != nil || len(others) >= 0 {\n\t\treturn err\n"}},
		"record/node.TestARepositoryOfAnotherUserIsRefusedUntilAPersonAcceptsIt",
	},
	{
		"over HTTP the folder of the daemon is meant", "internal/surface/api/reach.go",
		[][2]string{{"if filepath.IsAbs(dir) {", "if filepath.IsAbs(dir) || dir == \"\" {"}},
		"surface/api.TestARequestOverHTTPSaysWhichFolderItMeans",
	},
	{
		"a resource over HTTP is about the folder of the daemon", "internal/surface/mcp/arguments.go",
		[][2]string{{"case s.Dir == \"\":\n", "case s.Dir == given && given != \"\":\n"}},
		"surface/mcp.TestOverHTTPHereIsNowhere",
	},
}
