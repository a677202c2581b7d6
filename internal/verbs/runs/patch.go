package runs

import (
	"fmt"

	"github.com/pawl-run/pawl/internal/ground/unprintable"
)

// Patch is what a run or a snapshot changed, schema pawl.diff/v1.
type Patch struct {
	Schema  string   `json:"schema"`
	Run     string   `json:"run"` // as it was named
	Patch   string   `json:"patch"`
	Careful []string `json:"careful,omitempty"` // lines that are not what they look like
}

// Safe is the patch with escapes in place of what a terminal would obey or nobody
// would see, and how many characters these are. It may not apply if there are any.
func (p Patch) Safe() (text string, escaped int) {
	shown, escaped := unprintable.ShowPatch([]byte(p.Patch))
	return string(shown), escaped
}

// Readable is the patch for a person who reads it and does not apply it.
func (p Patch) Readable() string { return unprintable.Show(p.Patch) }

// newPatch describes a patch, with its lines that have hidden characters.
func newPatch(ref string, patch []byte) Patch {
	const most = 20
	p := Patch{Schema: "pawl.diff/v1", Run: ref, Patch: string(patch)}
	found := unprintable.FindInPatch(p.Patch)
	for i, f := range found {
		if i == most {
			p.Careful = append(p.Careful, fmt.Sprintf("and %d lines more", len(found)-most))
			break
		}
		p.Careful = append(p.Careful, f.String())
	}
	return p
}
