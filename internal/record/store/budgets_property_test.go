package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// ledger is the simple model of the budgets: every run of it, added up anew.
type ledger struct {
	caps map[loop.BudgetScope]map[loop.BudgetWindow]loop.Amount
	runs []*entry
}

type entry struct {
	run     loop.Run
	in      []loop.BudgetScope
	began   time.Time // of its windows, zero before its first reservation
	holds   loop.Amount
	used    loop.Amount
	settled bool
}

// at adds up a scope in the window that held at a time, without one run.
func (l *ledger) at(s loop.BudgetScope, w loop.BudgetWindow, now time.Time, but *entry) (used, held loop.Amount) {
	for _, e := range l.runs {
		if e == but || e.began.IsZero() || !w.Start(e.began).Equal(w.Start(now)) || !slices.Contains(e.in, s) {
			continue
		}
		used, held = used.Add(e.used), held.Add(e.holds)
	}
	return used, held
}

// fits says whether a run may hold want: no cap that it adds to is exceeded.
func (l *ledger) fits(e *entry, want loop.Amount, now time.Time) bool {
	if !e.began.IsZero() {
		now = e.began
	}
	for s, windows := range l.caps {
		if !slices.Contains(e.in, s) {
			continue
		}
		for w, limit := range windows {
			used, held := l.at(s, w, now, e)
			for i, most := range limit.Parts() {
				if n := want.Parts()[i]; most > 0 && n > e.holds.Parts()[i] && used.Parts()[i]+held.Parts()[i]+n > most {
					return false
				}
			}
		}
	}
	return true
}

func TestNoSequenceOfRunsOverrunsABudget(t *testing.T) {
	sample.Checks(t, 15)
	onBothAt(t, func(t *testing.T, s *store.Store, clock *hand) {
		round := 0
		rapid.Check(t, func(rt *rapid.T) {
			round++ // Every round has scopes and runs of its own in the same store.
			m := newLedger(t, rt, s, round)
			rt.Repeat(map[string]func(*rapid.T){
				"reserve or grow": func(rt *rapid.T) { m.reserve(rt, s, clock) },
				"settle":          func(rt *rapid.T) { m.settle(rt, s, clock) },
				"later":           func(rt *rapid.T) { clock.add(time.Duration(rapid.IntRange(1, 30).Draw(rt, "hours")) * time.Hour) },
				"":                func(rt *rapid.T) { m.check(rt, s, clock.now()) },
			})
		})
	})
}

func newLedger(t *testing.T, rt *rapid.T, s *store.Store, round int) *ledger {
	t.Helper()
	m := &ledger{caps: map[loop.BudgetScope]map[loop.BudgetWindow]loop.Amount{}}
	all := loop.BudgetScope{Kind: loop.BudgetWorkspace, ID: fmt.Sprint("ws", round)}
	for _, name := range []string{"a", "b", "c"} {
		l := seed(t, s, fmt.Sprint(name, round))
		mine := loop.BudgetScope{Kind: loop.BudgetLoop, ID: l.ID}
		m.runs = append(m.runs, &entry{run: fire(t, s, l, "-1", alice), in: []loop.BudgetScope{mine, all}})
		m.caps[mine] = map[loop.BudgetWindow]loop.Amount{}
	}
	m.caps[all] = map[loop.BudgetWindow]loop.Amount{}
	for scope, windows := range m.caps {
		for _, w := range []loop.BudgetWindow{loop.WindowDay, loop.WindowMonth} {
			windows[w] = amounts.Draw(rt, fmt.Sprint("cap of ", scope.ID, w))
			limit(t, s, budget(scope, w, windows[w]))
		}
	}
	return m
}

// amounts are small, so that they meet; zero in a cap is not a cap.
var amounts = rapid.Custom(func(rt *rapid.T) loop.Amount {
	n := rapid.Int64Range(0, 20)
	return loop.Amount{Tokens: n.Draw(rt, "tokens"), MicroUSD: n.Draw(rt, "usd"), Wall: time.Duration(n.Draw(rt, "wall"))}
})

func (l *ledger) any(rt *rapid.T) *entry { return rapid.SampledFrom(l.runs).Draw(rt, "run") }

func (l *ledger) reserve(rt *rapid.T, s *store.Store, clock *hand) {
	e, want := l.any(rt), amounts.Draw(rt, "want")
	if e.settled {
		rt.Skip("it is settled")
	}
	var short *loop.Shortage
	err := held(context.Background(), s, e.run, func(tx *store.RunTx) (err error) {
		short, err = tx.Reserve(context.Background(), e.in, nil, want)
		return err
	})
	if err != nil {
		rt.Fatal(err)
	}
	if fits := l.fits(e, want, clock.now()); fits != (short == nil) {
		rt.Fatalf("the model says %v, the store %+v", fits, short)
	}
	if short == nil {
		e.holds = want
		if e.began.IsZero() {
			e.began = clock.now()
		}
	}
}

func (l *ledger) settle(rt *rapid.T, s *store.Store, clock *hand) {
	e, used := l.any(rt), amounts.Draw(rt, "used")
	err := held(context.Background(), s, e.run, func(tx *store.RunTx) error { return tx.SettleBudget(context.Background(), e.in, exactly(used)) })
	if err != nil {
		rt.Fatal(err)
	}
	if e.settled || e.began.IsZero() && used.Zero() {
		return
	}
	if e.began.IsZero() {
		e.began = clock.now()
	}
	e.holds, e.used, e.settled = loop.Amount{}, used, true
}

// check compares every window with the model.
func (l *ledger) check(rt *rapid.T, s *store.Store, now time.Time) {
	for scope := range l.caps {
		var got []loop.Standing
		err := s.View(context.Background(), func(r *store.Reader) (err error) {
			got, err = r.Standings(context.Background(), []loop.BudgetScope{scope}, nil, now)
			return err
		})
		if err != nil {
			rt.Fatal(err)
		}
		for _, st := range got {
			used, held := l.at(scope, st.Budget.Window, now, nil)
			if d := cmp.Diff(used, st.Used) + cmp.Diff(held, st.Reserved); d != "" {
				rt.Fatalf("%s %s: %s", scope.ID, st.Budget.Window, d)
			}
		}
	}
}
