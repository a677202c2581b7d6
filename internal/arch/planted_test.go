package arch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// planted is a bug that takes one guardrail out, and the test that must notice.
type planted struct {
	what  string
	file  string // below the top of the checkout
	edits [][2]string
	test  string // package and name, as in the table of attacks
}

// plantedBugs are taken by `make planted` as overlays of the build, one at a
// time. A text that is to be replaced stands once in its file.
var plantedBugs = []planted{
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
		"daemon.TestAttack004ALinkToASecretIsInNoLogAndNoCommit",
	},
	{
		"a link is followed when a file is read", "internal/regular/open_unix.go",
		[][2]string{{"os.O_RDONLY|syscall.O_NOFOLLOW|", "os.O_RDONLY|"}},
		"git/object.TestHashFileDoesNotFollowLinksOrBlock",
	},
	{
		"a file may become executable", "internal/policy/change.go",
		[][2]string{{"old != modeExec && !allowExec:", "old != modeExec && allowExec && !allowExec:"}},
		"daemon.TestAttack016AFileThatBecomesExecutableEndsTheRunRefused",
	},
	{
		"what the gates run is not protected", "internal/site/place.go",
		[][2]string{{"slices.Concat(s.Definition.Protect, gate.ProgramsOf(s.Definition))", "slices.Concat(s.Definition.Protect)"}},
		"daemon.TestAttack055WhatJudgesCannotBeRewritten",
	},
	{
		"the gates run on the agent's own tree", "internal/engine/verify.go",
		[][2]string{{"res, err := c.runGate(ctx, g, at)\n", "at.Dir = c.tree.Dir\n\t\tres, err := c.runGate(ctx, g, at)\n"}},
		"daemon.TestAttack059IgnoredFilesMakeNoGatePass",
	},
	{
		"what one gate leaves reaches the next", "internal/site/copy.go",
		[][2]string{{"if purpose == ForGate {", "if purpose == \"\" {"}},
		"daemon.TestAttack059IgnoredFilesMakeNoGatePass",
	},
	{
		"skipped tests count as run", "internal/loop/step.go",
		[][2]string{{"return c.Passed + c.Failed }", "return c.Passed + c.Failed + c.Skipped }"}},
		"daemon.TestAttack058TestsThatAreGoneOrSkippedAreNoPass",
	},
	{
		"programs are found in the tree", "internal/site/site.go",
		[][2]string{{"env = append(env, rooted(kv))", "env = append(env, kv)"}},
		"daemon.TestAttack061AProgramOfTheTreeIsNotTakenForOneOfThePath",
	},
	{
		"the scope is not checked after a rebase", "internal/engine/land.go",
		[][2]string{{"if err := c.checkScope(ctx, &w); err != nil {", "if err := ctx.Err(); err != nil {"}},
		"daemon.TestAttack010AChangeThatCollidesOnTheNewBaseIsRefusedBeforeItsGates",
	},
	{
		"a changed git configuration is ignored", "internal/engine/hazards.go",
		[][2]string{{"case known == fingerprint:", "case known != \"\":"}},
		"daemon.TestAttack032ConfigurationThatChangedAfterTheGatesLandsNothing",
	},
	{
		"older approvals stay open", "internal/engine/land.go",
		[][2]string{{"_, err := rt.VoidApprovals(ctx, a.LoopID, a.ID, \"superseded by \"+a.Action.Branch, loop.ActionLand, loop.ActionPullRequest)\n\t\t\treturn err", "return nil"}},
		"daemon.TestAttack110AnApprovalCountsOnceAndForItsOwnRun",
	},
	{
		"an approval can be answered twice", "internal/store/approvals.go",
		[][2]string{{"WHERE  id = $5 AND state = 'open' AND expires_ms > {now}", "WHERE  id = $5 AND expires_ms > {now}"}},
		"store.TestOfAThousandAnswersAtOnceOneWinsAndTheOthersSayWho",
	},
	{
		"an approval holds for any definition", "internal/engine/answer.go",
		[][2]string{{" || a.Definition != c.run.Definition", ""}},
		"engine.TestAnApprovalOfAnotherDefinitionIsWorthNothing",
	},
	{
		"an effect is not confirmed right before it happens", "internal/engine/effects.go",
		[][2]string{{"kind.Apply(ctx, *e, c.confirm)", "kind.Apply(ctx, *e, func(context.Context) error { return nil })"}},
		"daemon.TestALandingThatWasStoppedAsksForTheSwitchAgain",
	},
	{
		"a run is taken from a process that runs", "internal/engine/recover.go",
		[][2]string{{"case loop.HolderRunning:\n\t\treturn loop.Holder{}, false, nil", "case loop.HolderRunning:"}},
		"daemon.TestARunningHolderOfThisHostKeepsItsRunPastItsLease",
	},
	{
		"a stopped process is not ended before its run is taken", "internal/engine/recover.go",
		[][2]string{{"return r.Holder, true, e.EndHolder(ctx, r.Holder)", "return r.Holder, true, nil"}},
		"daemon.TestStoppedAtAnyPointOfLandingNothingMovesUnrecorded",
	},
	{
		"an approved command runs on any tree", "internal/engine/answer.go",
		[][2]string{{"if c.tree.From != a.Tree {", "if a.Tree == \"\" {"}},
		"engine.TestAttack109AnApprovedCommandRunsOnTheTreeThatWasShownOrNotAtAll",
	},
	{
		"silence of a gate that counted is a pass", "internal/engine/counts.go",
		[][2]string{{"base, recorded, err := c.recordedCounts(ctx, g)\n", "if res.Tests == nil && res.Note == \"\" {\n\t\treturn res, nil\n\t}\n\tbase, recorded, err := c.recordedCounts(ctx, g)\n"}},
		"daemon.TestAttack058AGateThatFallsSilentIsNoPass",
	},
	{
		"a landing does not ask what was approved", "internal/control/approvals.go",
		[][2]string{{"if def.Digest() != v.approval.Definition {", "if def.Digest() == \"\" {"}},
		"daemon.TestAttack109AnApprovalIsWorthNothingForWhatItDidNotShow",
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
		"a landing writes over work of a person", "internal/git/takeover.go",
		[][2]string{{"if !t.staged(one) || !t.vacant(one) {", "if one.path == \"\" {"}},
		"git.TestAdvanceRefusesACheckoutThatIsNotCleanAndChangesNothing",
	},
	{
		"effects happen in spite of the kill switch", "internal/engine/effects.go",
		[][2]string{{"\tif end != nil {\n\t\treturn c.outcomeOf(e, e.State, loop.EffectRefused", "\tif end != nil && ctx.Err() != nil {\n\t\treturn c.outcomeOf(e, e.State, loop.EffectRefused"}},
		"engine.TestNoEffectHappensAfterTheSwitchIsSet",
	},
	{
		"anything lands without a human at L3", "internal/engine/autoland.go",
		[][2]string{{"if !verdict.Allowed {", "if verdict.Rule == \"\" {"}},
		"engine.TestAtL3NothingButTheClassesOfAutolandLands",
	},
	{
		"a budget funds whatever is asked for", "internal/store/reservations.go",
		[][2]string{{"loop.Fund(standing, v.amount, want); !ok {", "loop.Fund(nil, v.amount, want); !ok {"}},
		"store.TestFiftyRunsShareABudgetForTen",
	},
	{
		"a stream that outgrows its grant goes on", "internal/meter/model/charge.go",
		[][2]string{{"\t_ = a.exhaust(what, loop.Amount{}, why)\n\treturn false\n", "\t_ = a.exhaust(what, loop.Amount{}, why)\n\treturn true\n"}},
		"meter/model.TestAttack095TheStreamIsCutAtTheCap",
	},
	{
		"what a program sends as a key goes to the vendor", "internal/meter/model/serve.go",
		[][2]string{{"!hop(name, x.in.Header) && !credential(name) && name", "!hop(name, x.in.Header) && name"}},
		"meter/model.TestAttack077NoKeyIsInsideAndAReflectedKeyIsHidden",
	},
	{
		"a second try gets the folder of the first", "internal/engine/act.go",
		[][2]string{{"s.FreshTurn(n)", "s.OpenTurn(n)"}},
		"engine.TestATryThatFailedLeavesTheNextOneNeitherReportNorLinks",
	},
	{
		"lent tokens are not secrets", "internal/engine/act.go",
		[][2]string{{"\tc.said.Learn(seat.Secrets())\n\ts := c.site()\n", "\ts := c.site()\n"}, {"\tc.said.Learn(seat.Secrets())\n\tif len(res.Asks)", "\tif len(res.Asks)"}},
		"daemon.TestAttack077InFullALentLoginThatItsProgramTellsIsInNoAccountAndOnNoBranch",
	},
	{
		"a limit of an account is counted as a failure of the step", "internal/plan/settle.go",
		[][2]string{{"\tcase a.Reason.Outside():\n\t\ts.outside()\n", ""}},
		"plan.TestWhatBecomesOfAStepAfterOneAttempt",
	},
}

// source is the file with the bug in it.
func (p planted) source(t *testing.T) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(p.file)))
	if err != nil {
		t.Fatal(err)
	}
	text := string(body)
	for _, e := range p.edits {
		if n := strings.Count(text, e[0]); n != 1 {
			t.Fatalf("%s: %q stands %d times in %s, want once", p.what, e[0], n, p.file)
		}
		text = strings.Replace(text, e[0], e[1], 1)
	}
	return text
}

func TestEveryPlantedBugHasItsPlaceAndItsTest(t *testing.T) {
	tests := testsOfCheckout(t)
	seen := map[string]bool{}
	for _, p := range plantedBugs {
		if p.source(t); !slices.Contains(tests, p.test) {
			t.Errorf("%s: there is no test %s", p.what, p.test)
		}
		if seen[p.what] {
			t.Errorf("%s: stands twice", p.what)
		}
		seen[p.what] = true
	}
}
