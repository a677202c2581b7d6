package definition

// laterFields are the keys that are defined and that this version does not
// honour. A Default here is the value that says what happens anyway, so that it
// may stand in a file.
var laterFields = []Field{
	{
		Name: "stop_lines", Kind: KindList, Default: "none", NotYet: Refused,
		Meaning: "Conditions at which the loop halts at once.",
		More:    "Until then on_failure: halt, give_up_after and the kill switch stop a loop.",
		Example: `["errors >= 5"]`,
	},
	{
		Name: "commit_state", Kind: KindFlag, Default: "false", NotYet: Refused,
		Meaning: "Whether the loop's memory is committed.",
		More:    "STATE.md and run-log.md are written into the checkout and left to you to commit.",
		Example: "true",
	},
	{
		Name: "include_dirty", Kind: KindFlag, Default: "false", NotYet: Refused,
		Meaning: "Whether uncommitted work is a part of what a run starts from.",
		More:    "A run starts from the tip of base; commit what it should see.",
		Example: "true",
	},
}
