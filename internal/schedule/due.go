package schedule

import (
	"time"

	"github.com/pawl-run/pawl/internal/loop"
)

// Due returns when a loop with the definition fires next, after after. Its intervals are
// counted from anchor: a loop that is registered at 10:07 and fires every hour is due at
// 11:07. The zero time means never: the definition has no cadence.
func Due(d loop.Definition, anchor, after time.Time) (time.Time, error) {
	if d.Cadence == "" {
		return time.Time{}, nil
	}
	c, err := ParseFor(d.Cadence, d.Name)
	if err != nil {
		return time.Time{}, err
	}
	return c.Anchored(anchor).Next(after, time.UTC), nil
}

// SameDue reports whether two definitions of a loop fire at the same times.
func SameDue(a, b loop.Definition) bool { return a.Cadence == b.Cadence && a.Name == b.Name }
