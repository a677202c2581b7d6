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
var listedMutants = slices.Concat(cycleMutants, specMutants, httpMutants, alwaysMutants, agentMutants, nodesMutants, []mutant{
	{
		"the protected list is skipped", "internal/rules/policy/policy.go",
		[][2]string{{"by := s.guards(name)\n", "by := s.guards(name)[:0]\n"}},
		"rules/policy.TestAttack017ProtectionWinsOverScope",
	},
	{
		"paths are compared by prefix", "internal/rules/policy/glob.go",
		[][2]string{{`return match(glob, name) || match(glob+"/**", name)`, `return match(glob, name) || strings.HasPrefix(name, strings.TrimRight(glob, "/*"))`}},
		"rules/policy.TestAPathIsAllowedExactlyIfAnotherMatcherSaysSo",
	},
	{
		"a new symbolic link is an ordinary file", "internal/rules/policy/change.go",
		[][2]string{
			{"case now == modeSymlink && old == modeFile, now == modeSymlink && old == modeExec:", "case now == modeSymlink && old == modeGitlink:"},
			{"case now == modeSymlink:\n", "case now == modeSymlink && old == modeGitlink:\n"},
			{"case now != 0 && now != modeFile && now != modeExec:", "case now != 0 && now != modeFile && now != modeExec && now != modeSymlink:"},
		},
		"surface/compose.TestAttack004ALinkToASecretIsInNoLogAndNoCommit",
	},
	{
		"a link is followed when a file is read", "internal/ground/safeopen/open_unix.go",
		[][2]string{{"os.O_RDONLY|syscall.O_NOFOLLOW|", "os.O_RDONLY|"}},
		"git/object.TestHashFileDoesNotFollowLinksOrBlock",
	},
	{
		"a file may become executable", "internal/rules/policy/change.go",
		[][2]string{{"old != modeExec && !allowExec:", "old != modeExec && allowExec && !allowExec:"}},
		"surface/compose.TestAttack016AFileThatBecomesExecutableEndsTheRunRefused",
	},
	{
		"names that frameworks take by default are not protected", "internal/rules/policy/groups.go",
		[][2]string{{"{testsGroup, true, defaultsOf(func(f framework) []string { return f.tests })},", "{testsGroup, true, defaultsOf(func(f framework) []string { return f.tests[:0] })},"}},
		"rules/policy.TestAttack056NamesThatFrameworksTakeByDefaultAreProtectedAndTakenFromBase",
	},
	{
		"two claims in one repository do not follow each other", "internal/record/store/locks.go",
		[][2]string{{"if t.native.postgres != nil {", "if t.native.postgres != nil && repository == \"\" {"}},
		"record/store.TestTwoClaimsInOneRepositoryFollowEachOther",
	},
	{
		"instructions have no bounds", "internal/definitions/guidance/reader.go",
		[][2]string{{"room := min(MaxFile, MaxTotal-r.total)", "room := MaxTotal << 10"}, {"io.LimitReader(in, MaxFile)", "in"}},
		"definitions/guidance.TestAttack051HugeInstructionsAreCutAndSayIt",
	},
	{
		"a link of an instruction file leads out of the tree", "internal/definitions/guidance/reader.go",
		[][2]string{{`return to, to != ".." && !strings.HasPrefix(to, "../")`, "return path.Base(to), true"}, {`path.IsAbs(ref) || strings.HasPrefix(ref, "~")`, `ref == ""`}},
		"definitions/guidance.TestAttack051ALinkOutOfTheTreeIsNotRead",
	},
	{
		"the whole object store is shown inside", "internal/confine/workspace/options.go",
		[][2]string{{"if t.options.Mirror != nil {\n\t\tdirs", "if t.options.Mirror != nil && len(dirs) == 0 {\n\t\tdirs"}},
		"surface/compose.TestAttack039InFullGitInsideReadsWhatTheBaseReachesAndNothingElse",
	},
	{
		"a history is added to one that the base has left", "internal/git/mirror/mirror.go",
		[][2]string{{"if err != nil || !before {", "if err != nil || !before && ctx.Err() != nil {"}},
		"surface/compose.TestAttack039InFullAHistoryThatTheBaseHasLeftIsNotReadAnyMore",
	},
	{
		"a history is removed while a run reads it", "internal/git/mirror/collect.go",
		[][2]string{{"if errors.Is(err, flock.ErrHeld) {\n\t\treturn false, nil\n", "if errors.Is(err, flock.ErrHeld) {\n\t\terr = nil\n"}},
		"git/mirror.TestWhatNobodyUsesIsCollected",
	},
	{
		"skipped tests count as run", "internal/rules/loop/step.go",
		[][2]string{{"return c.Passed + c.Failed }", "return c.Passed + c.Failed + c.Skipped }"}},
		"surface/compose.TestAttack058TestsThatAreGoneOrSkippedAreNoPass",
	},
	{
		"names that Windows cannot hold are ordinary", "internal/rules/policy/change.go",
		[][2]string{{"if !limits.AnyNames {", "if limits.AnyNames {"}},
		"rules/policy.TestAttack011NewNamesThatWindowsCannotHoldAreRefused",
	},
	{
		"a patch in a pipe holds what a terminal obeys", "internal/ground/unprintable/patch.go",
		[][2]string{{"case !raw && Is(r) && ", "case !raw && r == 0 && Is(r) && "}},
		"ground/unprintable.TestAPatchKeepsWhatIsSeenAndShowsWhatIsNot",
	},
	{
		"what an agent says stands as pawl's own lines", "internal/verbs/output/output.go",
		[][2]string{{"p.Field(indent, label, Quote(text))", "p.Field(indent, label, text)"}},
		"surface/cli.TestABarStandsBeforeEachLineOfWhatAnAgentSays",
	},
	{
		"piped text is an answer", "internal/surface/cli/ask.go",
		[][2]string{{"case !a.canAsk():", "case a.json:"}},
		"surface/cli.TestAttack113AnAgentAnswersNothing",
	},
	{
		"an approval can be answered twice", "internal/record/store/approvals.go",
		[][2]string{{"WHERE  id = $6 AND state = 'open' AND expires_ms > {now}", "WHERE  id = $6 AND expires_ms > {now}"}},
		"record/store.TestOfAThousandAnswersAtOnceOneWinsAndTheOthersSayWho",
	},
	{
		"runs are listed by the wall clock alone", "internal/record/store/runs.go",
		[][2]string{{"AND seq < $2 ORDER BY seq DESC LIMIT $3", "AND seq < $2 ORDER BY created_ms DESC LIMIT $3"}},
		"verbs/runs.TestRunsOfALoopAreInOrderThoughTheClockWasSetBack",
	},
	{
		"another tree than the gated one lands", "internal/cycle/effect/land.go",
		[][2]string{{"if tree != e.Args[ArgTree] {", "if tree == \"\" {"}},
		"cycle/effect.TestAttack109ACommitWithAnotherTreeThanTheGatedOneNeverLands",
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
		"a budget funds whatever is asked for", "internal/record/store/reservations.go",
		[][2]string{{"loop.CheckFunds(standing, v.amount, want); !ok {", "loop.CheckFunds(nil, v.amount, want); !ok {"}},
		"record/store.TestFiftyRunsShareABudgetForTen",
	},
	{
		"a cut stream is charged with all that was held for it", "internal/agents/modelapi/tally.go",
		[][2]string{{"if !t.ended {", "if !t.ended && t.ended {"}},
		"agents/meter/model.TestAStreamThatIsCutIsChargedWithWhatWasSentAndWhatCame",
	},
	{
		"searches that the vendor ran are free", "internal/agents/modelapi/tally.go",
		[][2]string{{"t.counts.WebSearches = max(t.counts.WebSearches, r.web.N)\n", ""}},
		"agents/meter/model.TestAnAnswerIsBilledToTheMicroDollar",
	},
	{
		"long input costs as much as short input", "internal/rules/price/price.go",
		[][2]string{{"if whole > float64(t.Above) {", "if whole < 0 {"}},
		"rules/price.TestWhatACallCostsIsWhatAPersonWorksOut",
	},
	{
		"what a program sends as a key goes to the vendor", "internal/agents/meter/model/headers.go",
		[][2]string{{"|| !isListed(list, name):", "|| !isListed(list, name) && name == \"\":"}},
		"agents/meter/model.TestAttack077NoKeyIsInsideAndAReflectedKeyIsHidden",
	},
	{
		"any header of a program goes to the vendor", "internal/agents/meter/model/headers.go",
		[][2]string{{"|| !isListed(list, name):", "|| !isListed(list, name) && (strings.Contains(name, \"Auth\") || strings.Contains(name, \"Key\")):"}},
		"agents/meter/model.TestOnlyHeadersOfTheListReachAVendor",
	},
	{
		"any feature of a vendor is switched on", "internal/agents/meter/model/headers.go",
		[][2]string{{"case modeltool.IsFeatureHeader(name):", "case modeltool.IsFeatureHeader(name) && value(values) == \"\":"}, {"func isListed(", "func value(v []string) string { return v[0] }\n\nfunc isListed("}},
		"agents/meter/model.TestFeaturesAreSwitchedOnByTheListAndVendorsToolsByTheDefinition",
	},
	{
		"a vendor's own tools are forwarded", "internal/agents/modeltool/modeltool.go",
		[][2]string{{"if !slices.Contains(allowed, w.tool) {", "if w.tool == \"\" {"}},
		"agents/meter/model.TestAttack081NoneOfTheVendorsOwnToolsIsAskedForByTheModelEndpoint",
	},
	{
		"a field that stands twice is read once", "internal/agents/modeltool/node.go",
		[][2]string{{"if open[top].names[name] {", "if name == \"\" {"}},
		"agents/meter/model.TestAttack081ARequestThatCanBeReadInTwoWaysIsNotForwarded",
	},
	{
		"the key of a gateway goes to the vendor as well", "internal/agents/credential/vendor.go",
		[][2]string{{"case gateway.base == nil && v.ownsHost(", "case v.ownsHost("}},
		"agents/credential.TestAttack078AKeyGoesToItsVendorOrToTheGatewayThatCameWithIt",
	},
	{
		"a login comes back although nobody renewed it", "internal/agents/credential/settle.go",
		[][2]string{{"case !l.note.Answered:\n", "case !l.note.Answered && refused != \"\":\n"}},
		"agents/credential.TestAttack084ALoginIsReplacedOnlyAfterAGoodRunInWhichItsVendorAnswered",
	},
	{
		"a bound on processes that cannot be set is let pass", "internal/ground/proc/stage/bounds_linux.go",
		[][2]string{{"refuseAndExit(StepProcesses, err)", "_ = err"}},
		"confine/sandbox.TestABoundThatCannotBeSetRefusesTheStart",
	},
	{
		"a stopped pawl keeps its programs", "internal/ground/proc/guard/watch_linux.go",
		[][2]string{{"over = append(over, r)\n", "_ = over\n"}},
		"ground/proc.TestAStoppedPawlLosesItsTreesBeforeTheirTimeIsOver",
	},
	{
		"a guard that died is not started again", "internal/ground/proc/guard_linux.go",
		[][2]string{{"case <-time.After(pause):\n", "case <-time.After(pause):\n\t\t\treturn\n"}},
		"ground/proc.TestAGuardThatWasKilledIsStartedAgainAndGuards",
	},
	{
		"processes are not bounded at all", "internal/ground/proc/stage/bounds_linux.go",
		[][2]string{{"if l.User > 0 {", "if l.User > 1<<30 {"}},
		"confine/sandbox.TestAProgramHasItsBoundsFromItsFirstInstructionOn",
	},
	{
		"what was prepared counts as unchanged whatever it holds", "internal/confine/workspace/push.go",
		[][2]string{{"return was.Size() == info.Size() && sameContent(layer, p.tree, name)", "return sameContent(layer, layer, name)"}},
		"confine/workspace.TestWhatIsPushedIntoADirectoryIsNoChangeOfIt",
	},
	{
		"what stands in place of a pointer counts as unchanged whatever it holds", "internal/confine/workspace/judge.go",
		[][2]string{{"sameContent(j.filled.from, j.pushed.tree, filepath.FromSlash(path))", "sameContent(j.filled.from, j.filled.from, filepath.FromSlash(path))"}},
		"confine/workspace.TestOnlyWhatDiffersFromWhatATreeWasFilledWithIsAChange",
	},
	{
		"a file of a submodule counts as unchanged whatever it holds", "internal/confine/workspace/filled.go",
		[][2]string{{"case s.pushed.isAsPushed(path, info):", "case was != nil:"}},
		"confine/workspace.TestOnlyWhatDiffersFromWhatATreeWasFilledWithIsAChange",
	},
	{
		"what git LFS has in its store is believed", "internal/confine/workspace/filled/filled.go",
		[][2]string{{"if n != o.size || hex.EncodeToString(h.Sum(nil)) != o.oid {", "if n != o.size {"}},
		"cycle/runenv.TestWhatIsNotInTheCloneIsNamedWithItsFix",
	},
	{
		"folders above what is protected in a plain tree can be moved", "internal/confine/sandbox/root_linux.go",
		[][2]string{{"for _, path := range slices.Concat(b.Protect, b.Masks) {\n\t\tfor dir", "for _, path := range b.Masks {\n\t\tfor dir"}},
		"confine/sandbox.TestAProtectedFileOfAPlainTreeStaysWhereItIs",
	},
	{
		"a look at a large folder goes on after the switch", "internal/confine/workspace/judge.go",
		[][2]string{{"\t\tif j.ctx.Err() != nil {\n\t\t\treturn context.Cause(j.ctx)\n", "\t\tif j.full {\n\t\t\treturn context.Cause(j.ctx)\n"}},
		"confine/workspace.TestALookAtAFolderWithManyFilesEndsWithItsContext",
	},
	{
		"a switch can be set while an effect begins", "internal/record/store/outbox.go",
		[][2]string{{"WHERE id = $1{for_share}`", "WHERE id = $1`"}},
		"record/store.TestTheSwitchOfALoopAndAnEffectThatBeginsWaitForEachOther",
	},
	{
		"two changes of an agent start from the same entry", "internal/record/store/roster.go",
		[][2]string{{"agentByHandle+`{for_update}`", "agentByHandle"}},
		"record/store.TestOfTwoChangesOfAnAgentAtOnceNoneIsLost",
	},
	{
		"each query of a view sees what was committed before it", "internal/record/store/together.go",
		[][2]string{{"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "BEGIN READ ONLY"}},
		"record/store.TestAViewSeesNothingThatIsCommittedAfterItBegan",
	},
	{
		"the day of a budget is that of the machine's zone", "internal/rules/loop/budget.go",
		[][2]string{{"now.UTC().Date()", "now.Date()"}},
		"rules/loop.TestWindowsAreThoseOfUTCWhereverAMachineIs",
	},
	{
		"changes of dead runs are mixed", "internal/record/store/outbox.go",
		[][2]string{{"ORDER  BY CASE r.ended_ms WHEN 0 THEN 1 ELSE 0 END, r.ended_ms, r.n, c.seq", "ORDER  BY c.seq, r.n"}},
		"record/store.TestChangesOfSeveralRunsArePendingInTheOrderOfTheRuns",
	},
	{
		"a person's edit is undone by changes that were written before it", "internal/record/projection/write.go",
		[][2]string{{"if p.RunID != w.run || p.RunID == run.ID {", "if p.RunID != \"\" {"}},
		"record/projection.TestWhatTwoDeadRunsRecordedIsWrittenWholeInOrderAndOnce",
	},
	{
		"a self-test counts on another kernel", "internal/confine/sandbox/identity_linux.go",
		[][2]string{{"[]string{boot, release,", "[]string{boot,"}},
		"confine/sandbox.TestAPassCountsForItsKernelItsStartItsUserAndItsBinaryOnly",
	},
	{
		"a self-test counts for another binary", "internal/confine/sandbox/identity_linux.go",
		[][2]string{{"strconv.Itoa(uid), binary}", "strconv.Itoa(uid)}"}},
		"confine/sandbox.TestAPassCountsForItsKernelItsStartItsUserAndItsBinaryOnly",
	},
	{
		"a file that was written in the tick of the seal is not read", "internal/confine/workspace/mark.go",
		[][2]string{{"m.stamp.changed < now", "m.stamp.changed <= now"}},
		"confine/workspace.TestAMarkOfTheTickOfItsSealProvesNothing",
	},
	{
		"a file of a loop's memory gets its name before its content is on the disk", "internal/record/projection/apply.go",
		[][2]string{{"err = beforeSync.Hit(ctx)\n\t}\n\tif err == nil {\n\t\terr = durable.SyncFile(file)", "err = beforeSync.Hit(ctx)"}},
		"record/projection.TestEveryChangeIsOnTheDiskBeforeItCountsAsWritten",
	},
	{
		"a rename in a loop's memory may be lost", "internal/record/projection/apply.go",
		[][2]string{{"return durable.SyncFolderIn(root, dir)", "return nil"}},
		"record/projection.TestEveryChangeIsOnTheDiskBeforeItCountsAsWritten",
	},
	{
		"nothing is ever synced", "internal/ground/durable/durable.go",
		[][2]string{{"return f.Sync()", "return nil"}},
		"ground/durable.TestASyncAsksTheSystem",
	},
	{
		"a commit may be lost", "internal/record/store/open.go",
		[][2]string{{"synchronous(FULL)", "synchronous(NORMAL)"}},
		"record/store.TestACommitIsOnTheDiskWhenItReturns",
	},
	{
		"a run log that is written anew may be lost", "internal/verbs/audit/runlog.go",
		[][2]string{{"return durable.SyncFolderIn(root, path.Dir(l.Path))", "return nil"}},
		"verbs/audit.TestALogThatIsWrittenAnewIsOnTheDiskBeforeItHasItsName",
	},
	{
		"an entry of the audit chain need not follow the one before it", "internal/record/store/audit.go",
		[][2]string{{"case l.Prev != prev:", "case l.Prev != prev && l.Body == \"\":"}},
		"record/store.TestAnEntryThatWasWrittenAnewWithItsOwnHashIsSeenBehindIt",
	},
	{
		"the kind of an entry is not in its hash", "internal/record/store/audit.go",
		[][2]string{{"[]any{l.Chain, l.Seq, millis(l.At), l.Kind, l.RunID, l.Body, l.Prev}", "[]any{l.Chain, l.Seq, millis(l.At), l.RunID, l.Body, l.Prev}"}},
		"record/store.TestEveryFieldOfAnEntryIsInItsHash",
	},
	{
		"the limit of changed bytes counts each file alone", "internal/rules/policy/change.go",
		[][2]string{{"size > limits.Bytes-total {", "size > limits.Bytes {"}},
		"rules/policy.TestAttack019ACandidateOverTheLimitsIsRefused",
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
		"Pwd= in a connection string is not a password", "internal/ground/redact/environ.go",
		[][2]string{{"{\"password=\", \"pwd=\"}", "{\"password=\"}"}},
		"ground/redact.TestPasswordsInsideOfValuesAreTaken",
	},
	{
		"a lease is taken before its end", "internal/record/store/runs.go",
		[][2]string{{"lease_until_ms < {now} OR holder", "lease_until_ms < {now} + 2000 OR holder"}},
		"record/store.TestALeaseIsTakenASecondAfterItsEndAndNotASecondBefore",
	},
	{
		"the watcher does not see that the fence has moved", "internal/record/store/watch.go",
		[][2]string{{"case a.Fence != run.Fence:", "case a.Fence < 0:"}},
		"cycle/engine.TestAFenceThatMovesUnderTheWatcherIsSeenAtItsNextLook",
	},
	{
		"a file over the limit is forgotten behind a long list of problems", "internal/confine/workspace/judge.go",
		[][2]string{{"if !rule.overLimit() {", "if rule != \"\" {"}},
		"confine/workspace.TestASnapshotWithoutALargeFileIsNeverTakenForAWholeOne",
	},
	{
		"a commit that nobody acknowledged is repeated", "internal/record/store/holding.go",
		[][2]string{{"return lease == c.lease, nil", "return lease == c.lease-1, nil"}},
		"record/store.TestACommitThatNobodyAcknowledgedIsLookedUpAndNeverRepeated",
	},
	{
		"nobody waits for a database that is away", "internal/record/store/holding.go",
		[][2]string{{"if !isAway(err) && !isSerializationFailure(err) || ctx.Err() != nil {", "if !isSerializationFailure(err) || ctx.Err() != nil {"}},
		"record/store.TestAHolderWaitsForADatabaseThatIsAway",
	},
	{
		"a store that was deleted is written to", "internal/record/store/gone.go",
		[][2]string{{"if s.file == nil {", "if s.file == nil || s.w != nil {"}},
		"record/store.TestAStoreThatIsGoneIsNoticedAtOnceAndNamed",
	},
})

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
