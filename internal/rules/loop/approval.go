package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Action is what a human is asked to allow, exactly.
type Action struct {
	Kind string   `json:"kind"` // one of the Action constants
	Argv []string `json:"argv,omitempty"`
	Why  string   `json:"why,omitempty"`

	// Where a landing moves what.
	Branch string `json:"branch,omitempty"` // the proposed branch, without refs/heads/
	Commit string `json:"commit,omitempty"` // the commit that Branch points to
	Base   string `json:"base,omitempty"`   // the branch that is advanced, without refs/heads/
	Onto   string `json:"onto,omitempty"`   // the commit that Base must point to
	Merge  bool   `json:"merge,omitempty"`  // with a merge commit instead of a fast-forward
	Remote string `json:"remote,omitempty"` // pull_request: where the branch is pushed to; push: where Base is

	// Stack are the proposals that the proposed commit builds on, the lowest first. Those of
	// them that Base does not have yet land with it.
	Stack []Lower `json:"stack,omitempty"`

	// KeepsBudget says of a question that the step goes on after a yes with what is left of the
	// budget of its life; else that begins anew.
	KeepsBudget bool `json:"keeps_budget,omitempty"`

	Flags []string `json:"flags,omitempty"` // what a human should know before saying yes
}

// Lower is a proposal that another one builds on.
type Lower struct {
	Branch string `json:"branch"` // without refs/heads/
	Commit string `json:"commit"`
	Onto   string `json:"onto"` // the commit that it was made on
}

// MayAdvance reports whether Base may be moved to the commit from where it points to now:
// it is where the gates ran, or below a proposal that lands with this one.
func (a Action) MayAdvance(tip string) bool {
	return tip == a.Onto || slices.ContainsFunc(a.Stack, func(l Lower) bool { return l.Onto == tip })
}

// BaseMoved reports whether the change has to be made again because Base points to tip by now.
// A push leaves Base where it is, wherever that is.
func (a Action) BaseMoved(tip string) bool { return a.Kind != ActionPush && !a.MayAdvance(tip) }

// LandsWith returns the branches of the stack that land with the proposal if Base points to
// that commit.
func (a Action) LandsWith(tip string) (branches []string) {
	at := slices.IndexFunc(a.Stack, func(l Lower) bool { return l.Onto == tip })
	for i, l := range a.Stack {
		if at >= 0 && i >= at {
			branches = append(branches, l.Branch)
		}
	}
	return branches
}

// BuildsOn reports whether a proposal with that commit is below this one.
func (a Action) BuildsOn(commit string) bool {
	return slices.ContainsFunc(a.Stack, func(l Lower) bool { return l.Commit == commit })
}

// BranchRef is the ref of the proposed branch, from which its step can be worked on again;
// empty: nothing was proposed.
func (a Action) BranchRef() string {
	if a.Branch == "" {
		return ""
	}
	return "refs/heads/" + a.Branch
}

// Kinds of actions.
const (
	ActionCommand     = "command"      // the runtime runs Argv
	ActionLand        = "land"         // Base is advanced to the gated tree of Branch
	ActionPullRequest = "pull_request" // Branch is pushed to Remote and a pull request is opened
	ActionPush        = "push"         // Base is pushed to Remote, up to Commit; Onto is what Remote had when it was asked
	ActionKeep        = "keep"         // Branch stays as it is and counts as accepted
	ActionAccept      = "accept"       // the result counts as accepted; nothing moves
	ActionQuestion    = "question"     // Why is the question; yes lets the step be worked on again, with the note as the answer
)

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
	From       string        `json:"from,omitempty"` // the surface it was answered on: cli, api, …
	Note       string        `json:"note,omitempty"`
	Changes    bool          `json:"changes,omitempty"` // it was rejected, and its step is worked on again with Note
	Expires    time.Time     `json:"expires"`
	Created    time.Time     `json:"created"`
	Answered   time.Time     `json:"answered,omitzero"`

	// Of a landing, since a person asked for it.
	Tries   int       `json:"tries,omitempty"`
	Tried   time.Time `json:"tried,omitzero"`    // when the last try began
	Failure string    `json:"failure,omitempty"` // why the last try did not land; empty: it is not known, or it has landed
}

// Pending reports whether the result in question is neither landed nor given up: a person
// has not answered, or has said yes to a landing that has not come about.
func (a Approval) Pending(now time.Time) bool {
	return (a.State == ApprovalOpen || a.State == ApprovalLanding) && now.Before(a.Expires)
}

// PendingStates are the states of an approval that are not final.
func PendingStates() []ApprovalState { return []ApprovalState{ApprovalOpen, ApprovalLanding} }

// LandingKinds are the kinds of actions by which something lands.
func LandingKinds() []string { return []string{ActionLand, ActionPullRequest, ActionPush} }

// Lands reports whether a yes makes something land.
func (a Action) Lands() bool { return slices.Contains(LandingKinds(), a.Kind) }

// Landing names what lands after a yes, to be put into a sentence: a branch, or a push.
func (a Action) Landing() string {
	if a.Kind != ActionPush {
		return a.Branch
	}
	return fmt.Sprintf("pushing %s to %s up to %s", a.Base, a.Remote, a.Commit[:min(len(a.Commit), 12)])
}

// BindingHash is the hash that an approval is bound to. Any other tree, definition or
// action has another one.
func (a Approval) BindingHash() string {
	body, err := json.Marshal([]any{a.LoopID, a.RunID, a.StepID, a.Action, a.Tree, a.Definition})
	if err != nil {
		panic("loop: approval does not marshal: " + err.Error())
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// Answer is what a person said to an approval.
type Answer struct {
	Yes     bool
	Changes bool // of a rejection: the step is worked on again with Note, from the work that was proposed
	By      string
	From    string // the surface: cli, api, …
	Note    string
}

// Actor is who answered: only humans do.
func (a Answer) Actor() Actor { return Actor{Who: a.By, Role: RoleHuman, From: a.From} }
