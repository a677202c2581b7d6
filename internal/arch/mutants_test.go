package arch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mutant is a bug that takes one guardrail out, and the test that must notice.
type mutant struct {
	what  string
	file  string // below the top of the checkout
	edits [][2]string
	test  string // package and name, as in the table of attacks
}

// listedMutants are taken by `make mutants-listed` as overlays of the build, one at a
// time. A text that is to be replaced stands once in its file.
var listedMutants = []mutant{
	{
		"the protected list is skipped", "internal/policy/policy.go",
		[][2]string{{"by := s.guards(name)\n", "by := s.guards(name)[:0]\n"}},
		"policy.TestAttack017ProtectionWinsOverScope",
	},
	{
		"paths are compared by prefix", "internal/policy/glob.go",
		[][2]string{{`return match(glob, name) || match(glob+"/**", name)`, `return match(glob, name) || strings.HasPrefix(name, strings.TrimRight(glob, "/*"))`}},
		"policy.TestAPathIsAllowedExactlyIfAnotherMatcherSaysSo",
	},
	{
		"a new symbolic link is an ordinary file", "internal/policy/change.go",
		[][2]string{
			{"case now == modeSymlink && old == modeFile, now == modeSymlink && old == modeExec:", "case now == modeSymlink && old == modeGitlink:"},
			{"case now == modeSymlink:\n", "case now == modeSymlink && old == modeGitlink:\n"},
			{"case now != 0 && now != modeFile && now != modeExec:", "case now != 0 && now != modeFile && now != modeExec && now != modeSymlink:"},
		},
		"compose.TestAttack004ALinkToASecretIsInNoLogAndNoCommit",
	},
	{
		"a link is followed when a file is read", "internal/safeopen/open_unix.go",
		[][2]string{{"os.O_RDONLY|syscall.O_NOFOLLOW|", "os.O_RDONLY|"}},
		"git/object.TestHashFileDoesNotFollowLinksOrBlock",
	},
	{
		"a file may become executable", "internal/policy/change.go",
		[][2]string{{"old != modeExec && !allowExec:", "old != modeExec && allowExec && !allowExec:"}},
		"compose.TestAttack016AFileThatBecomesExecutableEndsTheRunRefused",
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
		"names that frameworks take by default are not protected", "internal/policy/groups.go",
		[][2]string{{"{testsGroup, true, defaultsOf(func(f framework) []string { return f.tests })},", "{testsGroup, true, defaultsOf(func(f framework) []string { return f.tests[:0] })},"}},
		"policy.TestAttack056NamesThatFrameworksTakeByDefaultAreProtectedAndTakenFromBase",
	},
	{
		"a gate that its scope can rewrite is not said", "internal/engine/conclude.go",
		[][2]string{{"slices.Concat(a.flags, a.rewritable)", "slices.Concat(a.flags, a.rewritable[:0])"}},
		"compose.TestAttack055AGateThatItsScopeCanRewriteIsSaid",
	},
	{
		"loops whose scopes overlap work at once", "internal/engine/locks.go",
		[][2]string{{"plan.Arbitrate(asks, others, foreground)", "plan.Arbitrate(asks, others[:0], foreground)"}},
		"engine.TestTheLowerLoopGivesWayAndTheHigherOneWaits",
	},
	{
		"two claims in one repository do not follow each other", "internal/store/locks.go",
		[][2]string{{"if t.native.postgres != nil {", "if t.native.postgres != nil && repository == \"\" {"}},
		"store.TestTwoClaimsInOneRepositoryFollowEachOther",
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
		"instructions have no bounds", "internal/guidance/reader.go",
		[][2]string{{"room := min(MaxFile, MaxTotal-r.total)", "room := MaxTotal << 10"}, {"io.LimitReader(in, MaxFile)", "in"}},
		"guidance.TestAttack051HugeInstructionsAreCutAndSayIt",
	},
	{
		"a link of an instruction file leads out of the tree", "internal/guidance/reader.go",
		[][2]string{{`return to, to != ".." && !strings.HasPrefix(to, "../")`, "return path.Base(to), true"}, {`path.IsAbs(ref) || strings.HasPrefix(ref, "~")`, `ref == ""`}},
		"guidance.TestAttack051ALinkOutOfTheTreeIsNotRead",
	},
	{
		"the gates run on the agent's own tree", "internal/engine/verify.go",
		[][2]string{{"res, flag, err := j.runGate(ctx, w, g, at)\n", "at.Dir = j.tree.copy.Dir\n\t\tres, flag, err := j.runGate(ctx, w, g, at)\n"}},
		"compose.TestAttack059IgnoredFilesMakeNoGatePass",
	},
	{
		"what one gate leaves reaches the next", "internal/runenv/judge.go",
		[][2]string{
			{"k, err = s.Copy(ctx, gatePurpose(i), commit)", "k, err = s.kept(ctx, commit)"},
			{"if i+1 < len(gates) && gates[i+1].Check().Kind == loop.GateCommand && s.usesLayers() {", "if i > len(gates) {"},
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
		"the whole object store is shown inside", "internal/workspace/options.go",
		[][2]string{{"if t.options.Mirror != nil {\n\t\tdirs", "if t.options.Mirror != nil && len(dirs) == 0 {\n\t\tdirs"}},
		"compose.TestAttack039InFullGitInsideReadsWhatTheBaseReachesAndNothingElse",
	},
	{
		"a history is added to one that the base has left", "internal/git/mirror/mirror.go",
		[][2]string{{"if err != nil || !before {", "if err != nil || !before && ctx.Err() != nil {"}},
		"compose.TestAttack039InFullAHistoryThatTheBaseHasLeftIsNotReadAnyMore",
	},
	{
		"a history is removed while a run reads it", "internal/git/mirror/collect.go",
		[][2]string{{"if errors.Is(err, flock.ErrHeld) {\n\t\treturn false, nil\n", "if errors.Is(err, flock.ErrHeld) {\n\t\terr = nil\n"}},
		"git/mirror.TestWhatNobodyUsesIsCollected",
	},
	{
		"skipped tests count as run", "internal/loop/step.go",
		[][2]string{{"return c.Passed + c.Failed }", "return c.Passed + c.Failed + c.Skipped }"}},
		"compose.TestAttack058TestsThatAreGoneOrSkippedAreNoPass",
	},
	{
		"names that Windows cannot hold are ordinary", "internal/policy/change.go",
		[][2]string{{"if !limits.AnyNames {", "if limits.AnyNames {"}},
		"policy.TestAttack011NewNamesThatWindowsCannotHoldAreRefused",
	},
	{
		"a patch in a pipe holds what a terminal obeys", "internal/unprintable/patch.go",
		[][2]string{{"case !raw && Is(r) && ", "case !raw && r == 0 && Is(r) && "}},
		"unprintable.TestAPatchKeepsWhatIsSeenAndShowsWhatIsNot",
	},
	{
		"what an agent says stands as pawl's own lines", "internal/output/output.go",
		[][2]string{{"p.Field(indent, label, Quote(text))", "p.Field(indent, label, text)"}},
		"cli.TestABarStandsBeforeEachLineOfWhatAnAgentSays",
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
		[][2]string{{"_, err := rt.VoidProposals(ctx, a.LoopID, passedSteps(c.its), a.ID, newer)\n\t\t\treturn err", "return nil"}},
		"compose.TestAttack110AnApprovalCountsOnceAndForItsOwnRun",
	},
	{
		"a step is worked on while its proposal has no answer", "internal/engine/decide.go",
		[][2]string{{"c.proposals.holdBack(&cand)", ""}},
		"compose.TestAttack110AnApprovalCountsOnceAndForItsOwnRun",
	},
	{
		"piped text is an answer", "internal/cli/ask.go",
		[][2]string{{"case !a.canAsk():", "case a.json:"}},
		"cli.TestAttack113AnAgentAnswersNothing",
	},
	{
		"an approval can be answered twice", "internal/store/approvals.go",
		[][2]string{{"WHERE  id = $6 AND state = 'open' AND expires_ms > {now}", "WHERE  id = $6 AND expires_ms > {now}"}},
		"store.TestOfAThousandAnswersAtOnceOneWinsAndTheOthersSayWho",
	},
	{
		"an approval holds for any definition", "internal/engine/answer.go",
		[][2]string{{" || a.Definition != s.run.Definition", ""}},
		"engine.TestAnApprovalOfAnotherDefinitionIsWorthNothing",
	},
	{
		"an effect is not confirmed right before it happens", "internal/engine/effects.go",
		[][2]string{{"kind.Apply(ctx, e, o.confirmEffect)\n\t\treturn result, nil, err", "kind.Apply(ctx, e, func(context.Context) error { return nil })\n\t\treturn result, nil, err"}},
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
		"runs are listed by the wall clock alone", "internal/store/runs.go",
		[][2]string{{"AND seq < $2 ORDER BY seq DESC LIMIT $3", "AND seq < $2 ORDER BY created_ms DESC LIMIT $3"}},
		"runs.TestRunsOfALoopAreInOrderThoughTheClockWasSetBack",
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
		"another tree than the gated one lands", "internal/effect/land.go",
		[][2]string{{"if tree != e.Args[ArgTree] {", "if tree == \"\" {"}},
		"effect.TestAttack109ACommitWithAnotherTreeThanTheGatedOneNeverLands",
	},
	{
		"a branch moves wherever it stands", "internal/git/advance.go",
		[][2]string{
			{"if tip != a.Onto {", "if tip == \"\" {"},
			{"if err := r.UpdateRef(ctx, a.ref(), a.Commit, a.Onto); err != nil {", "tip, _, _ := r.Ref(ctx, a.ref())\n\tif err := r.UpdateRef(ctx, a.ref(), a.Commit, tip); err != nil {"},
		},
		"git.TestAttack037AForceMovedBranchIsNeverLandedOn",
	},
	{
		"a landing writes over work of a person", "internal/git/checkoutupdate.go",
		[][2]string{{"if !t.isStaged(one) || !t.isVacant(one) {", "if one.path == \"\" {"}},
		"git.TestAdvanceRefusesACheckoutThatIsNotCleanAndChangesNothing",
	},
	{
		"anything lands without a human at L3", "internal/engine/autoland.go",
		[][2]string{{"if !verdict.Allowed {", "if verdict.Rule == \"\" {"}},
		"engine.TestAtL3NothingButTheClassesOfAutolandLands",
	},
	{
		"a budget funds whatever is asked for", "internal/store/reservations.go",
		[][2]string{{"loop.CheckFunds(standing, v.amount, want); !ok {", "loop.CheckFunds(nil, v.amount, want); !ok {"}},
		"store.TestFiftyRunsShareABudgetForTen",
	},
	{
		"an agent starts on a model without a price where money has a cap", "internal/budget/need.go",
		[][2]string{{"if s.Budget.Cap.MicroUSD > 0 {", "if s.Budget.Cap.MicroUSD < 0 {"}},
		"engine.TestAModelWithoutAPriceIsRefusedWhereMoneyHasACap",
	},
	{
		"a loop rests because of a model without a price", "internal/engine/hold.go",
		[][2]string{{" || f.Class == loop.ReasonBudget)", ")"}, {"r.Hold && a.login.unsigned == nil:", "(r.Hold || f.Class == loop.ReasonBudget) && a.login.unsigned == nil:"}},
		"engine.TestAModelWithoutAPriceIsRefusedWhereMoneyHasACap",
	},
	{
		"a cut stream is charged with all that was held for it", "internal/modelapi/tally.go",
		[][2]string{{"if !t.ended {", "if !t.ended && t.ended {"}},
		"meter/model.TestAStreamThatIsCutIsChargedWithWhatWasSentAndWhatCame",
	},
	{
		"searches that the vendor ran are free", "internal/modelapi/tally.go",
		[][2]string{{"t.counts.WebSearches = max(t.counts.WebSearches, r.web.N)\n", ""}},
		"meter/model.TestAnAnswerIsBilledToTheMicroDollar",
	},
	{
		"long input costs as much as short input", "internal/price/price.go",
		[][2]string{{"if whole > float64(t.Above) {", "if whole < 0 {"}},
		"price.TestWhatACallCostsIsWhatAPersonWorksOut",
	},
	{
		"a stream that outgrows its grant goes on", "internal/spend/charge.go",
		[][2]string{{"\t_ = a.exhaust(passed, loop.Amount{}, why)\n\treturn false\n", "\t_ = a.exhaust(passed, loop.Amount{}, why)\n\treturn true\n"}},
		"meter/model.TestAttack095TheStreamIsCutAtTheCap",
	},
	{
		"what a program sends as a key goes to the vendor", "internal/meter/model/headers.go",
		[][2]string{{"|| !isListed(list, name):", "|| !isListed(list, name) && name == \"\":"}},
		"meter/model.TestAttack077NoKeyIsInsideAndAReflectedKeyIsHidden",
	},
	{
		"any header of a program goes to the vendor", "internal/meter/model/headers.go",
		[][2]string{{"|| !isListed(list, name):", "|| !isListed(list, name) && (strings.Contains(name, \"Auth\") || strings.Contains(name, \"Key\")):"}},
		"meter/model.TestOnlyHeadersOfTheListReachAVendor",
	},
	{
		"any feature of a vendor is switched on", "internal/meter/model/headers.go",
		[][2]string{{"case modeltool.IsFeatureHeader(name):", "case modeltool.IsFeatureHeader(name) && value(values) == \"\":"}, {"func isListed(", "func value(v []string) string { return v[0] }\n\nfunc isListed("}},
		"meter/model.TestFeaturesAreSwitchedOnByTheListAndVendorsToolsByTheDefinition",
	},
	{
		"a vendor's own tools are forwarded", "internal/modeltool/modeltool.go",
		[][2]string{{"if !slices.Contains(allowed, w.tool) {", "if w.tool == \"\" {"}},
		"meter/model.TestAttack081NoneOfTheVendorsOwnToolsIsAskedForByTheModelEndpoint",
	},
	{
		"a field that stands twice is read once", "internal/modeltool/node.go",
		[][2]string{{"if open[top].names[name] {", "if name == \"\" {"}},
		"meter/model.TestAttack081ARequestThatCanBeReadInTwoWaysIsNotForwarded",
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
		"the key of a gateway goes to the vendor as well", "internal/credential/vendor.go",
		[][2]string{{"case gateway.base == nil && v.ownsHost(", "case v.ownsHost("}},
		"credential.TestAttack078AKeyGoesToItsVendorOrToTheGatewayThatCameWithIt",
	},
	{
		"a login comes back from a run that was refused", "internal/engine/lent.go",
		[][2]string{{"case l.run.Outcome == loop.OutcomeRefused:\n", "case l.run.Outcome == loop.OutcomeRefused && l.loan == nil:\n"}},
		"engine.TestAttack084InFullALoginThatTheAgentReplacedIsKeptBesideTheUsers",
	},
	{
		"a login comes back although nobody renewed it", "internal/credential/settle.go",
		[][2]string{{"case !l.note.Answered:\n", "case !l.note.Answered && refused != \"\":\n"}},
		"credential.TestAttack084ALoginIsReplacedOnlyAfterAGoodRunInWhichItsVendorAnswered",
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
		"a bound on processes that cannot be set is let pass", "internal/proc/stage/bounds_linux.go",
		[][2]string{{"refuseAndExit(StepProcesses, err)", "_ = err"}},
		"sandbox.TestABoundThatCannotBeSetRefusesTheStart",
	},
	{
		"a stopped pawl keeps its programs", "internal/proc/guard/watch_linux.go",
		[][2]string{{"over = append(over, r)\n", "_ = over\n"}},
		"proc.TestAStoppedPawlLosesItsTreesBeforeTheirTimeIsOver",
	},
	{
		"a guard that died is not started again", "internal/proc/guard_linux.go",
		[][2]string{{"case <-time.After(pause):\n", "case <-time.After(pause):\n\t\t\treturn\n"}},
		"proc.TestAGuardThatWasKilledIsStartedAgainAndGuards",
	},
	{
		"processes are not bounded at all", "internal/proc/stage/bounds_linux.go",
		[][2]string{{"if l.User > 0 {", "if l.User > 1<<30 {"}},
		"sandbox.TestAProgramHasItsBoundsFromItsFirstInstructionOn",
	},
	{
		"what was prepared counts as unchanged whatever it holds", "internal/workspace/push.go",
		[][2]string{{"return was.Size() == info.Size() && sameContent(layer, p.tree, name)", "return sameContent(layer, layer, name)"}},
		"workspace.TestWhatIsPushedIntoADirectoryIsNoChangeOfIt",
	},
	{
		"what stands in place of a pointer counts as unchanged whatever it holds", "internal/workspace/judge.go",
		[][2]string{{"sameContent(j.filled.from, j.pushed.tree, filepath.FromSlash(path))", "sameContent(j.filled.from, j.filled.from, filepath.FromSlash(path))"}},
		"workspace.TestOnlyWhatDiffersFromWhatATreeWasFilledWithIsAChange",
	},
	{
		"a file of a submodule counts as unchanged whatever it holds", "internal/workspace/filled.go",
		[][2]string{{"case s.pushed.isAsPushed(path, info):", "case was != nil:"}},
		"workspace.TestOnlyWhatDiffersFromWhatATreeWasFilledWithIsAChange",
	},
	{
		"what git LFS has in its store is believed", "internal/workspace/filled/filled.go",
		[][2]string{{"if n != o.size || hex.EncodeToString(h.Sum(nil)) != o.oid {", "if n != o.size {"}},
		"runenv.TestWhatIsNotInTheCloneIsNamedWithItsFix",
	},
	{
		"a new file for git LFS is proposed as a whole", "internal/runenv/copy.go",
		[][2]string{{"if kept[i] {", "if kept[i] && false {"}},
		"runenv.TestWhatAnAgentWritesToFilledFilesIsNoChangeButAProblem",
	},
	{
		"folders above what is protected in a plain tree can be moved", "internal/sandbox/root_linux.go",
		[][2]string{{"for _, path := range slices.Concat(b.Protect, b.Masks) {\n\t\tfor dir", "for _, path := range b.Masks {\n\t\tfor dir"}},
		"sandbox.TestAProtectedFileOfAPlainTreeStaysWhereItIs",
	},
	{
		"a look at a large folder goes on after the switch", "internal/workspace/judge.go",
		[][2]string{{"\t\tif j.ctx.Err() != nil {\n\t\t\treturn context.Cause(j.ctx)\n", "\t\tif j.full {\n\t\t\treturn context.Cause(j.ctx)\n"}},
		"workspace.TestALookAtAFolderWithManyFilesEndsWithItsContext",
	},
	{
		"the disk that a run takes up is not counted", "internal/runenv/disk.go",
		[][2]string{{"u.Bytes += max(0, m.bytes-b.before)", "u.Bytes += 0"}},
		"engine.TestARunThatFillsTheDiskEndsAndNamesTheFolders",
	},
	{
		"a push goes on in spite of the switch", "internal/engine/effects.go",
		[][2]string{{"e.Kind != effect.KindPush && e.Kind != effect.KindPullRequest", "e.Kind != \"\""}},
		"engine.TestTheSwitchEndsAPushThatWouldNeverEnd",
	},
	{
		"a switch can be set while an effect begins", "internal/store/outbox.go",
		[][2]string{{"WHERE id = $1{for_share}`", "WHERE id = $1`"}},
		"store.TestTheSwitchOfALoopAndAnEffectThatBeginsWaitForEachOther",
	},
	{
		"two changes of an agent start from the same entry", "internal/store/roster.go",
		[][2]string{{"agentByHandle+`{for_update}`", "agentByHandle"}},
		"store.TestOfTwoChangesOfAnAgentAtOnceNoneIsLost",
	},
	{
		"each query of a view sees what was committed before it", "internal/store/store.go",
		[][2]string{{"o.Isolation = sql.LevelRepeatableRead", "o.Isolation = sql.LevelReadCommitted"}},
		"store.TestAViewSeesNothingThatIsCommittedAfterItBegan",
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
		"the day of a budget is that of the machine's zone", "internal/loop/budget.go",
		[][2]string{{"now.UTC().Date()", "now.Date()"}},
		"loop.TestWindowsAreThoseOfUTCWhereverAMachineIs",
	},
	{
		"changes of dead runs are mixed", "internal/store/outbox.go",
		[][2]string{{"ORDER BY r.n, c.seq", "ORDER BY c.seq, r.n"}},
		"store.TestChangesOfSeveralRunsArePendingInTheOrderOfTheRuns",
	},
	{
		"a person's edit is undone by changes that were written before it", "internal/projection/write.go",
		[][2]string{{"if p.RunID != w.run || p.RunID == run.ID {", "if p.RunID != \"\" {"}},
		"projection.TestWhatTwoDeadRunsRecordedIsWrittenWholeInOrderAndOnce",
	},
	{
		"a self-test counts on another kernel", "internal/sandbox/identity_linux.go",
		[][2]string{{"[]string{boot, release,", "[]string{boot,"}},
		"sandbox.TestAPassCountsForItsKernelItsStartItsUserAndItsBinaryOnly",
	},
	{
		"a self-test counts for another binary", "internal/sandbox/identity_linux.go",
		[][2]string{{"strconv.Itoa(uid), binary}", "strconv.Itoa(uid)}"}},
		"sandbox.TestAPassCountsForItsKernelItsStartItsUserAndItsBinaryOnly",
	},
	{
		"a file that was written in the tick of the seal is not read", "internal/workspace/mark.go",
		[][2]string{{"m.stamp.changed < now", "m.stamp.changed <= now"}},
		"workspace.TestAMarkOfTheTickOfItsSealProvesNothing",
	},
	{
		"a file of a loop's memory gets its name before its content is on the disk", "internal/projection/apply.go",
		[][2]string{{"err = beforeSync.Hit(ctx)\n\t}\n\tif err == nil {\n\t\terr = durable.SyncFile(file)", "err = beforeSync.Hit(ctx)"}},
		"projection.TestEveryChangeIsOnTheDiskBeforeItCountsAsWritten",
	},
	{
		"a rename in a loop's memory may be lost", "internal/projection/apply.go",
		[][2]string{{"return durable.SyncFolderIn(root, dir)", "return nil"}},
		"projection.TestEveryChangeIsOnTheDiskBeforeItCountsAsWritten",
	},
	{
		"nothing is ever synced", "internal/durable/durable.go",
		[][2]string{{"return f.Sync()", "return nil"}},
		"durable.TestASyncAsksTheSystem",
	},
	{
		"a commit may be lost", "internal/store/open.go",
		[][2]string{{"synchronous(FULL)", "synchronous(NORMAL)"}},
		"store.TestACommitIsOnTheDiskWhenItReturns",
	},
	{
		"a run log that is written anew may be lost", "internal/audit/runlog.go",
		[][2]string{{"return durable.SyncFolderIn(root, path.Dir(l.Path))", "return nil"}},
		"audit.TestALogThatIsWrittenAnewIsOnTheDiskBeforeItHasItsName",
	},
	{
		"an entry of the audit chain need not follow the one before it", "internal/store/audit.go",
		[][2]string{{"case l.Prev != prev:", "case l.Prev != prev && l.Body == \"\":"}},
		"store.TestAnEntryThatWasWrittenAnewWithItsOwnHashIsSeenBehindIt",
	},
	{
		"the kind of an entry is not in its hash", "internal/store/audit.go",
		[][2]string{{"[]any{l.Chain, l.Seq, millis(l.At), l.Kind, l.RunID, l.Body, l.Prev}", "[]any{l.Chain, l.Seq, millis(l.At), l.RunID, l.Body, l.Prev}"}},
		"store.TestEveryFieldOfAnEntryIsInItsHash",
	},
	{
		"the limit of changed bytes counts each file alone", "internal/policy/change.go",
		[][2]string{{"size > limits.Bytes-total {", "size > limits.Bytes {"}},
		"policy.TestAttack019ACandidateOverTheLimitsIsRefused",
	},
	{
		"a quoted path of an object store is taken as it stands", "internal/git/hazard/files.go",
		[][2]string{{"case !inside || line[0] == '\"':", "case !inside:"}},
		"git.TestAttack038ObjectsAndHistoryFromElsewhereAreRefused",
	},
	{
		"a program in the address for pushes is ordinary", "internal/git/hazard/keys.go",
		[][2]string{{"(key == \"remote.url\" || key == \"remote.pushurl\")", "key == \"remote.url\""}},
		"git/hazard.TestAnAddressThatNamesAProgramIsFoundWhereverItIsAnAddress",
	},
	{
		"Pwd= in a connection string is not a password", "internal/redact/environ.go",
		[][2]string{{"{\"password=\", \"pwd=\"}", "{\"password=\"}"}},
		"redact.TestPasswordsInsideOfValuesAreTaken",
	},
	{
		"a switch that cannot be read is not set", "internal/engine/switches.go",
		[][2]string{{"case !errors.Is(err, fs.ErrNotExist):", "case !errors.Is(err, fs.ErrNotExist) && rel == \"\":"}},
		"engine.TestASwitchThatCannotBeReadIsSet",
	},
	{
		"a lease is taken before its end", "internal/store/runs.go",
		[][2]string{{"lease_until_ms < {now} OR holder", "lease_until_ms < {now} + 2000 OR holder"}},
		"store.TestALeaseIsTakenASecondAfterItsEndAndNotASecondBefore",
	},
	{
		"the watcher does not see that the fence has moved", "internal/store/watch.go",
		[][2]string{{"case a.Fence != run.Fence:", "case a.Fence < 0:"}},
		"engine.TestAFenceThatMovesUnderTheWatcherIsSeenAtItsNextLook",
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
		"a file over the limit is forgotten behind a long list of problems", "internal/workspace/judge.go",
		[][2]string{{"if !rule.overLimit() {", "if rule != \"\" {"}},
		"workspace.TestASnapshotWithoutALargeFileIsNeverTakenForAWholeOne",
	},
	{
		"a commit that nobody acknowledged is repeated", "internal/store/holding.go",
		[][2]string{{"return lease == c.lease, nil", "return lease == c.lease-1, nil"}},
		"store.TestACommitThatNobodyAcknowledgedIsLookedUpAndNeverRepeated",
	},
	{
		"nobody waits for a database that is away", "internal/store/holding.go",
		[][2]string{{"if !isAway(err) && !isSerializationFailure(err) || ctx.Err() != nil {", "if !isSerializationFailure(err) || ctx.Err() != nil {"}},
		"store.TestAHolderWaitsForADatabaseThatIsAway",
	},
	{
		"a store that was deleted is written to", "internal/store/gone.go",
		[][2]string{{"if s.file == nil {", "if s.file == nil || s.w != nil {"}},
		"store.TestAStoreThatIsGoneIsNoticedAtOnceAndNamed",
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
}

// source is the file with the bug in it.
func (m mutant) source(t *testing.T) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
	if err != nil {
		t.Fatal(err)
	}
	text := string(body)
	for _, e := range m.edits {
		if n := strings.Count(text, e[0]); n != 1 {
			t.Fatalf("%s: %q stands %d times in %s, want once", m.what, e[0], n, m.file)
		}
		text = strings.Replace(text, e[0], e[1], 1)
	}
	return text
}

func TestEachListedMutantHasItsPlaceAndItsTest(t *testing.T) {
	tests := testsOfCheckout(t)
	seen := map[string]bool{}
	for _, m := range listedMutants {
		if m.source(t); !slices.Contains(tests, m.test) {
			t.Errorf("%s: there is no test %s", m.what, m.test)
		}
		if seen[m.what] {
			t.Errorf("%s: stands twice", m.what)
		}
		seen[m.what] = true
	}
}
