package loop

import (
	"cmp"
	"strings"
)

// Cause is what the outcome of a run is about, as data. What a person can do about it and
// what the log of runs names follow from here; sentences are made from it and never read.
type Cause struct {
	Switch      KillSwitch `json:"switch,omitzero"`        // that paused the run, or kept an effect from being applied
	PullRequest string     `json:"pull_request,omitempty"` // address of the one that the run opened
	Unpushed    string     `json:"unpushed,omitempty"`     // branch whose new commits could not be pushed
	Ungated     string     `json:"ungated,omitempty"`      // where the run has pushed work that no gate has judged, as in origin/main
	Fetch       string     `json:"fetch,omitempty"`        // command line that fetches what the clone lacks
	GitChange   bool       `json:"git_change,omitempty"`   // git's configuration changed since it was accepted: it can be accepted again
	Item        string     `json:"item,omitempty"`         // what the agent calls the item that it worked on
}

// Merge returns c with the fields that are set in more.
func (c Cause) Merge(more Cause) Cause {
	return Cause{
		Switch: cmp.Or(more.Switch, c.Switch), PullRequest: cmp.Or(more.PullRequest, c.PullRequest), Unpushed: cmp.Or(more.Unpushed, c.Unpushed),
		Ungated: cmp.Or(more.Ungated, c.Ungated), Fetch: cmp.Or(more.Fetch, c.Fetch), GitChange: more.GitChange || c.GitChange, Item: cmp.Or(more.Item, c.Item),
	}
}

// subject is what a run is about, as key=value or in the agent's words.
func (c Cause) subject() string {
	switch {
	case c.PullRequest != "":
		return pullRequestKey + c.PullRequest
	case c.Unpushed != "":
		return unpushedKey + c.Unpushed
	case c.Ungated != "":
		return ungatedKey + c.Ungated
	}
	return c.Item
}

// The keys of subjects.
const (
	pullRequestKey = "pr="
	unpushedKey    = "unpushed="
	ungatedKey     = "ungated="
	reasonKey      = "reason="
)

// Subject is what the log line of the run is about: of one that was refused, whatever the
// agent called its item, or that is left to a person, why.
func (r Run) Subject() string {
	about := r.Cause.subject()
	handed := r.Outcome == OutcomeEscalated || r.Outcome == OutcomeGaveUp
	if r.Reason != "" && (r.Outcome == OutcomeRefused || about == "" && handed) {
		return reasonKey + r.reasonWord()
	}
	return about
}

// longestReason is how many runes of an agent's words go into the run log.
const longestReason = 100

// reasonWord is why the run ended, without white space: the agent's own words where
// it handed the step over, else the code.
func (r Run) reasonWord() string {
	if r.Reason != ReasonAgentEscalated && r.Reason != ReasonAgentBlocked || r.Detail == "" {
		return string(r.Reason)
	}
	words := []rune(strings.Join(strings.Fields(r.Detail), "_"))
	return string(words[:min(len(words), longestReason)])
}
