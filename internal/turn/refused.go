package turn

import (
	"sync"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/meter"
	"github.com/pawl-run/pawl/internal/meter/model"
	"github.com/pawl-run/pawl/internal/proc"
)

// Refused is a turn that could not be taken for a reason that a person can
// act on: the agent has nothing to identify itself with, or no model.
func Refused(class loop.FailureClass, f *loop.Fault) agent.Result {
	text := f.Error()
	if f.Fix != "" {
		text += "; " + f.Advice().String()
	}
	return agent.Result{Ended: proc.NotStarted, Claims: true, Failure: &loop.Failure{Class: class, Text: text, Typed: true}}
}

// Denials tells a person of what did not pass: of calls to a model that were not
// paid for by refused, and of all else by say. A program that asks its vendor's
// address for something else than a model, or for one of the vendor's tools, does
// so again and again: each such thing is told once.
func Denials(say, refused func(string)) func(meter.Denial) {
	var mu sync.Mutex
	told := map[string]bool{}
	return func(d meter.Denial) {
		mu.Lock()
		again := (d.Reason == model.ReasonNoCall || d.Reason == model.ReasonModelTool) && told[d.Detail]
		told[d.Detail] = true
		mu.Unlock()
		switch {
		case d.Reason == model.ReasonUnpriced, d.Reason == model.ReasonBudget:
			refused(d.Detail)
		case !again:
			say("network: " + d.String())
		}
	}
}
