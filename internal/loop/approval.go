package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Action is what a human is asked to allow, exactly.
type Action struct {
	Kind string   `json:"kind"` // command, land, push …
	Argv []string `json:"argv,omitempty"`
	Why  string   `json:"why,omitempty"`
}

// Approval is a human's one-time, hash-bound, expiring yes or no.
type Approval struct {
	ID         string        `json:"id"`
	LoopID     string        `json:"loop_id"`
	RunID      string        `json:"run_id"`
	StepID     string        `json:"step_id"`
	Action     Action        `json:"action"`
	Tree       string        `json:"tree"`
	Definition string        `json:"definition"`
	Hash       string        `json:"hash"` // binds action, tree and definition
	State      ApprovalState `json:"state"`
	By         string        `json:"by,omitempty"`
	Note       string        `json:"note,omitempty"`
	Expires    time.Time     `json:"expires"`
	Created    time.Time     `json:"created"`
	Answered   time.Time     `json:"answered,omitzero"`
}

// Binding is the hash that an approval is bound to. A byte more in the tree
// or the definition gives another one.
func (a Approval) Binding() string {
	body, err := json.Marshal([]any{a.LoopID, a.RunID, a.StepID, a.Action, a.Tree, a.Definition})
	if err != nil {
		panic("loop: approval does not marshal: " + err.Error())
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// Answer is what a person said to an approval.
type Answer struct {
	Yes  bool
	By   string
	Note string
}
