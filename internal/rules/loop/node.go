package loop

import (
	"slices"
	"strings"
	"time"
)

// Node is a machine that runs loops, with one home of pawl. Several nodes may share
// a store.
type Node struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"` // unique in a store
	Boot    string    `json:"boot"` // of its host, when it was last seen
	Labels  []string  `json:"labels"`
	Offers  []string  `json:"capabilities"` // what it can do that not every node can
	Version string    `json:"version"`      // of its pawl
	Schema  int64     `json:"schema"`       // newest version of the tables that its pawl knows
	Skew    int64     `json:"skew_ms"`      // its clock minus the database's
	Created time.Time `json:"created"`
	Seen    time.Time `json:"seen"` // by the database's clock
}

// SeenLately is how long ago a node may have been seen at the latest to count on it.
const SeenLately = 5 * time.Minute

// NodeNameForm says what IsNodeName accepts.
const NodeNameForm = "use at most 63 letters, digits, dots, dashes and underscores, beginning with a letter or digit"

// IsNodeName reports whether a text can name a node, or be a label of one.
func IsNodeName(text string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return text != "" && len(text) <= 63 && strings.Trim(text, letters+".-_") == "" && strings.Contains(letters, text[:1])
}

// HasLabels reports whether the node has all of these labels.
func (n Node) HasLabels(labels []string) bool {
	return !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(n.Labels, l) })
}

// Placement is where a workspace lies on a node.
type Placement struct {
	WorkspaceID string    `json:"workspace"`
	NodeID      string    `json:"node"`
	Path        string    `json:"path"`   // absolute path of the checkout
	Remote      string    `json:"remote"` // address of origin, without a password; empty: none
	Created     time.Time `json:"created"`
}
