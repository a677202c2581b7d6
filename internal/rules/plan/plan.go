// Package plan decides: which step a run works on next, what becomes of a step
// after an attempt, what a run reserves before it acts, what its tokens cost,
// and what follows a turn that failed. Every candidate gets a reason, chosen or
// not, and every decision has words for people.
//
// It performs no I/O, reads no clock and generates no ids: the same snapshot
// always gives the same decision.
package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Candidate is a step that could be worked on, as the protocol sees it.
type Candidate struct {
	Step     loop.Step
	Drop     loop.Reason  // a rule of the protocol or the engine that excludes it; empty: it may be chosen
	Detail   string       // that rule in words
	Answered bool         // the approval that the step waits for has an answer
	Proposed string       // the open proposal that the step has to wait for, in words; empty: none
	Depends  bool         // on every proposal of the loop: its result may build on a branch that waits for an answer
	Ends     loop.Outcome // of the run, if no step is chosen because of Drop; empty: quiet, or failed after an iteration
	Stack    []loop.Lower // proposals that its work builds on and that are not on the base yet, the lowest first
	NoCycles int64        // of a blocked step: runs since then that were not cycles: paused, or for an answer
	Memory   string       // the part of the protocol's memory that the result depends on
	Inputs   string       // digest of everything that the result depends on, as it is now

	TakenBack bool // its protocol takes back itself what was proposed and declined: that it was declined does not exclude it
}

// Rules are the parts of a definition that planning obeys.
type Rules struct {
	MaxIterations     int
	MaxItems          int
	MaxWallClock      time.Duration
	BudgetTokens      int64 // output tokens of the run, 0 for no cap
	GiveUp            []loop.GiveUpRule
	HumanGate         loop.HumanGate
	RetryBlockedAfter int64 // runs of the loop
	OnBlocked         string
	OnFailure         string
	OnError           loop.ErrorEnd // empty: OnFailure
	Life              *loop.Life
}

// DefinitionRules returns the rules of a definition with its defaults filled in.
func DefinitionRules(d loop.Definition) Rules {
	r := Rules{
		MaxIterations: d.MaxIterations, MaxItems: d.MaxItems, MaxWallClock: d.MaxWallClock, BudgetTokens: d.BudgetTokens,
		GiveUp: d.GiveUpRules(), HumanGate: d.HumanGate, RetryBlockedAfter: int64(d.RetryBlockedAfter), OnBlocked: d.OnBlocked, OnFailure: d.OnFailure, Life: d.Life,
	}
	if d.ErrorPolicy != nil {
		r.OnError = d.ErrorPolicy.Then
	}
	return r
}

// Snapshot is everything that a decision depends on.
type Snapshot struct {
	Candidates    []Candidate // in the protocol's order of preference
	Rules         Rules
	Run           int64           // number of this run
	RunID         string          //
	Settled       map[string]bool // keys of steps that this run has finished with
	Iterations    int             // made by this run so far
	Items         int             // steps that this run finished
	Started       time.Time
	Output        int64       // output tokens used by this run
	Hold          *loop.Hold  // what keeps the loop or its account from acting; nil: nothing
	Nothing       loop.Reason // why sensing found nothing to do; empty: it found something
	NothingDetail string      // Nothing in words
	News          bool        // an event has fired the run: a step that is done although its inputs are the same is worked on again
}

// Choice is the step that was chosen.
type Choice struct {
	Step   loop.Step
	Reason loop.Reason
	Detail string
	Inputs string // digest
	Stack  []loop.Lower
}

// Decision says what to do next. A nil Choice ends the run: Reason says why.
type Decision struct {
	Choice     *Choice
	Reason     loop.Reason
	Detail     string
	Ends       loop.Outcome // with which a dropped candidate says that the run ends; empty: none does
	Spent      *loop.Step   // the run gives it up: the budget of its life is used up; nil: none
	Considered []loop.Considered
}

// Next picks at most one step. Replies go before work, open steps before
// failed ones, and otherwise the protocol's order counts.
func Next(s Snapshot, now time.Time) Decision {
	limit, why := s.usedUpLimit(now)
	order := slices.Clone(s.Candidates)
	slices.SortStableFunc(order, func(a, b Candidate) int { return cmp.Compare(stepRank(a.Step), stepRank(b.Step)) })
	d := Decision{Reason: loop.ReasonNoCandidates}
	var rests []loop.Considered // steps whose state keeps them from being worked on
	for _, c := range order {
		if s.beginsAnew(c) {
			c.Step = c.Step.AsNew()
		}
		reason, detail := s.exclusion(c)
		if used := s.spentLife(c, now); reason == "" && used != "" {
			reason, detail = loop.ReasonLifeBudget, used
			if d.Ends == "" {
				spent := c.Step
				d.Spent, d.Ends, d.Reason, d.Detail = &spent, loop.OutcomeGaveUp, reason, detail
			}
		}
		switch {
		case reason != "":
		case limit != "":
			reason, detail = limit, why
		case d.Choice != nil:
			reason, detail = loop.ReasonOutranked, fmt.Sprintf("%q goes first", d.Choice.Step.Title)
		default:
			reason, detail = loop.ReasonChosen, chosenBecause(c)
			d.Choice = &Choice{Step: c.Step, Reason: reason, Detail: detail, Inputs: c.Inputs, Stack: c.Stack}
		}
		d.Considered = append(d.Considered, loop.Considered{
			Step: c.Step.Title, Key: c.Step.Key, Chosen: reason == loop.ReasonChosen, Reason: reason, Detail: detail,
		})
		if c.Ends != "" && c.Drop != "" && reason == c.Drop && d.Ends == "" {
			d.Ends, d.Reason, d.Detail = c.Ends, reason, detail
		}
		if reason != loop.ReasonNotEligible && reason != loop.ReasonTriedThisRun {
			rests = append(rests, d.Considered[len(d.Considered)-1])
		}
	}
	switch {
	case d.Choice != nil:
		d.Reason, d.Detail, d.Ends, d.Spent = loop.ReasonChosen, d.Choice.Detail, "", nil
	case d.Ends != "":
	case s.Nothing != "":
		d.Reason, d.Detail = s.Nothing, s.NothingDetail
	case limit != "":
		d.Reason, d.Detail = limit, why
	case len(rests) == 1:
		d.Reason, d.Detail = rests[0].Reason, rests[0].Detail
	case allWait(rests, loop.ReasonStepWaiting):
		d.Reason, d.Detail = loop.ReasonStepWaiting, fmt.Sprintf("%s, nor any of %d other steps that wait for an answer", rests[0].Detail, len(rests)-1)
	case allWait(rests, loop.ReasonPullRequest):
		others := fmt.Sprintf("%d other steps wait for theirs", len(rests)-1)
		if len(rests) == 2 {
			others = "1 other step waits for its own"
		}
		d.Reason, d.Detail = loop.ReasonPullRequest, rests[0].Detail+"; "+others
	case len(order) == 1:
		d.Reason, d.Detail = loop.ReasonAllDropped, "the only step cannot be worked on now"
	case len(order) > 1:
		d.Reason, d.Detail = loop.ReasonAllDropped, fmt.Sprintf("none of %d steps can be worked on now", len(order))
	}
	return d
}

// allWait reports whether there are steps and why keeps each of them from being
// worked on.
func allWait(rests []loop.Considered, why loop.Reason) bool {
	return len(rests) > 0 && !slices.ContainsFunc(rests, func(c loop.Considered) bool { return c.Reason != why })
}

// beginsAnew reports whether a settled step is worked on again: its inputs have changed, or an
// event says that something has. A step with a budget for its whole life is not: only a
// person begins that anew.
func (s Snapshot) beginsAnew(c Candidate) bool {
	if s.Rules.Life != nil || c.Step.Inputs == "" {
		return false
	}
	changed := c.Step.Inputs != c.Inputs
	return c.Step.State == loop.StepDone && (changed || s.News) || c.Step.State == loop.StepEscalated && changed
}

// spentLife says how the budget of a step's life is used up; empty: it is not.
func (s Snapshot) spentLife(c Candidate, now time.Time) string {
	if c.Step.State == loop.StepWaiting {
		return "" // What a person answered is carried out.
	}
	return s.Rules.Life.UsedUp(c.Step, now)
}

// usedUpLimit returns the limit of the run that is used up; empty if none is.
func (s Snapshot) usedUpLimit(now time.Time) (loop.Reason, string) {
	r := s.Rules
	switch {
	case s.Hold != nil && HoldActive(*s.Hold, now):
		return s.Hold.Reason, HoldWords(*s.Hold)
	case s.Items >= r.MaxItems:
		return loop.ReasonMaxItems, fmt.Sprintf("%d of %d items are finished", s.Items, r.MaxItems)
	case s.Iterations >= r.MaxIterations:
		return loop.ReasonMaxIterations, fmt.Sprintf("%d of %d iterations are used", s.Iterations, r.MaxIterations)
	case r.Life == nil && now.Sub(s.Started) >= r.MaxWallClock: // Else that of its life counts.
		return loop.ReasonWallClock, fmt.Sprintf("the run takes longer than %s", r.MaxWallClock)
	case r.BudgetTokens > 0 && s.Output >= r.BudgetTokens:
		return loop.ReasonBudgetTokens, fmt.Sprintf("%d of %d output tokens are used", s.Output, r.BudgetTokens)
	}
	return "", ""
}

// HoldActive reports whether a hold keeps its subject from acting now.
func HoldActive(h loop.Hold, now time.Time) bool {
	return h.Reason != "" && (h.Until.IsZero() || now.Before(h.Until))
}

// HoldWords says what keeps a loop from acting, and until when.
func HoldWords(h loop.Hold) string {
	if h.Reason.IsSeat() {
		return h.Detail // Until one of those who are named has ended.
	}
	if h.Until.IsZero() {
		return "until somebody resumes it: " + h.Detail
	}
	return fmt.Sprintf("until %s: %s", h.Until.UTC().Format(time.RFC3339), h.Detail)
}

// exclusion returns the reason why c cannot be chosen; empty if it can.
func (s Snapshot) exclusion(c Candidate) (loop.Reason, string) {
	switch {
	case s.Nothing != "":
		return s.Nothing, s.NothingDetail
	case c.Drop != "":
		return c.Drop, c.Detail
	case s.Settled[c.Step.Key]:
		return loop.ReasonTriedThisRun, "this run is through with it"
	case c.Proposed != "":
		return loop.ReasonStepWaiting, c.Proposed
	}
	switch c.Step.State {
	case loop.StepOpen, loop.StepFailed:
		return "", ""
	case loop.StepClaimed:
		if c.Step.RunID != s.RunID {
			return loop.ReasonStepClaimed, "run " + c.Step.RunID + " works on it"
		}
		return "", ""
	case loop.StepBlocked:
		wait := s.Rules.RetryBlockedAfter
		if s.Rules.OnBlocked == "retry_next_cycle" {
			wait = 1
		}
		if first := c.Step.BlockedAt + wait + c.NoCycles; s.Run < first {
			return loop.ReasonStepBackoff, fmt.Sprintf("blocked in run #%d, eligible first in run #%d: %s", c.Step.BlockedAt, first, c.Step.Feedback)
		}
		return "", ""
	case loop.StepWaiting:
		if !c.Answered {
			return loop.ReasonStepWaiting, "approval " + c.Step.WaitsFor + " has no answer yet"
		}
		return "", ""
	case loop.StepEscalated:
		why, _, _ := strings.Cut(c.Step.Feedback, "\n")
		return loop.ReasonStepEscalated, "a human has it: " + why
	case loop.StepDone, loop.StepDropped:
		if c.Step.Inputs != "" && s.Rules.Life == nil {
			return loop.ReasonUnchanged, "it needed no change, and nothing has changed since"
		}
		return loop.ReasonStepDone, ""
	}
	return loop.ReasonNotEligible, "unknown state " + string(c.Step.State)
}

// stepRank is lower for a step that goes earlier.
func stepRank(s loop.Step) int {
	n := 0
	if s.Kind != loop.StepReply {
		n += 2
	}
	if s.State == loop.StepFailed {
		n++
	}
	return n
}

func chosenBecause(c Candidate) string {
	switch {
	case c.Step.State == loop.StepClaimed:
		return fmt.Sprintf("tried again after attempt %d failed", c.Step.Attempts)
	case c.Detail != "":
		return c.Detail
	case c.Step.State == loop.StepFailed:
		return fmt.Sprintf("failed before (%d attempts), nothing open goes first", c.Step.Attempts)
	case c.Step.State == loop.StepBlocked:
		return "its waiting time is over"
	case c.Step.State == loop.StepWaiting:
		return "the human answered"
	case c.Step.Kind == loop.StepReply:
		return "replies go first"
	}
	return "first in order"
}
