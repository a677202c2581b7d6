package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/sim"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/price"
	"github.com/pawl-run/pawl/internal/rules/schedule"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func definition(name, cadence string, tier loop.Tier) loop.Definition {
	return loop.Definition{Name: name, Pattern: "custom", Tier: tier, Cadence: cadence, Scope: []string{name + "/**"}, Agent: "claude", Model: "claude-opus-4-8"}
}

func simulate(tb testing.TB, o sim.Options) sim.Result {
	tb.Helper()
	o.Now = time.Now
	if o.Start.IsZero() {
		o.Start = start
	}
	if o.Prices.AsOf == "" {
		o.Prices = price.BuiltIn()
	}
	r, err := sim.Run(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func loopsOf(list ...loop.Definition) (loops []sim.Loop) {
	for _, d := range list {
		loops = append(loops, sim.Loop{Definition: d})
	}
	return loops
}

// many are loops of mixed scopes that fire every six hours.
func many(n int) (loops []sim.Loop) {
	for i := range n {
		d := definition(fmt.Sprintf("l%03d", i), "6h", []loop.Tier{loop.TierReport, loop.TierAssisted}[i%2])
		d.Scope = []string{fmt.Sprintf("area%d/**", i/10)}
		loops = append(loops, sim.Loop{Definition: d})
	}
	return loops
}

func TestTheSameSeedGivesTheSameHistoryAndAnotherOneAnother(t *testing.T) {
	t.Parallel()
	history := func(seed uint64) (sim.Result, []string) {
		var fired []string
		r := simulate(t, sim.Options{Loops: many(30), For: 4 * 24 * time.Hour, Seed: seed, Fired: func(name string, run loop.Run) {
			fired = append(fired, fmt.Sprintf("%s#%d %s", name, run.N, run.Created.UTC().Format(time.RFC3339Nano)))
		}})
		return r, fired
	}
	first, fired := history(7)
	again, firedAgain := history(7)
	if d := cmp.Diff(first, again); d != "" {
		t.Errorf("the same seed gives another result:\n%s", d)
	}
	if !slices.Equal(fired, firedAgain) {
		t.Error("the same seed gives another history")
	}
	other, _ := history(8)
	if other.Seed = first.Seed; cmp.Equal(first, other) {
		t.Error("another seed gives the same result")
	}
	total := first.Total
	if total.Planned != 30*16 || total.Runs+first.Live+first.Queued != total.Planned-total.Coalesced || total.Tokens == 0 || total.QuietRatio < 0.3 || total.QuietRatio > 0.8 {
		t.Errorf("it came to %+v", first.Total)
	}
	if total.Collisions == 0 || total.Deferred == 0 || total.MicroUSD == 0 || total.Unpriced > 0 {
		t.Errorf("of loops with shared scopes: %+v", total)
	}
}

// A year around both changes of the clocks: a simulation fires when pawl next says.
func TestAYearInNewYorkFiresWhenTheCalendarSays(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	var loops []sim.Loop
	for i, cadence := range []string{"30 2 * * *", "30 1 * * *", "0 */6 * * *", "24h"} {
		d := definition(fmt.Sprint("l", i), cadence, loop.TierReport)
		d.Timezone = "America/New_York"
		loops = append(loops, sim.Loop{Definition: d})
	}
	got := map[string][]string{}
	simulate(t, sim.Options{Loops: loops, For: 366 * 24 * time.Hour, Fired: func(name string, run loop.Run) {
		got[name] = append(got[name], run.Planned.In(zone).Format(time.RFC3339))
	}})
	for _, l := range loops {
		var want []string
		end := start.Add(366 * 24 * time.Hour)
		for at := start; ; {
			next, err := schedule.Next(l.Definition, start, at)
			if err != nil {
				t.Fatal(err)
			}
			if at = next.Planned; at.After(end) {
				break
			}
			want = append(want, at.In(zone).Format(time.RFC3339))
		}
		if d := cmp.Diff(want, got[l.Definition.Name]); d != "" || len(want) < 365 {
			t.Errorf("%s fires %d times (-next +sim):\n%s", l.Definition.Cadence, len(want), d)
		}
	}
	for _, odd := range []string{"2026-03-08T03:00:00-04:00", "2026-11-01T02:30:00-05:00"} {
		if !slices.Contains(got["l0"], odd) {
			t.Errorf("l0 does not fire at %s", odd)
		}
	}
}

func TestRunsAreDrawnFromThePastOfTheirLoop(t *testing.T) {
	t.Parallel()
	past := []loop.Run{
		{Outcome: loop.OutcomeLanded, Usage: loop.Usage{Input: 100, Output: 11}, Cost: loop.Cost{MicroUSD: 7}, Spent: loop.Spent{Total: time.Minute, Agent: time.Minute}},
	}
	r := simulate(t, sim.Options{Loops: []sim.Loop{{Definition: definition("l", "1h", loop.TierAssisted), Past: past}}, For: 10 * time.Hour})
	got := r.Loops[0]
	want := sim.Tally{
		Loop: "l", Cadence: "1h", Drawn: "past_runs", Planned: 10, Runs: 9, Outcomes: map[loop.Outcome]int{loop.OutcomeLanded: 9}, Tokens: 9 * 111, Output: 9 * 11, MicroUSD: 63,
	}
	if d := cmp.Diff(want, got); d != "" || r.Live != 1 {
		t.Errorf("%d live (-want +got):\n%s", r.Live, d)
	}
	for outcome, want := range map[loop.Outcome]bool{loop.OutcomeLanded: true, loop.OutcomeQuiet: true, loop.OutcomeInterrupted: false, loop.OutcomePaused: false, "": false} {
		if got := sim.Tells(loop.Run{Outcome: outcome}); got != want {
			t.Errorf("a run that was %q tells: %v", outcome, got)
		}
	}
	if sim.Tells(loop.Run{Outcome: loop.OutcomeQuiet, DeferredTo: loop.Deferral{Loop: "x"}}) {
		t.Error("a run that gave way tells what its loop comes to")
	}
}

func TestABudgetEndsWhatItCannotPayForUntilTheNextDay(t *testing.T) {
	t.Parallel()
	past := []loop.Run{{Outcome: loop.OutcomeProposed, Usage: loop.Usage{Input: 900, Output: 100}, Spent: loop.Spent{Total: time.Minute, Agent: time.Minute}}}
	d := definition("l", "1h", loop.TierAssisted)
	d.BudgetTokensDay = 400_000 // The first runs reserve what the pattern usually needs.
	free := simulate(t, sim.Options{Loops: []sim.Loop{{Definition: definition("l", "1h", loop.TierAssisted), Past: past}}, For: 48 * time.Hour})
	if free.Total.Unfunded != 0 {
		t.Errorf("without a budget %+v", free.Total)
	}
	d.BudgetTokensDay = 5000
	bound := simulate(t, sim.Options{Loops: []sim.Loop{{Definition: d, Past: past}}, For: 48 * time.Hour})
	if bound.Total.Unfunded == 0 || bound.Total.Outcomes[loop.OutcomeBudget] != bound.Total.Unfunded || bound.Total.Tokens > 2*5000+1000 {
		t.Errorf("with one %+v", bound.Total)
	}
	if bound.Total.Events != 0 {
		t.Errorf("%d events are to fire the loop when its budget has a new day, which will not do either", bound.Total.Events)
	}
}

func TestANewDayOfABudgetFiresTheLoopThatItWasTooSmallFor(t *testing.T) {
	t.Parallel()
	past := []loop.Run{{Outcome: loop.OutcomeProposed, Usage: loop.Usage{Input: 290_000, Output: 10_000}, Spent: loop.Spent{Total: time.Minute, Agent: time.Minute}}}
	d := definition("l", "90m", loop.TierAssisted)
	d.BudgetTokensDay = 700_000
	var woken []string
	r := simulate(t, sim.Options{Loops: []sim.Loop{{Definition: d, Past: past, Registered: start.Add(-80 * time.Minute)}}, For: 47 * time.Hour, Fired: func(_ string, run loop.Run) {
		if run.Trigger == "event" {
			woken = append(woken, run.Event+" at "+run.Created.UTC().Format(time.RFC3339))
		}
	}})
	if d := cmp.Diff([]string{"budget at 2026-01-02T00:00:00Z"}, woken); d != "" || r.Total.Unfunded == 0 {
		t.Errorf("%d runs found their budget too small; woken were (-want +got):\n%s", r.Total.Unfunded, d)
	}
}

func TestLoopsOfOneScopeAreInEachOthersWayAndThoseThatOnlyReportAreNot(t *testing.T) {
	t.Parallel()
	past := []loop.Run{{Outcome: loop.OutcomeProposed, Usage: loop.Usage{Output: 1}, Spent: loop.Spent{Total: 10 * time.Minute}}}
	for tier, collide := range map[loop.Tier]bool{loop.TierReport: false, loop.TierAssisted: true} {
		var loops []sim.Loop
		for _, name := range []string{"a", "b"} {
			d := definition(name, "0 * * * *", tier)
			d.Scope = []string{"src/**"}
			d.Priority = map[string]int{"a": 10, "b": 20}[name]
			loops = append(loops, sim.Loop{Definition: d, Past: past})
		}
		r := simulate(t, sim.Options{Loops: loops, For: 24 * time.Hour})
		a, b := r.Loops[0], r.Loops[1]
		if (a.Collisions > 0) != collide || a.Deferred == 0 == collide || b.Deferred > a.Deferred {
			t.Errorf("%s: a %+v, b %+v", tier, a, b)
		}
	}
}

func TestTheEndOfARunFiresTheLoopsThatListenToIt(t *testing.T) {
	t.Parallel()
	past := []loop.Run{{Outcome: loop.OutcomeProposed, Usage: loop.Usage{Output: 1}, Spent: loop.Spent{Total: time.Minute}}}
	first, second := definition("a", "1h", loop.TierReport), definition("b", "", loop.TierReport)
	second.On = []string{"loop:a=proposed", "file:src/**"}
	r := simulate(t, sim.Options{Loops: []sim.Loop{{Definition: first, Past: past}, {Definition: second, Past: past}}, For: 24*time.Hour + 30*time.Minute})
	if b := r.Loops[1]; b.Events != 24 || b.Runs != 24 || b.Planned != 0 {
		t.Errorf("it came to %+v", b)
	}
}

func TestABadCadenceIsAnErrorThatNamesTheLoop(t *testing.T) {
	_, err := sim.Run(t.Context(), sim.Options{Loops: loopsOf(definition("odd", "sometimes", loop.TierReport)), Start: start, For: time.Hour, Now: time.Now})
	if err == nil || err.Error()[:4] != "odd:" {
		t.Errorf("it is %v", err)
	}
}

// BenchmarkMonth is 30 days of 200 loops that fire every six hours: 24,000 runs.
func BenchmarkMonth(b *testing.B) {
	for b.Loop() {
		r := simulate(b, sim.Options{Loops: many(200), For: 30 * 24 * time.Hour})
		b.ReportMetric(float64(r.Total.Runs)/(b.Elapsed().Seconds()/float64(max(1, b.N))), "runs/s")
		if r.Total.Planned != 24_000 {
			b.Fatalf("%+v", r.Total)
		}
	}
}
