package loop

import "time"

// ErrorPolicy says what happens when a turn fails for a reason other than the work: the
// agent's program, its provider or a time-out.
type ErrorPolicy struct {
	Retries  int           `json:"retries,omitempty"`
	Wait     time.Duration `json:"wait,omitempty"`     // before the first retry
	Doubling bool          `json:"doubling,omitempty"` // each later retry waits twice as long as the one before it
	Then     ErrorEnd      `json:"then"`
}

// MaxRetries keeps the last of them from waiting for hours.
const MaxRetries = 10

// WaitBefore returns how long the nth retry waits, counted from 1.
func (p ErrorPolicy) WaitBefore(n int) time.Duration {
	if !p.Doubling || n < 1 {
		return p.Wait
	}
	return p.Wait << (min(n, MaxRetries) - 1)
}

// ErrorEnd is what happens when the last retry has failed, too.
type ErrorEnd string

// The ends.
const (
	PauseAndLog  ErrorEnd = "pause_and_log" // the loop is paused
	HandOver     ErrorEnd = "escalate"      // the step is a person's
	GiveUpAtOnce ErrorEnd = "stop"          // the step is given up
)
