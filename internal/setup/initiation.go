package setup

import (
	"github.com/pawl-run/pawl/internal/loops"
	"github.com/pawl-run/pawl/internal/readiness"
)

// Initiation is what init found, proposes and did, schema pawl.init/v1.
type Initiation struct {
	Schema   string              `json:"schema"`
	Survey   Survey              `json:"survey"`
	Loop     *loops.Scaffolded   `json:"loop"` // null if only the workspace is registered
	Estimate *readiness.CostData `json:"estimate,omitempty"`
	Missing  []string            `json:"missing"` // what a person has to say before the loop is ready
	Written  bool                `json:"written"`
}
