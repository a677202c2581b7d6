package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/pattern"
)

// What is assumed of a loop without past runs.
const (
	quietShare = 0.5              // of its runs find nothing to do
	quietTime  = time.Second      // that such a run takes
	leastWork  = 30 * time.Second // that one takes which works
	mostWork   = 10 * time.Minute
	spread     = 0.5 // by which its tokens differ from what its pattern usually needs, at most

	doneShare    = 0.8 // of the runs that are known to have something to do
	blockedShare = 0.1
)

// drawn is what a run comes to.
type drawn struct {
	outcome  loop.Outcome
	reason   loop.Reason
	detail   string
	usage    loop.Usage
	microUSD int64
	priced   bool
	assumed  bool // the price is
	known    bool // what it cost is that of a past run
	took     time.Duration
	agent    time.Duration // that its agent worked
}

// draw says what a run comes to. Each run has random numbers of its own, so that one loop
// more changes nothing about the others but by being in their way.
func (l *simulated) draw(seed uint64, n int64) drawn {
	r := l.random(seed, n)
	if len(l.Past) > 0 {
		return ofPast(l.Past[r.IntN(len(l.Past))])
	}
	if r.Float64() < quietShare {
		return foundNothing
	}
	return l.usualWork(r)
}

// drawWork says what a run comes to that has something to do.
func (l *simulated) drawWork(seed uint64, n int64) drawn {
	r := l.random(seed, n)
	if len(l.Past) > 0 {
		return ofPast(l.Past[r.IntN(len(l.Past))])
	}
	share, d := r.Float64(), l.usualWork(r)
	switch {
	case share >= doneShare+blockedShare:
		d.outcome, d.reason = loop.OutcomeFailed, loop.ReasonAgentFailed
	case share >= doneShare:
		d.outcome, d.reason = loop.OutcomeBlocked, loop.ReasonAgentBlocked
	}
	return d
}

// foundNothing is a run that has nothing to do.
var foundNothing = drawn{outcome: loop.OutcomeQuiet, reason: loop.ReasonSensedNothing, took: quietTime}

// random are the random numbers of a run.
func (l *simulated) random(seed uint64, n int64) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(l.Definition.Name))
	return rand.New(rand.NewPCG(seed, h.Sum64()^uint64(n)*0x9E3779B97F4A7C15)) //nolint:gosec // A simulation is to be repeatable.
}

// usualWork is a run that uses about what the pattern of its loop usually needs.
func (l *simulated) usualWork(r *rand.Rand) drawn {
	usual, ok := pattern.Find(l.Definition.Pattern)
	if !ok {
		usual, _ = pattern.Find(pattern.Custom)
	}
	share := (1 + spread*(2*r.Float64()-1)) * float64(max(1, usual.Tokens.Subagents))
	d := drawn{outcome: loop.OutcomeProposed, took: leastWork + time.Duration(r.Float64()*float64(mostWork-leastWork)).Round(time.Second)}
	if l.Definition.Tier == loop.TierReport {
		d.outcome = loop.OutcomeReported
	}
	d.usage = loop.Usage{Input: int64(share * float64(usual.Tokens.Input)), Output: int64(share * float64(usual.Tokens.Output)), Source: loop.UsageEstimated}
	if most := l.Definition.BudgetTokens; most > 0 && d.usage.Output > most {
		d.usage.Output = most
	}
	d.agent = d.took
	return d
}

// ofPast repeats a run.
func ofPast(run loop.Run) drawn {
	return drawn{
		outcome: run.Outcome, reason: run.Reason, detail: run.Detail, usage: run.Usage, microUSD: run.Cost.MicroUSD, priced: len(run.Cost.Unpriced) == 0, assumed: len(run.Cost.Assumed()) > 0, known: true,
		took: max(run.Spent.Total, time.Millisecond), agent: run.Spent.Agent,
	}
}

// Tells reports whether a past run says something of what its loop comes to: one that gave
// way, that was stopped, or that nobody paid for does not.
func Tells(run loop.Run) bool {
	stopped := []loop.Outcome{loop.OutcomePaused, loop.OutcomeInterrupted, loop.OutcomeBudget, ""}
	return !slices.Contains(stopped, run.Outcome) && run.Reason != loop.ReasonPriceUnknown && run.DeferredTo == (loop.Deferral{})
}
