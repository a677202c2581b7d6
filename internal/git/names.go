package git

import (
	"context"

	"github.com/pawl-run/pawl/internal/git/hazard"
	"github.com/pawl-run/pawl/internal/git/object"
)

// The names of what moved, until its last user has learned the new ones.
type (
	Hazard     = hazard.Hazard
	FileChange = object.FileChange
	Draft      = object.Draft
	Candidate  = object.Candidate
)

// ModeFile is object.ModeFile.
const ModeFile = object.ModeFile

// Hazards is what hazard.Scan finds in the repository.
func (r *Repo) Hazards(ctx context.Context) ([]Hazard, error) { return hazard.Scan(ctx, r.Dirs) }

// Fingerprint is hazard.Fingerprint.
func Fingerprint(hazards []Hazard) string { return hazard.Fingerprint(hazards) }

// Changed is hazard.Changed.
func Changed(before, now []Hazard) []Hazard { return hazard.Changed(before, now) }
