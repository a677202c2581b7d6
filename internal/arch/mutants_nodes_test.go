package arch

// nodesMutants take out what keeps rows of a shared store from making a node do something.
var nodesMutants = []mutant{
	{
		"a channel runs a line that nobody accepted on the node", "internal/verbs/notify/sender.go",
		[][2]string{{"if err := s.Accepted.Check(item); err != nil {", "if err := s.Accepted.Check(item); err != nil && c.Kind == \"\" {"}},
		"surface/compose.TestAttack126ANoticeThatIsARowRunsNothing",
	},
	{
		"a definition runs that nobody accepted on the node", "internal/cycle/engine/admit.go",
		[][2]string{{"if e.Accepted == nil || !asks {", "if e.Accepted == nil || !asks || d.Name != \"\" {"}},
		"surface/compose.TestAttack126ADefinitionThatIsARowGetsNothingOfANode",
	},
	{
		"a program in the overrides of a row counts as said by the file", "internal/cycle/engine/admit.go",
		[][2]string{{`if t.OfFile == nil || o.AgentCommand != "" || o.Sandbox != "" {`, "if t.OfFile == nil {"}},
		"surface/compose.TestAttack126ADefinitionThatIsARowGetsNothingOfANode",
	},
	{
		"the row of a loop says which command is looked at", "internal/cycle/engine/admit.go",
		[][2]string{{"if slices.ContainsFunc(t.Definition.On, asks) {", "if slices.ContainsFunc(t.Definition.On, asks) || t.Loop.Name != \"\" {"}},
		"surface/compose.TestAttack126ADefinitionThatIsARowGetsNothingOfANode",
	},
	{
		"an agent's program and address are taken from the roster", "internal/cycle/engine/admit.go",
		[][2]string{{"\treturn e.Accepted.Check(item)\n", "\t_ = e.Accepted.Check(item)\n\treturn nil\n"}},
		"surface/compose.TestAttack126AnAgentThatIsARowStartsNoProgramAndGetsNoKey",
	},
	{
		"who sets the model of an agent accepts its program", "internal/verbs/roster/roster.go",
		[][2]string{{"if !known && !said {", "if !known && !said && a.Handle == \"\" {"}},
		"surface/compose.TestAttack126AnAgentThatIsARowStartsNoProgramAndGetsNoKey",
	},
	{
		"a daemon enters every folder that a row calls a workspace", "internal/surface/daemon/fleet.go",
		[][2]string{{"if err := f.accepted.Check(accepted.Place(at)); err != nil {", "if err := f.accepted.Check(accepted.Place(at)); err != nil && at.Path == \"\" {"}},
		"surface/compose.TestAttack126APlaceThatIsARowIsNotOpened",
	},
	{
		"a yes counts that nobody gave on the node", "internal/cycle/engine/admit.go",
		[][2]string{{"{ return e.Accepted.Check(accepted.Answer(a)) }", "{ _ = e.Accepted.Check(accepted.Answer(a)); return nil }"}},
		"surface/compose.TestAttack126AnAnswerThatIsARowLandsNothing",
	},
	{
		"an effect is applied because a row asks for it", "internal/cycle/engine/effects.go",
		[][2]string{{"err := o.admitEffect(ctx, *e)", "var err error"}},
		"surface/compose.TestAttack126AnEffectThatIsARowMovesNothing",
	},
	{
		"a row writes any file of the checkout", "internal/cycle/engine/admitrow.go",
		[][2]string{{"if !isMemoryFile(name) {", "if !isMemoryFile(name) && name == \"\" {"}},
		"surface/compose.TestAttack126AChangeThatIsARowWritesNoFileThatDecides",
	},
	{
		"what is accepted is a name, and not what it does", "internal/record/accepted/accepted.go",
		[][2]string{{`append([]byte(i.Kind+"\x00"), i.Body...)`, `[]byte(string(i.Kind) + "\x00" + i.Name)`}},
		"record/accepted.TestAnythingElseThanWhatWasAcceptedIsNot",
	},
}
