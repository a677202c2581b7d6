package loop

import (
	"fmt"
	"time"
)

// Life bounds what a step may use over its whole life, across runs. Each bound includes its
// value: a step that has used so much has used it up.
type Life struct {
	Iterations int64         `json:"iterations"`
	Tokens     int64         `json:"tokens"` // input, cache writes and output
	Wall       time.Duration `json:"wall"`   // since it was begun
}

// UsedUp says which bound a step has reached; empty: none. A nil Life has no bounds.
func (l *Life) UsedUp(s Step, now time.Time) string {
	switch {
	case l == nil:
		return ""
	case int64(s.Attempts) >= l.Iterations:
		return fmt.Sprintf("%d of %d iterations are used", s.Attempts, l.Iterations)
	case s.Tokens >= l.Tokens:
		return fmt.Sprintf("%d of %d tokens are used", s.Tokens, l.Tokens)
	case !s.Begun.IsZero() && now.Sub(s.Begun) >= l.Wall:
		return fmt.Sprintf("it began %s ago, and may take %s", now.Sub(s.Begun).Round(time.Second), l.Wall)
	}
	return ""
}

// Less returns the life without what was given away of its iterations and tokens; nil of a
// nil Life.
func (l *Life) Less(given Amount) *Life {
	if l == nil {
		return nil
	}
	return &Life{Iterations: l.Iterations - given.Iterations, Tokens: l.Tokens - given.Tokens, Wall: l.Wall}
}
