package turn

import (
	"sync"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/meter"
	"github.com/pawl-run/pawl/internal/agents/meter/model"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// RefusedResult is the result of a turn that could not start for a reason that a
// person can fix: the agent has no credential, or no model.
func RefusedResult(class loop.FailureClass, f *loop.Fault) agent.Result {
	text := f.Error()
	if f.Fix != "" {
		text += "; " + f.Advice().String()
	}
	return agent.Result{Ended: proc.NotStarted, Claims: true, Failure: &loop.Failure{Class: class, Text: text, Typed: true}}
}

// ReportDenials returns a function that reports denied calls: calls to a model
// that the budget does not pay for to refused, all others to say. A program that
// calls its vendor's address for anything other than a model, or asks for a
// vendor's tool, repeats that often: each such call is reported once.
func ReportDenials(say, refused func(string)) func(meter.Denial) {
	var mu sync.Mutex
	told := map[string]bool{}
	return func(d meter.Denial) {
		mu.Lock()
		again := (d.Reason == model.ReasonNoCall || d.Reason == model.ReasonModelTool) && told[d.Detail]
		told[d.Detail] = true
		mu.Unlock()
		switch {
		case d.Reason == loop.ReasonPriceUnknown, d.Reason == model.ReasonBudget:
			refused(d.Detail)
		case !again:
			say("network: " + d.String())
		}
	}
}
