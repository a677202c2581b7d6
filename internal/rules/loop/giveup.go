package loop

// Repeat is what failed attempts at a step have in common when it is given up.
type Repeat string

// What attempts can have in common.
const (
	RepeatGateAndTree Repeat = "gate_and_tree" // the same gate fails, and the tree stays the same
	RepeatGate        Repeat = "gate"          // the same gate fails, whatever the tree
	RepeatTest        Repeat = "test"          // the same test fails; where no tests are named, the same gate
	RepeatTree        Repeat = "tree"          // the tree is one that failed before, but not the time before
	RepeatFindings    Repeat = "findings"      // the report has no finding that an earlier one did not have
)

// Consequence is what giving up means.
type Consequence string

// Consequences of giving up.
const (
	ThenEscalate Consequence = "escalate" // the step is a person's, who gets an account of what was tried
	ThenStop     Consequence = "stop"     // the step is a person's
	ThenPause    Consequence = "pause"    // the loop is paused; resuming it tries again
)

// GiveUpRule says when a step is not tried again.
type GiveUpRule struct {
	Repeat Repeat      `json:"repeat"`
	Times  int         `json:"times"` // attempts in a row
	Then   Consequence `json:"then,omitempty"`
	Report bool        `json:"report,omitempty"` // with ThenPause: a person gets an account of what was tried
}

// GiveUpRules returns the rules by which steps are given up; the first that is met
// counts. Without rules of its own, a definition gives up after GiveUpAfter attempts at
// one gate with one tree.
func (d Definition) GiveUpRules() []GiveUpRule {
	if len(d.GiveUp) > 0 {
		return d.GiveUp
	}
	return []GiveUpRule{{Repeat: RepeatGateAndTree, Times: orDefault(d.GiveUpAfter, DefaultGiveUpAfter), Then: ThenEscalate}}
}

// Tried is what the attempts at a step came to, as far as the rules ask by which it is
// given up. The zero Tried has seen none.
type Tried struct {
	Gates  map[string]Streak `json:"gates,omitempty"`   // by the name of the gate that failed
	Tests  map[string]int    `json:"tests,omitempty"`   // by the name of the test: how often in a row it failed
	Trees  []string          `json:"trees,omitempty"`   // that failed, the newest last
	Back   int               `json:"back,omitempty"`    // attempts in a row that came back to one of Trees
	Found  []string          `json:"found,omitempty"`   // digests of the findings so far
	Barren int               `json:"barren,omitempty"`  // attempts in a row without a new finding
	GaveUp Reason            `json:"gave_up,omitempty"` // why it is not tried again before a person answers; empty: it was not given up
}

// Streak is a row of attempts that failed at one gate.
type Streak struct {
	Failed   int    `json:"failed"`    // attempts in a row
	Tree     string `json:"tree"`      // of the last of them
	SameTree int    `json:"same_tree"` // how many of the last had this tree
}
