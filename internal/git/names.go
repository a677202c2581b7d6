package git

import (
	"context"

	"github.com/pawl-run/pawl/internal/git/hazard"
)

// Hazard is a hazard.Hazard.
type Hazard = hazard.Hazard

// Hazards is what hazard.Scan finds in the repository.
func (r *Repo) Hazards(ctx context.Context) ([]Hazard, error) { return hazard.Scan(ctx, r.Dirs) }

// Fingerprint is hazard.Fingerprint.
func Fingerprint(hazards []Hazard) string { return hazard.Fingerprint(hazards) }

// Changed is hazard.Changed.
func Changed(before, now []Hazard) []Hazard { return hazard.Changed(before, now) }
