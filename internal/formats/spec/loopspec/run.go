package loopspec

import "github.com/pawl-run/pawl/internal/rules/loop"

// Run is a spec with what has become of it, over its whole life.
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

// GateText returns the command or the expression of a gate: the text in backticks inside
// of its check, or the whole check.
func GateText(check string) string { return insideBackticks(check) }
