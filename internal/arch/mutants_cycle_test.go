package arch

// cycleMutants are those of listedMutants that are about one run: what is decided, judged,
// paid for and remembered.
var cycleMutants = []mutant{
	{
		"a landing is tried again without a look whether it has arrived", "internal/engine/effects.go",
		[][2]string{{"if e.Args[effect.ArgRetry] != \"\" {", "if e.Args[effect.ArgRetry] == \"never\" {"}},
		"engine.TestALaterTryLooksFirstWhetherAnEarlierOneArrived",
	},
	{
		"a landing is tried again for ever", "internal/plan/landing.go",
		[][2]string{{"case a.Tries >= MaxLandings:", "case a.Tries >= 100*MaxLandings:"}},
		"engine.TestALandingThatFailedFiveTimesRestsUntilAPersonAsksForIt",
	},
	{
		"a landing is tried again at once", "internal/plan/landing.go",
		[][2]string{{"case a.Tries > 0 && now.Before(at) && !now.Before(a.Tried):", "case a.Tries > 100*MaxLandings && now.Before(at):"}},
		"plan.TestALandingIsTriedFiveTimesAtMost",
	},
	{
		"a later try does not ask whether the yes has expired", "internal/plan/landing.go",
		[][2]string{{"case !now.Before(a.Expires):", "case a.Expires.IsZero():"}},
		"plan.TestALandingIsTriedFiveTimesAtMost",
	},
	{
		"the store does not ask whether a yes has expired before something lands", "internal/store/approvals.go",
		[][2]string{{"WHERE  id = $3 AND state = 'landing' AND expires_ms > {now}`", "WHERE  id = $3 AND state = 'landing'`"}},
		"engine.TestAYesThatExpiresBeforeItsTryBeginsLandsNothing",
	},
	{
		"what the gates run is not protected", "internal/runenv/place.go",
		[][2]string{{"slices.Concat(s.Definition.Protect, judges.Programs)", "slices.Concat(s.Definition.Protect, judges.Programs[:0])"}},
		"compose.TestAttack055WhatJudgesCannotBeRewritten",
	},
	{
		"only the line of a gate is read", "internal/runenv/judges.go",
		[][2]string{{"found, err := gate.JudgesOf(s.Definition, treeAt(ctx, s.Repo, s.Base))", "found, err := gate.JudgesOf(s.Definition, nil)\n\t_ = treeAt"}},
		"compose.TestAttack055WhatAGateRunsAtOneRemoveCannotBeRewritten",
	},
	{
		"a gate that its scope can rewrite is not said", "internal/engine/conclude.go",
		[][2]string{{"slices.Concat(a.flags, a.rewritable, stackFlag(c.stack))", "slices.Concat(a.flags, stackFlag(c.stack))"}},
		"compose.TestAttack055AGateThatItsScopeCanRewriteIsSaid",
	},
	{
		"loops whose scopes overlap work at once", "internal/engine/locks.go",
		[][2]string{{"plan.Arbitrate(asks, others, foreground)", "plan.Arbitrate(asks, others[:0], foreground)"}},
		"engine.TestTheLowerLoopGivesWayAndTheHigherOneWaits",
	},
	{
		"no ref holds a candidate", "internal/engine/tree.go",
		[][2]string{{"d.Hold = wt.holdCandidate(len(wt.its))", "d.Hold = nil"}},
		"compose.TestGarbageCollectedAfterACrashTakesNothingFromTheRun",
	},
	{
		"a run whose copy cannot be taken up is not concluded", "internal/engine/recover.go",
		[][2]string{{"return wt.salvage(ctx, err)", "return err"}},
		"compose.TestARunWhoseCopyCannotBeReadIsConcludedAndSaysWhereItLies",
	},
	{
		"a run whose candidate is gone is not concluded", "internal/engine/tree.go",
		[][2]string{{"return wt.keepCopy(ctx, fmt.Errorf(\"keep the candidate of run %s: %w\", wt.run.ID, err))", "return fmt.Errorf(\"keep the candidate of run %s: %w\", wt.run.ID, err)"}},
		"compose.TestARunWhoseCandidateIsGoneIsConcludedWithWhatIsLeft",
	},
	{
		"instructions are read from what the agent changed", "internal/engine/guidance.go",
		[][2]string{
			{"if a.guidedFor == a.run.BaseCommit {", `if a.guidedFor == "" && a.run.BaseCommit == "" {`},
			{"files, err := guidance.Read(ctx, a.target.Repo, a.run.BaseCommit, ", "last := a.its[max(0, len(a.its)-2)].Candidate\n\tfiles, err := guidance.Read(ctx, a.target.Repo, []string{a.run.BaseCommit, last}[min(1, len(last))], "},
		},
		"compose.TestAttack051InstructionsThatTheAgentRewritesReachNoPromptBeforeTheyHaveLanded",
	},
	{
		"a block of instructions ends with a word that can be known", "internal/engine/guidance.go",
		[][2]string{{"word := hex.EncodeToString(sum.Sum(nil)[:6])", "word := hex.EncodeToString(make([]byte, 6))"}, {"strings.ReplaceAll(unprintable.Show(f.Text), word, \"[…]\")", "unprintable.Show(f.Text)"}},
		"compose.TestAttack051InstructionsCannotLeaveTheirBlock",
	},
	{
		"the gates run on the agent's own tree", "internal/engine/verify.go",
		[][2]string{{"env.Work, env.Ask = j.work, j.critics.ask\n", "env.Work, env.Ask = j.work, j.critics.ask\n\t\tat.Dir = j.tree.copy.Dir\n"}},
		"compose.TestAttack059IgnoredFilesMakeNoGatePass",
	},
	{
		"what one gate leaves reaches the next", "internal/runenv/judge.go",
		[][2]string{
			{"k, err = s.Copy(ctx, gatePurpose(i), commit)", "k, err = s.kept(ctx, commit)"},
			{"if s.usesLayers() && needsCopy(gates, i+1) {", "if i > len(gates) {"},
			{"err := k.Remove(context.WithoutCancel(ctx))", "var err error"},
			{"// GatePlace is where", "var keptCopies = map[string]*Copy{}\n\nfunc (s Env) kept(ctx context.Context, commit string) (*Copy, error) {\n\tif keptCopies[s.ID] == nil {\n\t\tk, err := s.Copy(ctx, ForGate, commit)\n\t\tif err != nil {\n\t\t\treturn nil, err\n\t\t}\n\t\tkeptCopies[s.ID] = k\n\t}\n\treturn keptCopies[s.ID], nil\n}\n\n// GatePlace is where"},
		},
		"runenv.TestNoGateSeesWhatAnotherOneLeft",
	},
	{
		"gates find the folder of their agent's turn", "internal/runenv/judge.go",
		[][2]string{{"turn, err := s.FreshTurn(n)", "turn, err := s.OpenTurn(n)"}, {"if err := s.WritePrompt(n, \"\"); err != nil {", "if turn == \"\" {"}},
		"compose.TestAttack062AGateSeesNeitherItsAgentsTurnNorWhatAnotherGateLeft",
	},
	{
		"programs are found in the tree", "internal/runenv/runenv.go",
		[][2]string{{"env = append(env, withoutRelativeDirs(kv))", "env = append(env, kv)"}},
		"compose.TestAttack061AProgramOfTheTreeIsNotTakenForOneOfThePath",
	},
	{
		"the scope is not checked after a rebase", "internal/engine/land.go",
		[][2]string{{"if err := c.tree.checkScope(ctx, &w); err != nil {", "if err := ctx.Err(); err != nil {"}},
		"compose.TestAttack010AChangeThatCollidesOnTheNewBaseIsRefusedBeforeItsGates",
	},
	{
		"a changed git configuration is ignored", "internal/engine/hazards.go",
		[][2]string{{"case known == fingerprint:", "case known != \"\":"}},
		"compose.TestAttack032ConfigurationThatChangedAfterTheGatesLandsNothing",
	},
	{
		"older approvals stay open", "internal/engine/land.go",
		[][2]string{{"older, err := rt.VoidProposals(ctx, a.LoopID, passedSteps(c.its), a.ID, newer)", "older, err := []loop.Approval(nil), error(nil)"}},
		"compose.TestAttack110AnApprovalCountsOnceAndForItsOwnRun",
	},
	{
		"a step is worked on while its proposal has no answer", "internal/engine/decide.go",
		[][2]string{{"c.proposals.holdBack(&cand)", ""}},
		"compose.TestAttack110AnApprovalCountsOnceAndForItsOwnRun",
	},
	{
		"an approval holds for any definition", "internal/engine/answer.go",
		[][2]string{{" || a.Definition != s.run.Definition", ""}},
		"engine.TestAnApprovalOfAnotherDefinitionIsWorthNothing",
	},
	{
		"an effect is not confirmed right before it happens", "internal/engine/effects.go",
		[][2]string{{"kind.Apply(ctx, e, confirm)\n\t\treturn result, nil, err", "kind.Apply(ctx, e, func(context.Context) error { return nil })\n\t\treturn result, nil, err"}},
		"compose.TestALandingThatWasStoppedAsksForTheSwitchAgain",
	},
	{
		"a run is taken from a process that runs", "internal/engine/recover.go",
		[][2]string{{"case loop.HolderRunning:\n\t\treturn loop.Holder{}, false, nil", "case loop.HolderRunning:"}},
		"compose.TestARunningHolderOfThisHostKeepsItsRunPastItsLease",
	},
	{
		"a stopped process is not ended before its run is taken", "internal/engine/recover.go",
		[][2]string{{"return r.Holder, true, e.EndHolder(ctx, r.Holder)", "return r.Holder, true, nil"}},
		"compose.TestStoppedPastItsLeaseAtAnyPointNothingMovesUnrecorded",
	},
	{
		"a run is taken while its stopped holder moves a branch", "internal/engine/recover.go",
		[][2]string{
			{"return r.Holder, true, e.EndHolder(ctx, r.Holder)", "return r.Holder, true, nil"},
			{"\tif err := c.outbox.acquire(); err != nil {\n\t\treturn nil, err\n\t}\n", ""},
		},
		"compose.TestStoppedPastItsLeaseAtAnyPointNothingMovesUnrecorded",
	},
	{
		"a branch that has moved is called failed", "internal/engine/effects.go",
		[][2]string{{"if lookErr == nil && found.Begun {", "if lookErr == nil && found.Begun && ctx == nil {"}},
		"compose.TestADiskThatIsFullAtAnyWriteLosesNothing",
	},
	{
		"an approved command runs on any tree", "internal/engine/answer.go",
		[][2]string{{"if s.tree.copy.From != a.Tree {", "if a.Tree == \"\" {"}},
		"engine.TestAttack109AnApprovedCommandRunsOnTheTreeThatWasShownOrNotAtAll",
	},
	{
		"silence of a gate that counted is a pass", "internal/engine/counts.go",
		[][2]string{{"base, recorded, err := j.recordedTests(ctx, g)\n", "if res.Tests == nil && res.Note == \"\" {\n\t\treturn res, \"\", nil\n\t}\n\tbase, recorded, err := j.recordedTests(ctx, g)\n"}},
		"compose.TestAttack058AGateThatFallsSilentIsNoPass",
	},
	{
		"as many tests as on the base are enough, whichever they are", "internal/engine/counts.go",
		[][2]string{{"if why := found.Objection(); why != \"\" {", "if why := found.Objection(); why == \"never\" {"}},
		"compose.TestAttack058ForgedCountsAreHeldAgainstTheNamesOfTheBase",
	},
	{
		"what could forge a count is not pointed out", "internal/engine/judges.go",
		[][2]string{{"flags = append(flags, suspectsIn(w.compared.Changes)...)\n", "flags = append(flags, suspectsIn(nil)...)\n"}},
		"compose.TestAttack058WhatCouldForgeACountIsPointedOutBeforeItLands",
	},
	{
		"a landing does not ask what was approved", "internal/engine/proposed.go",
		[][2]string{{"case def.Digest() != a.Definition:", "case def.Digest() == \"\":"}},
		"compose.TestAttack109AnApprovalIsWorthNothingForWhatItDidNotShow",
	},
	{
		"anything lands without a human at L3", "internal/engine/autoland.go",
		[][2]string{{"if !verdict.Allowed {", "if verdict.Rule == \"\" {"}},
		"engine.TestAtL3NothingButTheClassesOfAutolandLands",
	},
	{
		"an agent starts on a model without a price where money has a cap", "internal/budget/need.go",
		[][2]string{{"if s.Budget.Cap.MicroUSD > 0 {", "if s.Budget.Cap.MicroUSD < 0 {"}},
		"engine.TestAModelWithoutAPriceIsRefusedWhereMoneyHasACap",
	},
	{
		"a loop rests because of a model without a price", "internal/engine/hold.go",
		[][2]string{{" || f.Class == loop.ReasonPriceUnknown)", ")"}, {"r.Hold && a.login.unsigned == nil:", "(r.Hold || f.Class == loop.ReasonPriceUnknown) && a.login.unsigned == nil:"}},
		"engine.TestAModelWithoutAPriceIsRefusedWhereMoneyHasACap",
	},
	{
		"a stream that outgrows its grant goes on", "internal/spend/charge.go",
		[][2]string{{"\t_ = a.exhaust(passed, loop.Amount{}, why)\n\treturn false\n", "\t_ = a.exhaust(passed, loop.Amount{}, why)\n\treturn true\n"}},
		"meter/model.TestAttack095TheStreamIsCutAtTheCap",
	},
	{
		"a model reviews what it did in an earlier run", "internal/engine/verify.go",
		[][2]string{{`j.tree.restored == "" && j.firing.Rebase == ""`, `j.firing.Rebase == ""`}},
		"engine.TestAModelDoesNotReviewWhatItDidInAnEarlierRun",
	},
	{
		"a review of a run that has reserved nothing is not paid for", "internal/engine/review.go",
		[][2]string{{"err = c.fund(ctx)", "err = c.money.ledger().Open(ctx)"}},
		"engine.TestAReviewAfterTheBaseHasMovedIsPaidFor",
	},
	{
		"a second try gets the folder of the first", "internal/engine/act.go",
		[][2]string{{"t.env.FreshTurn(n)", "t.env.OpenTurn(n)"}},
		"engine.TestATryThatFailedLeavesTheNextOneNeitherReportNorLinks",
	},
	{
		"a login comes back from a run that was refused", "internal/engine/lent.go",
		[][2]string{{"case l.run.Outcome == loop.OutcomeRefused:\n", "case l.run.Outcome == loop.OutcomeRefused && l.loan == nil:\n"}},
		"engine.TestAttack084InFullALoginThatTheAgentReplacedIsKeptBesideTheUsers",
	},
	{
		"lent tokens are not secrets", "internal/engine/act.go",
		[][2]string{{"\ta.said.Learn(turnEnv.Secrets())\n\tat, err := t.env.Place(", "\tat, err := t.env.Place("}, {"\ta.said.Learn(turnEnv.Secrets())\n\tif len(res.Asks)", "\tif len(res.Asks)"}},
		"compose.TestAttack077InFullALentLoginThatItsProgramTellsIsInNoAccountAndOnNoBranch",
	},
	{
		"a limit of an account is counted as a failure of the step", "internal/plan/settle.go",
		[][2]string{{"\tcase a.Reason.IsExternal(): // The step did not cause it, and stays as it was.\n", "\tcase false:\n"}},
		"plan.TestWhatBecomesOfAStepAfterOneAttempt",
	},
	{
		"a new file for git LFS is proposed as a whole", "internal/runenv/copy.go",
		[][2]string{{"if kept[i] {", "if kept[i] && false {"}},
		"runenv.TestWhatAnAgentWritesToFilledFilesIsNoChangeButAProblem",
	},
	{
		"the disk that a run takes up is not counted", "internal/runenv/disk.go",
		[][2]string{{"u.Bytes += max(0, m.bytes-b.before)", "u.Bytes += 0"}},
		"engine.TestARunThatFillsTheDiskEndsAndNamesTheFolders",
	},
	{
		"a push goes on in spite of the switch", "internal/engine/effects.go",
		[][2]string{{"case effect.KindPush, effect.KindPullRequest, effect.KindMemoryPush, effect.KindMemoryPull, effect.KindBranchPush:", "case \"\":"}},
		"engine.TestTheSwitchEndsAPushThatWouldNeverEnd",
	},
	{
		"a run that this process drives is recovered", "internal/engine/recover.go",
		[][2]string{{"return r.Holder, !driving, nil", "return r.Holder, driving || !driving, nil"}},
		"engine.TestRecoveryLeavesARunAloneThatThisProcessDrives",
	},
	{
		"an iteration stays open when its run has ended", "internal/engine/finish.go",
		[][2]string{{"\tc.judgeOpen(end)\n", ""}},
		"engine.TestNoIterationStaysOpenWhenItsRunHasEnded",
	},
	{
		"an attempt whose process died does not count", "internal/engine/recover.go",
		[][2]string{{"\t\t\ts.Attempts++\n", ""}},
		"engine.TestAnAttemptCountsWhenItsProcessDiedAndNotWhenItWasStopped",
	},
	{
		"a cap on items ends no run", "internal/engine/money.go",
		[][2]string{{"r.MaxItems = min(r.MaxItems, int(n))", "r.MaxItems = max(r.MaxItems, int(n))"}},
		"engine.TestABudgetOfIterationsOrItemsEndsTheWorkAndIsCharged",
	},
	{
		"iterations are charged to no budget", "internal/engine/money.go",
		[][2]string{{"Iterations: int64(s.worked)", "Iterations: 0 * int64(s.worked)"}},
		"engine.TestABudgetOfIterationsOrItemsEndsTheWorkAndIsCharged",
	},
	{
		"a switch that cannot be read is not set", "internal/engine/switches.go",
		[][2]string{{"case !errors.Is(err, fs.ErrNotExist):", "case !errors.Is(err, fs.ErrNotExist) && rel == \"\":"}},
		"engine.TestASwitchThatCannotBeReadIsSet",
	},
	{
		"a run outlives its lease while the store is away", "internal/engine/watch.go",
		[][2]string{{"w.c.Store.Left() <= w.c.Store.Lease()/leaveBefore:", "w.c.Store.Left() <= -w.c.Store.Lease():"}},
		"engine.TestAStoreThatIsAwayEndsTheRunALittleBeforeItsLeaseIsOver",
	},
	{
		"a tree goes although no snapshot of it could be written", "internal/engine/finish.go",
		[][2]string{{"\tif err != nil {\n\t\treturn fmt.Errorf(\"the work of run", "\tif err != nil && c.tree == nil {\n\t\treturn fmt.Errorf(\"the work of run"}},
		"engine.TestWorkOfWhichNoSnapshotCanBeWrittenStaysInItsTree",
	},
	{
		"what a turn used is forgotten with what failed after it", "internal/engine/live.go",
		[][2]string{{"c.withNoted(slices.Clone(saved))", "slices.Clone(saved)"}},
		"engine.TestWhatAnAgentUsedIsNotLostWithWhatFailedAfterIt",
	},
	{
		"no cap binds a program without an endpoint", "internal/engine/counter.go",
		[][2]string{{"return n.reported.Progress(ctx, u)", "return n.reported.Progress(ctx, loop.Usage{})"}},
		"engine.TestTheCapOfAProgramWithoutAnEndpointIsThatOfTheWholeRun",
	},
	{
		"a goal is given what an agent only proposed", "internal/memory/goal.go",
		[][2]string{{"if m.State == loop.MemoryActive && (", "if m.State != loop.MemoryForgotten && ("}},
		"memory.TestAProposedMemoryIsNotGivenToAnybody",
	},
	{
		"an agent that repeats itself confirms its proposal", "internal/memory/memory.go",
		[][2]string{{"return s.RunID == by.RunID || sameMaker(s, by)", "return s.RunID == by.RunID"}},
		"memory.TestAProposalCountsAfterTwoConfirmationsThatAreIndependentOfItAndOfEachOther",
	},
	{
		"runs have to end in the order of their numbers", "internal/audit/log.go",
		[][2]string{{"case a.lined < f.last.lined:", "case a.N < f.last.N:"}},
		"audit.TestEveryEditOfALogIsFoundAtItsLine",
	},
	{
		"lines of a run log stand in any order", "internal/audit/log.go",
		[][2]string{{"case a.lined < f.last.lined:", "case a.lined < 0:"}},
		"audit.TestEveryEditOfALogIsFoundAtItsLine",
	},
	{
		"the chain does not tell when a late line was written", "internal/engine/lost.go",
		[][2]string{{"return rt.Link(ctx, run.LoopID, loop.LinkOwed, run.ID, map[string]any{\"n\": run.N, \"node\": run.Node})", "return nil"}},
		"audit.TestALineThatComesLateOrOvertakesIsInItsPlace",
	},
	{
		"a yes pushes whatever the branch has by now", "internal/effect/branchpush.go",
		[][2]string{{"e.Args[ArgCommit]\n\tfor tried", "e.Args[ArgCommit]\n\tif tip, there, _ := p.repo.Ref(ctx, ref); there {\n\t\tcommit = tip\n\t}\n\tfor tried"}},
		"effect.TestAYesPushesUpToTheCommitThatWasShown",
	},
	{
		"a commit is pushed that its branch does not have any more", "internal/effect/branchpush.go",
		[][2]string{{"if err != nil || held {", "if err != nil || held || there {"}},
		"effect.TestACommitThatTheBranchDoesNotHaveIsNotPushed",
	},
	{
		"a session pushes before a person said yes", "internal/protocol/boot/session.go",
		[][2]string{{"pushesItself() bool { return s.v.Definition.LandVia == \"\" }", "pushesItself() bool { return s.v.Definition.LandVia != \"-\" }"}},
		"protocol/boot.TestNothingIsPushedBeforeAPersonSaidYes",
	},
}
