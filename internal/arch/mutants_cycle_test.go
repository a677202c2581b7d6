package arch

// cycleMutants are those of listedMutants that are about one run: what is decided, judged,
// paid for and remembered.
var cycleMutants = []mutant{
	{
		"a landing is tried again without a look whether it has arrived", "internal/cycle/engine/effects.go",
		[][2]string{{"if e.Args[effect.ArgRetry] != \"\" {", "if e.Args[effect.ArgRetry] == \"never\" {"}},
		"cycle/engine.TestALaterTryLooksFirstWhetherAnEarlierOneArrived",
	},
	{
		"a landing is tried again for ever", "internal/rules/plan/landing.go",
		[][2]string{{"case a.Tries >= MaxLandings:", "case a.Tries >= 100*MaxLandings:"}},
		"cycle/engine.TestALandingThatFailedFiveTimesRestsUntilAPersonAsksForIt",
	},
	{
		"a landing is tried again at once", "internal/rules/plan/landing.go",
		[][2]string{{"case a.Tries > 0 && now.Before(at) && !now.Before(a.Tried):", "case a.Tries > 100*MaxLandings && now.Before(at):"}},
		"rules/plan.TestALandingIsTriedFiveTimesAtMost",
	},
	{
		"a later try does not ask whether the yes has expired", "internal/rules/plan/landing.go",
		[][2]string{{"case !now.Before(a.Expires):", "case a.Expires.IsZero():"}},
		"rules/plan.TestALandingIsTriedFiveTimesAtMost",
	},
	{
		"the store does not ask whether a yes has expired before something lands", "internal/record/store/approvals.go",
		[][2]string{{"WHERE  id = $3 AND state = 'landing' AND expires_ms > {now}`", "WHERE  id = $3 AND state = 'landing'`"}},
		"cycle/engine.TestAYesThatExpiresBeforeItsTryBeginsLandsNothing",
	},
	{
		"what the gates run is not protected", "internal/cycle/runenv/place.go",
		[][2]string{{"slices.Concat(s.Definition.Protect, judges.Programs)", "slices.Concat(s.Definition.Protect, judges.Programs[:0])"}},
		"surface/compose.TestAttack055WhatJudgesCannotBeRewritten",
	},
	{
		"only the line of a gate is read", "internal/cycle/runenv/judges.go",
		[][2]string{{"found, err := gate.JudgesOf(s.Definition, treeAt(ctx, s.Repo, s.Base))", "found, err := gate.JudgesOf(s.Definition, nil)\n\t_ = treeAt"}},
		"surface/compose.TestAttack055WhatAGateRunsAtOneRemoveCannotBeRewritten",
	},
	{
		"a gate that its scope can rewrite is not said", "internal/cycle/engine/conclude.go",
		[][2]string{{"slices.Concat(a.flags, a.rewritable, stackFlag(c.stack))", "slices.Concat(a.flags, stackFlag(c.stack))"}},
		"surface/compose.TestAttack055AGateThatItsScopeCanRewriteIsSaid",
	},
	{
		"loops whose scopes overlap work at once", "internal/cycle/engine/locks.go",
		[][2]string{{"plan.Arbitrate(asks, others, foreground)", "plan.Arbitrate(asks, others[:0], foreground)"}},
		"cycle/engine.TestTheLowerLoopGivesWayAndTheHigherOneWaits",
	},
	{
		"no ref holds a candidate", "internal/cycle/engine/tree.go",
		[][2]string{{"d.Hold = wt.holdCandidate(len(wt.its))", "d.Hold = nil"}},
		"surface/compose.TestGarbageCollectedAfterACrashTakesNothingFromTheRun",
	},
	{
		"a run whose copy cannot be taken up is not concluded", "internal/cycle/engine/recover.go",
		[][2]string{{"return wt.salvage(ctx, err)", "return err"}},
		"surface/compose.TestARunWhoseCopyCannotBeReadIsConcludedAndSaysWhereItLies",
	},
	{
		"a run whose candidate is gone is not concluded", "internal/cycle/engine/tree.go",
		[][2]string{{"return wt.keepCopy(ctx, fmt.Errorf(\"keep the candidate of run %s: %w\", wt.run.ID, err))", "return fmt.Errorf(\"keep the candidate of run %s: %w\", wt.run.ID, err)"}},
		"surface/compose.TestARunWhoseCandidateIsGoneIsConcludedWithWhatIsLeft",
	},
	{
		"instructions are read from what the agent changed", "internal/cycle/engine/guidance.go",
		[][2]string{
			{"if a.guidedFor == a.run.BaseCommit {", `if a.guidedFor == "" && a.run.BaseCommit == "" {`},
			{"files, err := guidance.Read(ctx, a.target.Repo, a.run.BaseCommit, ", "last := a.its[max(0, len(a.its)-2)].Candidate\n\tfiles, err := guidance.Read(ctx, a.target.Repo, []string{a.run.BaseCommit, last}[min(1, len(last))], "},
		},
		"surface/compose.TestAttack051InstructionsThatTheAgentRewritesReachNoPromptBeforeTheyHaveLanded",
	},
	{
		"a block of instructions ends with a word that can be known", "internal/cycle/engine/guidance.go",
		[][2]string{{"word := hex.EncodeToString(sum.Sum(nil)[:6])", "word := hex.EncodeToString(make([]byte, 6))"}, {"strings.ReplaceAll(unprintable.Show(f.Text), word, \"[…]\")", "unprintable.Show(f.Text)"}},
		"surface/compose.TestAttack051InstructionsCannotLeaveTheirBlock",
	},
	{
		"the gates run on the agent's own tree", "internal/cycle/engine/verify.go",
		[][2]string{{"env.Work, env.Ask = j.work, j.critics.ask\n", "env.Work, env.Ask = j.work, j.critics.ask\n\t\tat.Dir = j.tree.copy.Dir\n"}},
		"surface/compose.TestAttack059IgnoredFilesMakeNoGatePass",
	},
	{
		"what one gate leaves reaches the next", "internal/cycle/runenv/judge.go",
		[][2]string{
			{"k, err = s.Copy(ctx, gatePurpose(i), commit)", "k, err = s.kept(ctx, commit)"},
			{"if s.usesLayers() && needsCopy(gates, i+1) {", "if i > len(gates) {"},
			{"err := k.Remove(context.WithoutCancel(ctx))", "var err error"},
			{"// GatePlace is where", "var keptCopies = map[string]*Copy{}\n\nfunc (s Env) kept(ctx context.Context, commit string) (*Copy, error) {\n\tif keptCopies[s.ID] == nil {\n\t\tk, err := s.Copy(ctx, ForGate, commit)\n\t\tif err != nil {\n\t\t\treturn nil, err\n\t\t}\n\t\tkeptCopies[s.ID] = k\n\t}\n\treturn keptCopies[s.ID], nil\n}\n\n// GatePlace is where"},
		},
		"cycle/runenv.TestNoGateSeesWhatAnotherOneLeft",
	},
	{
		"gates find the folder of their agent's turn", "internal/cycle/runenv/judge.go",
		[][2]string{{"turn, err := s.FreshTurn(n)", "turn, err := s.OpenTurn(n)"}, {"if err := s.WritePrompt(n, \"\"); err != nil {", "if turn == \"\" {"}},
		"surface/compose.TestAttack062AGateSeesNeitherItsAgentsTurnNorWhatAnotherGateLeft",
	},
	{
		"programs are found in the tree", "internal/cycle/runenv/runenv.go",
		[][2]string{{"env = append(env, withoutRelativeDirs(kv))", "env = append(env, kv)"}},
		"surface/compose.TestAttack061AProgramOfTheTreeIsNotTakenForOneOfThePath",
	},
	{
		"the scope is not checked after a rebase", "internal/cycle/engine/land.go",
		[][2]string{{"if err := c.tree.checkScope(ctx, &w); err != nil {", "if err := ctx.Err(); err != nil {"}},
		"surface/compose.TestAttack010AChangeThatCollidesOnTheNewBaseIsRefusedBeforeItsGates",
	},
	{
		"a changed git configuration is ignored", "internal/cycle/engine/hazards.go",
		[][2]string{{"case known == fingerprint:", "case known != \"\":"}},
		"surface/compose.TestAttack032ConfigurationThatChangedAfterTheGatesLandsNothing",
	},
	{
		"older approvals stay open", "internal/cycle/engine/land.go",
		[][2]string{{"older, err := rt.VoidProposals(ctx, a.LoopID, passedSteps(c.its), a.ID, newer)", "older, err := []loop.Approval(nil), error(nil)"}},
		"surface/compose.TestAttack110AnApprovalCountsOnceAndForItsOwnRun",
	},
	{
		"a step is worked on while its proposal has no answer", "internal/cycle/engine/decide.go",
		[][2]string{{"c.proposals.holdBack(&cand)", ""}},
		"surface/compose.TestAttack110AnApprovalCountsOnceAndForItsOwnRun",
	},
	{
		"an approval holds for any definition", "internal/cycle/engine/answer.go",
		[][2]string{{" || a.Definition != s.run.Definition", ""}},
		"cycle/engine.TestAnApprovalOfAnotherDefinitionIsWorthNothing",
	},
	{
		"an effect is not confirmed right before it happens", "internal/cycle/engine/effects.go",
		[][2]string{{"kind.Apply(ctx, e, confirm)\n\t\treturn result, nil, err", "kind.Apply(ctx, e, func(context.Context) error { return nil })\n\t\treturn result, nil, err"}},
		"surface/compose.TestALandingThatWasStoppedAsksForTheSwitchAgain",
	},
	{
		"a run is taken from a process that runs", "internal/cycle/engine/recover.go",
		[][2]string{{"case loop.HolderRunning:\n\t\treturn loop.Holder{}, false, nil", "case loop.HolderRunning:"}},
		"surface/compose.TestARunningHolderOfThisHostKeepsItsRunPastItsLease",
	},
	{
		"a stopped process is not ended before its run is taken", "internal/cycle/engine/recover.go",
		[][2]string{{"return r.Holder, true, e.EndHolder(ctx, r.Holder)", "return r.Holder, true, nil"}},
		"surface/compose.TestStoppedPastItsLeaseAtAnyPointNothingMovesUnrecorded",
	},
	{
		"a run is taken while its stopped holder moves a branch", "internal/cycle/engine/recover.go",
		[][2]string{
			{"return r.Holder, true, e.EndHolder(ctx, r.Holder)", "return r.Holder, true, nil"},
			{"\tif err := c.outbox.acquire(); err != nil {\n\t\treturn nil, err\n\t}\n", ""},
		},
		"surface/compose.TestStoppedPastItsLeaseAtAnyPointNothingMovesUnrecorded",
	},
	{
		"a branch that has moved is called failed", "internal/cycle/engine/effects.go",
		[][2]string{{"if lookErr == nil && found.Begun {", "if lookErr == nil && found.Begun && ctx == nil {"}},
		"surface/compose.TestADiskThatIsFullAtAnyWriteLosesNothing",
	},
	{
		"an approved command runs on any tree", "internal/cycle/engine/answer.go",
		[][2]string{{"if s.tree.copy.From != a.Tree {", "if a.Tree == \"\" {"}},
		"cycle/engine.TestAttack109AnApprovedCommandRunsOnTheTreeThatWasShownOrNotAtAll",
	},
	{
		"silence of a gate that counted is a pass", "internal/cycle/engine/counts.go",
		[][2]string{{"base, recorded, err := j.recordedTests(ctx, g)\n", "if res.Tests == nil && res.Note == \"\" {\n\t\treturn res, \"\", nil\n\t}\n\tbase, recorded, err := j.recordedTests(ctx, g)\n"}},
		"surface/compose.TestAttack058AGateThatFallsSilentIsNoPass",
	},
	{
		"as many tests as on the base are enough, whichever they are", "internal/cycle/engine/counts.go",
		[][2]string{{"if why := found.Objection(); why != \"\" {", "if why := found.Objection(); why == \"never\" {"}},
		"surface/compose.TestAttack058ForgedCountsAreHeldAgainstTheNamesOfTheBase",
	},
	{
		"what could forge a count is not pointed out", "internal/cycle/engine/judges.go",
		[][2]string{{"flags = append(flags, suspectsIn(w.compared.Changes)...)\n", "flags = append(flags, suspectsIn(nil)...)\n"}},
		"surface/compose.TestAttack058WhatCouldForgeACountIsPointedOutBeforeItLands",
	},
	{
		"a landing does not ask what was approved", "internal/cycle/engine/proposed.go",
		[][2]string{{"case def.Digest() != a.Definition:", "case def.Digest() == \"\":"}},
		"surface/compose.TestAttack109AnApprovalIsWorthNothingForWhatItDidNotShow",
	},
	{
		"anything lands without a human at L3", "internal/cycle/engine/autoland.go",
		[][2]string{{"if !verdict.Allowed {", "if verdict.Rule == \"\" {"}},
		"cycle/engine.TestAtL3NothingButTheClassesOfAutolandLands",
	},
	{
		"an agent starts on a model without a price where money has a cap", "internal/agents/budget/need.go",
		[][2]string{{"if s.Budget.Cap.MicroUSD > 0 {", "if s.Budget.Cap.MicroUSD < 0 {"}},
		"cycle/engine.TestAModelWithoutAPriceIsRefusedWhereMoneyHasACap",
	},
	{
		"a loop rests because of a model without a price", "internal/cycle/engine/hold.go",
		[][2]string{{" || f.Class == loop.ReasonPriceUnknown)", ")"}, {"r.Hold && a.login.unsigned == nil:", "(r.Hold || f.Class == loop.ReasonPriceUnknown) && a.login.unsigned == nil:"}},
		"cycle/engine.TestAModelWithoutAPriceIsRefusedWhereMoneyHasACap",
	},
	{
		"a stream that outgrows its grant goes on", "internal/agents/spend/charge.go",
		[][2]string{{"\t_ = a.exhaust(passed, loop.Amount{}, why)\n\treturn false\n", "\t_ = a.exhaust(passed, loop.Amount{}, why)\n\treturn true\n"}},
		"agents/meter/model.TestAttack095TheStreamIsCutAtTheCap",
	},
	{
		"a model reviews what it did in an earlier run", "internal/cycle/engine/verify.go",
		[][2]string{{`j.tree.restored == "" && j.firing.Rebase == ""`, `j.firing.Rebase == ""`}},
		"cycle/engine.TestAModelDoesNotReviewWhatItDidInAnEarlierRun",
	},
	{
		"a review of a run that has reserved nothing is not paid for", "internal/cycle/engine/review.go",
		[][2]string{{"err = c.fund(ctx)", "err = c.money.ledger().Open(ctx)"}},
		"cycle/engine.TestAReviewAfterTheBaseHasMovedIsPaidFor",
	},
	{
		"a second try gets the folder of the first", "internal/cycle/engine/act.go",
		[][2]string{{"t.env.FreshTurn(n)", "t.env.OpenTurn(n)"}},
		"cycle/engine.TestATryThatFailedLeavesTheNextOneNeitherReportNorLinks",
	},
	{
		"a login comes back from a run that was refused", "internal/cycle/engine/lent.go",
		[][2]string{{"case l.run.Outcome == loop.OutcomeRefused:\n", "case l.run.Outcome == loop.OutcomeRefused && l.loan == nil:\n"}},
		"cycle/engine.TestAttack084InFullALoginThatTheAgentReplacedIsKeptBesideTheUsers",
	},
	{
		"lent tokens are not secrets", "internal/cycle/engine/act.go",
		[][2]string{{"\ta.said.Learn(turnEnv.Secrets())\n\tat, err := t.env.Place(", "\tat, err := t.env.Place("}, {"\ta.said.Learn(turnEnv.Secrets())\n\tif len(res.Asks)", "\tif len(res.Asks)"}},
		"surface/compose.TestAttack077InFullALentLoginThatItsProgramTellsIsInNoAccountAndOnNoBranch",
	},
	{
		"a limit of an account is counted as a failure of the step", "internal/rules/plan/settle.go",
		[][2]string{{"\tcase a.Reason.IsExternal(): // The step did not cause it, and stays as it was.\n", "\tcase false:\n"}},
		"rules/plan.TestWhatBecomesOfAStepAfterOneAttempt",
	},
	{
		"a new file for git LFS is proposed as a whole", "internal/cycle/runenv/copy.go",
		[][2]string{{"if kept[i] {", "if kept[i] && false {"}},
		"cycle/runenv.TestWhatAnAgentWritesToFilledFilesIsNoChangeButAProblem",
	},
	{
		"the disk that a run takes up is not counted", "internal/cycle/runenv/disk.go",
		[][2]string{{"u.Bytes += max(0, m.bytes-b.before)", "u.Bytes += 0"}},
		"cycle/engine.TestARunThatFillsTheDiskEndsAndNamesTheFolders",
	},
	{
		"a push goes on in spite of the switch", "internal/cycle/engine/effects.go",
		[][2]string{{"case effect.KindPush, effect.KindPullRequest, effect.KindMemoryPush, effect.KindMemoryPull, effect.KindBranchPush:", "case \"\":"}},
		"cycle/engine.TestTheSwitchEndsAPushThatWouldNeverEnd",
	},
	{
		"a run that this process drives is recovered", "internal/cycle/engine/recover.go",
		[][2]string{{"return r.Holder, !driving, nil", "return r.Holder, driving || !driving, nil"}},
		"cycle/engine.TestRecoveryLeavesARunAloneThatThisProcessDrives",
	},
	{
		"an iteration stays open when its run has ended", "internal/cycle/engine/finish.go",
		[][2]string{{"\tc.judgeOpen(end)\n", ""}},
		"cycle/engine.TestNoIterationStaysOpenWhenItsRunHasEnded",
	},
	{
		"an attempt whose process died does not count", "internal/cycle/engine/recover.go",
		[][2]string{{"\t\t\ts.Attempts++\n", ""}},
		"cycle/engine.TestAnAttemptCountsWhenItsProcessDiedAndNotWhenItWasStopped",
	},
	{
		"a cap on items ends no run", "internal/cycle/engine/money.go",
		[][2]string{{"r.MaxItems = min(r.MaxItems, int(n))", "r.MaxItems = max(r.MaxItems, int(n))"}},
		"cycle/engine.TestABudgetOfIterationsOrItemsEndsTheWorkAndIsCharged",
	},
	{
		"iterations are charged to no budget", "internal/cycle/engine/money.go",
		[][2]string{{"Iterations: int64(s.worked)", "Iterations: 0 * int64(s.worked)"}},
		"cycle/engine.TestABudgetOfIterationsOrItemsEndsTheWorkAndIsCharged",
	},
	{
		"a switch that cannot be read is not set", "internal/cycle/engine/switches.go",
		[][2]string{{"case !errors.Is(err, fs.ErrNotExist):", "case !errors.Is(err, fs.ErrNotExist) && rel == \"\":"}},
		"cycle/engine.TestASwitchThatCannotBeReadIsSet",
	},
	{
		"a run outlives its lease while the store is away", "internal/cycle/engine/watch.go",
		[][2]string{{"w.c.Store.Left() <= w.c.Store.Lease()/leaveBefore:", "w.c.Store.Left() <= -w.c.Store.Lease():"}},
		"cycle/engine.TestAStoreThatIsAwayEndsTheRunALittleBeforeItsLeaseIsOver",
	},
	{
		"a tree goes although no snapshot of it could be written", "internal/cycle/engine/finish.go",
		[][2]string{{"\tif err != nil {\n\t\treturn fmt.Errorf(\"the work of run", "\tif err != nil && c.tree == nil {\n\t\treturn fmt.Errorf(\"the work of run"}},
		"cycle/engine.TestWorkOfWhichNoSnapshotCanBeWrittenStaysInItsTree",
	},
	{
		"what a turn used is forgotten with what failed after it", "internal/cycle/engine/live.go",
		[][2]string{{"c.withNoted(slices.Clone(saved))", "slices.Clone(saved)"}},
		"cycle/engine.TestWhatAnAgentUsedIsNotLostWithWhatFailedAfterIt",
	},
	{
		"no cap binds a program without an endpoint", "internal/cycle/engine/counter.go",
		[][2]string{{"return n.reported.Progress(ctx, u)", "return n.reported.Progress(ctx, loop.Usage{})"}},
		"cycle/engine.TestTheCapOfAProgramWithoutAnEndpointIsThatOfTheWholeRun",
	},
	{
		"a goal is given what an agent only proposed", "internal/record/memory/goal.go",
		[][2]string{{"if m.State == loop.MemoryActive && (", "if m.State != loop.MemoryForgotten && ("}},
		"record/memory.TestAProposedMemoryIsNotGivenToAnybody",
	},
	{
		"an agent that repeats itself confirms its proposal", "internal/record/memory/memory.go",
		[][2]string{{"return s.RunID == by.RunID || sameMaker(s, by)", "return s.RunID == by.RunID"}},
		"record/memory.TestAProposalCountsAfterTwoConfirmationsThatAreIndependentOfItAndOfEachOther",
	},
	{
		"runs have to end in the order of their numbers", "internal/verbs/audit/log.go",
		[][2]string{{"case a.lined < f.last.lined:", "case a.N < f.last.N:"}},
		"verbs/audit.TestEveryEditOfALogIsFoundAtItsLine",
	},
	{
		"lines of a run log stand in any order", "internal/verbs/audit/log.go",
		[][2]string{{"case a.lined < f.last.lined:", "case a.lined < 0:"}},
		"verbs/audit.TestEveryEditOfALogIsFoundAtItsLine",
	},
	{
		"the chain does not tell when a late line was written", "internal/cycle/engine/lost.go",
		[][2]string{{"return rt.Link(ctx, run.LoopID, loop.LinkOwed, run.ID, map[string]any{\"n\": run.N, \"node\": run.Node})", "return nil"}},
		"verbs/audit.TestALineThatComesLateOrOvertakesIsInItsPlace",
	},
	{
		"a yes pushes whatever the branch has by now", "internal/cycle/effect/branchpush.go",
		[][2]string{{"e.Args[ArgCommit]\n\tfor tried", "e.Args[ArgCommit]\n\tif tip, there, _ := p.repo.Ref(ctx, ref); there {\n\t\tcommit = tip\n\t}\n\tfor tried"}},
		"cycle/effect.TestAYesPushesUpToTheCommitThatWasShown",
	},
	{
		"a commit is pushed that its branch does not have any more", "internal/cycle/effect/branchpush.go",
		[][2]string{{"if err != nil || held {", "if err != nil || held || there {"}},
		"cycle/effect.TestACommitThatTheBranchDoesNotHaveIsNotPushed",
	},
	{
		"a session pushes before a person said yes", "internal/formats/boot/session.go",
		[][2]string{{"pushesItself() bool { return s.v.Definition.LandVia == \"\" }", "pushesItself() bool { return s.v.Definition.LandVia != \"-\" }"}},
		"formats/boot.TestNothingIsPushedBeforeAPersonSaidYes",
	},
}
