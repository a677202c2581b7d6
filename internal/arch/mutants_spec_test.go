package arch

// specMutants take the rules of LoopSpecs, invariants and the memory out.
var specMutants = []mutant{
	{
		"a spec whose gates pass is done by itself", "internal/formats/spec/loopspec/status.go",
		[][2]string{{"{StatusRunning, EventPass, StatusWaitingHuman},", "{StatusRunning, EventPass, StatusDone},"}},
		"formats/spec/loopspec.TestAPassNeverCompletesASpecByItself",
	},
	{
		"a sentence is run as a command", "internal/formats/spec/loopspec/validate.go",
		[][2]string{{"v.machine.Executable == nil || v.machine.Executable(word):", "v.machine.Executable == nil || word != \"\":"}},
		"formats/spec/loopspec.TestASpecIsRefused",
	},
	{
		"the model that did the work reviews it", "internal/formats/spec/loopspec/validate.go",
		[][2]string{{"if maker != \"\" && strings.EqualFold(strings.TrimSpace(theirs), maker) {", "if maker != \"\" && theirs == \"\" {"}},
		"formats/spec/loopspec.TestTheConfiguredCriticMayNotAskTheMakersModel",
	},
	{
		"a spec without paths may write", "internal/formats/spec/loopspec/rules.go",
		[][2]string{{"return len(g.Scope) > 0 && !g.ReportOnly", "return !g.ReportOnly"}},
		"formats/spec/loopspec.TestWithoutEditsNothingIsWritten",
	},
	{
		"a guardrail may name the whole tree", "internal/formats/spec/loopspec/parse.go",
		[][2]string{{"case slices.ContainsFunc(alternatives, isWholeTree):", "case slices.ContainsFunc(alternatives[:0], isWholeTree):"}},
		"formats/spec/loopspec.TestWhatFitsNoPhraseIsRefusedAtItsWord",
	},
	{
		"a model makes a command up", "internal/formats/spec/loopspec/generated.go",
		[][2]string{{"if !m.Named(line) {", "if line == \"\" {"}},
		"formats/spec/loopspec.TestWhatAModelGeneratesIsASpecOrTheSkeleton",
	},
	{
		"a spec has one child more than its budget says", "internal/formats/spec/loopspec/spawn.go",
		[][2]string{{"int64(len(parent.ChildIDs)) >= most:", "int64(len(parent.ChildIDs)) > most:"}},
		"formats/spec/loopspec.TestMaxItemsBoundsTheChildren",
	},
	{
		"a child's budget is not taken from its parent", "internal/formats/spec/loopspec/carve.go",
		[][2]string{{"*part.child, *part.left = part.want, part.most-part.want", "*part.child, *part.left = part.want, part.most"}},
		"formats/spec/specs.TestAHundredWorkersAtOnceDoNotSpendTheirParentsBudgetTwice",
	},
	{
		"a budget does not include its limit", "internal/rules/loop/life.go",
		[][2]string{{"case int64(s.Attempts) >= l.Iterations:", "case int64(s.Attempts) > l.Iterations:"}},
		"formats/spec.TestTheBudgetOfASpecCountsOverItsWholeLifeAndIncludesItsLimit",
	},
	{
		"an evaluation takes more memory than it may", "internal/rules/invariant/invariant.go",
		[][2]string{{"steps: maxSteps, cells: maxCells,", "steps: maxSteps, cells: maxCells << 4,"}},
		"rules/invariant.TestAnEvaluationEnds",
	},
	{
		"a proposal counts after one confirmation", "internal/record/memory/memory.go",
		[][2]string{{"if m.Confirmed >= NeededConfirmations {", "if m.Confirmed >= 1 {"}},
		"record/memory.TestAProposalCountsAfterTwoConfirmationsThatAreIndependentOfItAndOfEachOther",
	},
	{
		"an agent confirms itself", "internal/record/memory/memory.go",
		[][2]string{{"return s.RunID == by.RunID || sameMaker(s, by) })", "return s.RunID == by.RunID })"}},
		"record/memory.TestNoOrderOfRunsMakesAProposalCountWithoutIndependentConfirmations",
	},
	{
		"a run brings back what a person forgot", "internal/record/memory/memory.go",
		[][2]string{{"case slices.ContainsFunc(known, about):", "case slices.ContainsFunc(known[:0], about):"}},
		"record/memory.TestWhatAPersonForgotNoRunBringsBack",
	},
	{
		"a prompt has what nobody confirmed", "internal/record/memory/goal.go",
		[][2]string{{"if m.State == loop.MemoryActive && (common", "if m.State != loop.MemoryForgotten && (common"}},
		"record/memory.TestAProposedMemoryIsNotGivenToAnybody",
	},
	{
		"a spec waits for an approval that became void", "internal/record/store/approvals.go",
		[][2]string{{"t.ReopenRejected(ctx, a.ID, \"\", a.Note), t.CloseQuestion(ctx, a.ID))", "t.CloseQuestion(ctx, a.ID))"}},
		"formats/spec/specs.TestASpecNeverWaitsForAQuestionThatNobodyCanAnswer",
	},
	{
		"what a person lands by hand is not accepted", "internal/verbs/approvals/byhand.go",
		[][2]string{{"if err := tx.WaitInstead(ctx, a.StepID, a.ID); err != nil {", "if err := tx.WaitInstead(ctx, \"\", a.ID); err != nil {"}},
		"formats/spec/specs.TestASpecNeverWaitsForAQuestionThatNobodyCanAnswer",
	},
	{
		"a text of an agent stands in a prompt as the user's", "internal/rules/envelope/field.go",
		[][2]string{{"func (f Field) isPersons() bool { return f.By == loop.RoleHuman }", "func (f Field) isPersons() bool { return f.By != loop.RoleTrigger }"}},
		"cycle/engine.TestWhatNoPersonWroteStandsInNoPromptAsTheUsers",
	},
	{
		"a text of an agent has headings of its own", "internal/rules/envelope/field.go",
		[][2]string{{"text := escapeHeadings(shown(f.Text, Most))", "text := shown(f.Text, Most)"}},
		"rules/envelope.TestOnlyATextOfAPersonStandsInAPromptAsItIs",
	},
	{
		"an item that an agent left is taken for a person's", "internal/formats/spine/session.go",
		[][2]string{{"row = row.WrittenBy(loop.RoleAgent)", "row = row.WrittenBy(loop.RoleHuman)"}},
		"formats/spine.TestAnItemIsThatOfWhoPutItIntoPriority",
	},
	{
		"an agent's flag is a criterion of the reviewers", "internal/formats/spec/specs/view.go",
		[][2]string{{"if by == loop.RoleHuman {\n\t\tj.Rubric", "if by != \"\" {\n\t\tj.Rubric"}},
		"formats/spec/specs.TestWhoWroteGoalAndFlagsOfASpecIsInItsDefinition",
	},
}
