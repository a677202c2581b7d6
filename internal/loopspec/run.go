package loopspec

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/loop"
)

// Run is a spec with what has become of it, over its whole life. Its methods return new
// values and change nothing.
type Run struct {
	Spec       Spec        `json:"spec"`
	Status     Status      `json:"status"`
	Iterations []Iteration `json:"iterations"`
	TokensUsed int64       `json:"tokensUsed"`
	StartedAt  int64       `json:"startedAt,omitempty"` // 0: it has not started
	Rubric     *Rubric     `json:"rubric,omitempty"`
	UpdatedAt  int64       `json:"updatedAt"`
}

// Iteration is the trace of one iteration.
type Iteration struct {
	N        int          `json:"n"`
	Sensed   string       `json:"sensed"`
	Decided  string       `json:"decided"`
	Acted    string       `json:"acted"`
	Feedback string       `json:"feedback"`
	Verdict  loop.Verdict `json:"verdict"`
	Gate     string       `json:"gate,omitempty"` // that decided
	Tokens   int64        `json:"tokens,omitempty"`
	TS       int64        `json:"ts"`
}

// Record returns r with one more iteration and its tokens.
func (r Run) Record(it Iteration, now time.Time) Run {
	r.Iterations = append(slices.Clip(r.Iterations), it)
	r.TokensUsed += it.Tokens
	r.UpdatedAt = now.UnixMilli()
	return r
}

// BudgetExceeded reports whether a budget of the spec is used up. A spec that has used
// exactly as much as it may is among them.
func (r Run) BudgetExceeded(now time.Time) bool {
	b := r.Spec.Budget
	return int64(len(r.Iterations)) >= b.MaxIterations || r.TokensUsed >= b.MaxTokens ||
		r.StartedAt != 0 && now.UnixMilli()-r.StartedAt >= b.MaxWallClockMs
}

// GatesPassed reports whether all gates passed: there is a gate, and the verdict of the
// latest iteration is a pass.
func (r Run) GatesPassed() bool {
	last := len(r.Iterations) - 1
	return len(r.Spec.Gates) > 0 && last >= 0 && r.Iterations[last].Verdict == loop.VerdictPass
}

// EstimateTokens is how many tokens an iteration counts for which none are reported: a
// quarter of the characters of what was done and of its feedback, rounded up.
func EstimateTokens(acted, feedback string) int64 {
	return int64(utf8.RuneCountInString(acted)+utf8.RuneCountInString(feedback)+3) / 4
}

// GateText returns the command or the expression of a gate: the text in backticks inside
// of its check, or the whole check.
func GateText(check string) string { return insideBackticks(check) }
