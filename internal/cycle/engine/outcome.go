package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// This file decides how a run ends, in pure functions: after a decision that chose
// no step, after an iteration, and after an effect that failed. A phase that cannot
// continue returns an ending of its own.

// ending is how a run ends: what the conclude transaction writes.
type ending struct {
	outcome loop.Outcome
	reason  loop.Reason
	detail  string
	cause   loop.Cause // what of it is known as data
	halt    bool
}

// endWithoutChoice says how a run ends if no step was chosen.
func (p *progress) endWithoutChoice(d plan.Decision, hold *loop.Hold) ending {
	end := ending{reason: d.Reason, detail: d.Detail}
	switch {
	case p.success != "":
		end.outcome, end.reason, end.detail = p.success, p.current().Reason, ""
	case d.Ends != "":
		end.outcome = d.Ends
	case d.Reason == loop.ReasonWallClock || d.Reason == loop.ReasonBudgetTokens:
		end.outcome = loop.OutcomeBudget
	case hold != nil && d.Reason == hold.Reason:
		end.outcome = loop.OutcomeBlocked
	case len(p.its) == 0:
		end.outcome = loop.OutcomeQuiet
	default:
		end.outcome = loop.OutcomeFailed
	}
	return end
}

// endAfter says how a run ends with this settlement, or nil if it goes on: with
// another try, or after a pass with the next item. A turn that was cut ends the run:
// nothing is left to spend. Most is how many iterations the run may have.
func (p *progress) endAfter(s plan.Settlement, a plan.Attempt, again, cut bool, most int) *ending {
	switch {
	case s.Outcome == "" || s.Outcome == loop.OutcomeWaiting: // What it did stands.
		if cut {
			return &ending{outcome: p.success, reason: a.Reason}
		}
		return nil
	case again:
		return nil
	}
	end := &ending{outcome: s.Outcome, reason: s.Reason, detail: firstLine(s.Detail), halt: s.Halt}
	if s.Again && p.worked >= most && most > 1 {
		end.reason = loop.ReasonMaxIterations
		end.detail = fmt.Sprintf("%d of %d iterations are used (%s); the last one: %s", p.worked, most, p.cameTo(), end.detail)
	}
	if p.success != "" {
		end.outcome = p.success
	}
	return end
}

// cameTo says what the iterations of the run came to: every reason, and how often
// it was one.
func (p *progress) cameTo() string {
	var reasons []loop.Reason
	times := map[loop.Reason]int{}
	for _, it := range p.its {
		if times[it.Reason]++; times[it.Reason] == 1 {
			reasons = append(reasons, it.Reason)
		}
	}
	words := make([]string, len(reasons))
	for i, r := range reasons {
		words[i] = r.Sentence()
		if n := times[r]; n > 1 {
			words[i] = fmt.Sprintf("%d times: %s", n, r.Sentence())
		}
	}
	return strings.Join(words, "; ")
}

// successOf is the outcome of a run whose step passed.
func successOf(tier loop.Tier, effects []loop.EffectRequest, before loop.Outcome) loop.Outcome {
	asked := func(kind string) bool {
		return slices.ContainsFunc(effects, func(e loop.EffectRequest) bool { return e.Kind == kind })
	}
	switch {
	case asked(effect.KindLand):
		return loop.OutcomeLanded
	case asked(effect.KindPropose):
		return loop.OutcomeProposed
	case before == loop.OutcomeProposed:
		return before
	case tier == loop.TierReport:
		return loop.OutcomeReported
	}
	return loop.OutcomeDone
}

// endingOfEffect says how a run ends one of whose effects did not come about. Refusal
// is why a guardrail refused it, if one did.
func endingOfEffect(e loop.Effect, refusal *loop.Fault) ending {
	switch {
	case refusal != nil:
		return ending{outcome: loop.OutcomeRefused, reason: loop.ReasonLanding, detail: fmt.Sprintf("%s; nothing was changed; %s", refusal, refusal.Advice())}
	case e.State == loop.EffectRefused:
		return ending{outcome: loop.OutcomePaused, reason: loop.ReasonKillSwitch, detail: fmt.Sprintf("%s: %s", e.Kind, e.Error)}
	}
	return ending{outcome: loop.OutcomeFailed, reason: loop.ReasonEffectFailed, detail: fmt.Sprintf("%s: %s", e.Kind, e.Error)}
}

// readinessStep is how much a run that ends badly takes from the readiness.
const readinessStep = 20

// readinessAfter is the readiness of a loop after a run that ended so, unless its
// agent assessed it: gates that pass restore it, runs that fail lower it, so that a
// falling number asks for a look at the loop before it has done much harm.
func readinessAfter(end ending, assessed bool, before int) int {
	switch {
	case assessed:
	case end.reason == loop.ReasonGatesPass:
		return 100
	case end.outcome == loop.OutcomeFailed, end.outcome == loop.OutcomeGaveUp, end.outcome == loop.OutcomeRefused:
		return max(0, before-readinessStep)
	}
	return before
}

// outcomeText is how the run ended, in words.
func outcomeText(r loop.Run) string {
	if why := r.Reason.Explain(r.Detail); why != "" {
		return string(r.Outcome) + ": " + why
	}
	return string(r.Outcome)
}
