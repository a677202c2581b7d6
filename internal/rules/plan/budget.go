package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// MinHistory is how many settled runs a loop needs before its own past counts for
// more than what its pattern usually needs.
const MinHistory = 5

// MaxHistory is how many settled runs of a loop are looked at, the newest.
const MaxHistory = 50

// Reserve is what a run reserves before it acts, and why in words. History is
// what the loop's settled runs used, newest first. From MinHistory runs on the amount is, in
// each dimension, their p95; before that it is byDefault. It is at most the caps of
// the run and always more than zero, so that an empty budget does not fund a run.
func Reserve(history []loop.Amount, byDefault, caps loop.Amount) (amount loop.Amount, why string) {
	history = history[:min(len(history), MaxHistory)]
	if len(history) < MinHistory {
		amount = byDefault
		why = fmt.Sprintf("what such a loop usually needs; from %d settled runs on it is what they needed, and there are %d", MinHistory, len(history))
	} else {
		amount = amountPercentile(history, 95)
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
	return p.Amount(), "reserves " + AmountWords(p.Amount()) + ": " + why
}

// least is the smallest reservation, in the order of loop.Dimensions.
var least = loop.Amount{Tokens: 1, Output: 1, MicroUSD: 1, Wall: time.Second, Iterations: 1, Items: 1}.Parts()

// amountPercentile is the percentile n of the list in each dimension, by the
// nearest rank.
func amountPercentile(list []loop.Amount, n int) loop.Amount {
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

// Charge returns what a run is charged. Tokens says whether every token was
// counted, and money whether every token has a price. A number that was not counted,
// or is negative, is charged as reserved, or as used if that is more. An unknown
// number is never charged as zero.
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

// RunCaps returns what the budgets allow one run at most: in each dimension the
// lowest cap of the window "run", and zero if missing.
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

// driftFloor is the least median that runs are compared with. Without it, a loop
// that used next to nothing would alarm as soon as it used a little.
var driftFloor = loop.Amount{Tokens: 1000, MicroUSD: 10_000}.Parts()

// DetectDrift reports whether the last run used far more tokens or money than the
// runs before it, and says how much more. Past has the newest run first and does not
// contain the last one. With fewer than MinHistory runs there is no alarm.
func DetectDrift(past []loop.Amount, last loop.Amount) (alarm bool, words string) {
	past = past[:min(len(past), MaxHistory)]
	if len(past) < MinHistory {
		return false, ""
	}
	middle, tail := amountPercentile(past, 50).Parts(), amountPercentile(past, 95).Parts()
	var all []string
	for i, floor := range driftFloor {
		used, usual := last.Parts()[i], max(middle[i], floor)
		if floor == 0 || used <= multiplyCapped(driftMedian, usual) || used <= multiplyCapped(driftTail, tail[i]) {
			continue
		}
		what := loop.Dimensions[i]
		all = append(all, fmt.Sprintf("the last run used %s, where the %d runs before it have a median of %s and a p95 of %s",
			loop.FormatAmount(what, used), len(past), loop.FormatAmount(what, middle[i]), loop.FormatAmount(what, tail[i])))
	}
	return len(all) > 0, strings.Join(all, "; ")
}

func multiplyCapped(k, n int64) int64 {
	if n > math.MaxInt64/k {
		return math.MaxInt64
	}
	return k * n
}

// ExplainShortage says which budget does not fund a run, how much of it is left and
// when its next window opens. Whose is its scope for people: "loop ci-watch".
func ExplainShortage(s loop.Shortage, whose string) string {
	text := fmt.Sprintf("the %s budget of %s has %s left of %s, and %s more are needed",
		s.Budget.Window, whose, loop.FormatAmount(s.What, s.Left), loop.FormatAmount(s.What, s.Cap), loop.FormatAmount(s.What, s.Need))
	if s.Opens.IsZero() {
		return text
	}
	return text + "; the next window opens at " + s.Opens.UTC().Format("2006-01-02 15:04 UTC")
}

// AmountWords lists the numbers of a that are not zero. The zero Amount is "nothing".
func AmountWords(a loop.Amount) string {
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

// DefinitionBudgets returns the budgets that a definition sets for its own loop.
func DefinitionBudgets(d loop.Definition, loopID string) []loop.Budget {
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
