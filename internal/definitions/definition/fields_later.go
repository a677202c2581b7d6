package definition

// laterFields are the keys that are defined and that this version does not
// honour. A Default here is the value that says what happens anyway, so that it
// may stand in a file.
var laterFields = []Field{
	{
		Name: "include_dirty", Kind: KindFlag, Default: "false", NotYet: Refused,
		Meaning: "Whether uncommitted work is a part of what a run starts from.",
		More: "A run starts from the tip of base; commit what it should see. It is refused because a proposal has to land as the tree that its gates passed: " +
			"with your uncommitted work in it, landing would commit that as the agent's or meet it in the checkout; without it, the tree is not the one that passed.",
		Example: "true",
	},
}
