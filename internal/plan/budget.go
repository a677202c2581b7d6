package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
)

// Known is how many settled runs a loop needs before its own past counts for
// more than what its pattern usually needs.
const Known = 5

// Past is how many settled runs of a loop are looked at, the newest.
const Past = 50

// Reserve is what a run reserves before it acts, and why in words. History is
// what the loop's settled runs used, newest first. From Known runs on it is, in
// each dimension, their p95; before that it is byDefault. It is at most the caps of
// the run and always more than zero, so that an empty budget funds no run.
func Reserve(history []loop.Amount, byDefault, caps loop.Amount) (amount loop.Amount, why string) {
	history = history[:min(len(history), Past)]
	if len(history) < Known {
		amount = byDefault
		why = fmt.Sprintf("what such a loop usually needs; from %d settled runs on it is what they needed, and there are %d", Known, len(history))
	} else {
		amount = percentile(history, 95)
		why = fmt.Sprintf("p95 of the last %d runs", len(history))
	}
	p, cut := amount.Parts(), false
	for i, most := range caps.Parts() {
		p[i] = max(p[i], least[i])
		if most > 0 && p[i] > most {
			p[i], cut = most, true
		}
	}
	if cut {
		why += "; cut to what one run may use"
	}
	return p.Amount(), "reserves " + Words(p.Amount()) + ": " + why
}

// least is what is reserved at least, in the order of loop.Dimensions.
var least = loop.Amount{Tokens: 1, Output: 1, MicroUSD: 1, Wall: time.Second, Iterations: 1, Items: 1}.Parts()

// percentile is the smallest amount of the list that n of 100 do not exceed, in
// each dimension.
func percentile(list []loop.Amount, n int) loop.Amount {
	var p loop.AmountParts
	for i := range p {
		var values []int64
		for _, a := range list {
			values = append(values, a.Parts()[i])
		}
		slices.Sort(values)
		p[i] = values[(len(values)*n+99)/100-1]
	}
	return p.Amount()
}

// Charge is what a run is charged that has used and had reserved as much. What
// nobody counted is charged as it was reserved, if more was not seen: tokens
// says whether every token was counted, money whether all of them have a price.
// A negative number was not counted either. Nothing is ever charged as zero
// because it is not known.
func Charge(used, reserved loop.Amount, tokens, money bool) loop.Amount {
	counted := [...]bool{tokens, tokens, tokens && money, true, true, true} // In the order of loop.Dimensions.
	p, held := used.Parts(), reserved.Parts()
	for i, n := range p {
		if n < 0 || !counted[i] {
			p[i] = max(n, held[i], 0)
		}
	}
	return p.Amount()
}

// RunCaps is what one run may use at most by the budgets: the lowest cap of a
// run in each dimension, and zero where there is none.
func RunCaps(budgets []loop.Budget) loop.Amount {
	var p loop.AmountParts
	for _, b := range budgets {
		if b.Window != loop.WindowRun {
			continue
		}
		for i, most := range b.Cap.Parts() {
			if most > 0 && (p[i] == 0 || most < p[i]) {
				p[i] = most
			}
		}
	}
	return p.Amount()
}

// A run is far above its loop's past when it used more than driftMedian times
// the median and more than driftTail times their p95. The median alone would
// alarm whenever a loop that mostly finds little to do has some work; the tail
// alone would let one outlier hide all that follow.
const (
	driftMedian = 4
	driftTail   = 2
)

// driftFloor is below what no median counts, so that a loop that used next to
// nothing may use little.
var driftFloor = loop.Amount{Tokens: 1000, MicroUSD: 10_000}.Parts()

// Drift says whether the last run left the past of its loop, newest first and
// without that run, in tokens or in money, and in words how far. Fewer than
// Known runs are no past.
func Drift(past []loop.Amount, last loop.Amount) (alarm bool, words string) {
	past = past[:min(len(past), Past)]
	if len(past) < Known {
		return false, ""
	}
	middle, tail := percentile(past, 50).Parts(), percentile(past, 95).Parts()
	var all []string
	for i, floor := range driftFloor {
		used, usual := last.Parts()[i], max(middle[i], floor)
		if floor == 0 || used <= times(driftMedian, usual) || used <= times(driftTail, tail[i]) {
			continue
		}
		what := loop.Dimensions[i]
		all = append(all, fmt.Sprintf("the last run used %s, where the %d runs before it have a median of %s and a p95 of %s",
			loop.FormatAmount(what, used), len(past), loop.FormatAmount(what, middle[i]), loop.FormatAmount(what, tail[i])))
	}
	return len(all) > 0, strings.Join(all, "; ")
}

func times(k, n int64) int64 {
	if n > math.MaxInt64/k {
		return math.MaxInt64
	}
	return k * n
}

// Explain says which window of whose budget does not fund a run, how much of it
// is left and when it opens. Whose is the scope for people: "loop ci-watch".
func Explain(s loop.Shortage, whose string) string {
	text := fmt.Sprintf("the %s budget of %s has %s left of %s, and %s more are needed",
		s.Budget.Window, whose, loop.FormatAmount(s.What, s.Left), loop.FormatAmount(s.What, s.Cap), loop.FormatAmount(s.What, s.Need))
	if s.Opens.IsZero() {
		return text
	}
	return text + "; the next window opens at " + s.Opens.UTC().Format("2006-01-02 15:04 UTC")
}

// Words lists what is not zero in a, and says "nothing" of the zero Amount.
func Words(a loop.Amount) string {
	var all []string
	for i, n := range a.Parts() {
		if n != 0 {
			all = append(all, loop.FormatAmount(loop.Dimensions[i], n))
		}
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, ", ")
}

// BudgetsOf are the budgets that a definition sets for its own loop.
func BudgetsOf(d loop.Definition, loopID string) []loop.Budget {
	var own []loop.Budget
	for w, most := range map[loop.BudgetWindow]loop.Amount{
		loop.WindowRun: {Output: d.BudgetTokens}, loop.WindowDay: {Tokens: d.BudgetTokensDay, MicroUSD: d.BudgetUSDDay},
	} {
		if !most.Zero() {
			own = append(own, loop.Budget{Scope: loop.BudgetScope{Kind: loop.BudgetLoop, ID: loopID}, Window: w, Cap: most, By: "definition"})
		}
	}
	slices.SortFunc(own, func(a, b loop.Budget) int { return -strings.Compare(string(a.Window), string(b.Window)) })
	return own
}
