package loop

import "time"

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

// Placement is where a workspace lies on a node.
type Placement struct {
	WorkspaceID string    `json:"workspace"`
	NodeID      string    `json:"node"`
	Path        string    `json:"path"`   // absolute path of the checkout
	Remote      string    `json:"remote"` // address of origin, without a password; empty: none
	Created     time.Time `json:"created"`
}
