package runs

import (
	"fmt"

	"github.com/pawl-run/pawl/internal/unprintable"
)

// Patch is what a run or a snapshot changed, schema pawl.diff/v1.
type Patch struct {
	Schema  string   `json:"schema"`
	Run     string   `json:"run"` // as it was named
	Patch   string   `json:"patch"`
	Careful []string `json:"careful,omitempty"` // lines that are not what they look like
}

// newPatch describes a patch, with its lines that have hidden characters.
func newPatch(ref string, patch []byte) Patch {
	const most = 20
	p := Patch{Schema: "pawl.diff/v1", Run: ref, Patch: string(patch)}
	found := unprintable.InPatch(p.Patch)
	for i, f := range found {
		if i == most {
			p.Careful = append(p.Careful, fmt.Sprintf("and %d lines more", len(found)-most))
			break
		}
		p.Careful = append(p.Careful, f.String())
	}
	return p
}
