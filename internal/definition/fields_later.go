package definition

// laterFields are the keys that are defined and that this version does not
// honour. A Default here is the value that says what happens anyway, so that it
// may stand in a file.
var laterFields = []Field{
	{
		Name: "reviewer", Kind: KindText, Default: "none", NotYet: Refused,
		Meaning: "The criteria by which another model judges the result.",
		More:    "A model other than the maker's answers PASS or FAIL; reviewer_agent and reviewer_model say which.",
		Example: `"The change is minimal and explains itself."`,
	},
	{
		Name: "reviewer_agent", Kind: KindText, Absent: "none", NotYet: NoEffect,
		Meaning: "Who reviews: a driver or an entry of the roster.",
		More:    "Used together with reviewer: the cheap model makes, the expensive one judges.",
		Example: "critic",
	},
	{
		Name: "reviewer_model", Kind: KindText, Absent: "none", NotYet: NoEffect,
		Meaning: "The model that reviews.",
		More:    "Used together with reviewer. It should be another model than the one that made the change.",
		Example: "claude-opus-4-8",
	},
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
