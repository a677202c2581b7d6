package store_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/pgtest"
)

// hand is a clock that a test sets.
type hand struct{ ms atomic.Int64 }

func (h *hand) now() time.Time      { return time.UnixMilli(h.ms.Load()).UTC() }
func (h *hand) set(t time.Time)     { h.ms.Store(t.UnixMilli()) }
func (h *hand) add(d time.Duration) { h.ms.Add(d.Milliseconds()) }

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// onBothAt is onBoth with a clock that stands at noon of the last day of a
// month.
func onBothAt(t *testing.T, test func(t *testing.T, s *store.Store, clock *hand)) {
	t.Helper()
	for name, url := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { t.Helper(); return filepath.Join(t.TempDir(), "pawl.db") },
		"postgres": func(t *testing.T) string { t.Helper(); return pgtest.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := &hand{}
			clock.set(noon)
			s, err := store.Open(t.Context(), store.Options{Database: url(t), Now: time.Now, Virtual: clock.now})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			test(t, s, clock)
		})
	}
}

// scopesOf are those that a run of the loop is counted in.
func scopesOf(l loop.Loop) []loop.BudgetScope {
	return []loop.BudgetScope{
		{Kind: loop.BudgetAll},
		{Kind: loop.BudgetWorkspace, ID: l.WorkspaceID},
		{Kind: loop.BudgetAgent, ID: "claude"},
		{Kind: loop.BudgetLoop, ID: l.ID},
	}
}

var everything = loop.BudgetScope{Kind: loop.BudgetAll}

func tokens(n int64) loop.Amount { return loop.Amount{Tokens: n} }

func budget(s loop.BudgetScope, w loop.BudgetWindow, most loop.Amount) loop.Budget {
	return loop.Budget{Scope: s, Window: w, Cap: most, By: "ada"}
}

func limit(t *testing.T, s *store.Store, b loop.Budget) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.SetBudget(ctx, b) })
}

// reserve is one reservation in a transaction of its own.
func reserve(t *testing.T, s *store.Store, r loop.Run, scopes []loop.BudgetScope, want loop.Amount, own ...loop.Budget) *loop.Shortage {
	t.Helper()
	var short *loop.Shortage
	err := held(t.Context(), s, r, func(rt *store.RunTx) (err error) {
		short, err = rt.Reserve(t.Context(), scopes, own, want)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return short
}

// exactly charges an amount, whatever was held.
func exactly(used loop.Amount) func(_, _ loop.Amount, _ bool) loop.Amount {
	return func(loop.Amount, loop.Amount, bool) loop.Amount { return used }
}

func charge(t *testing.T, s *store.Store, r loop.Run, scopes []loop.BudgetScope, used loop.Amount) {
	t.Helper()
	err := held(t.Context(), s, r, func(rt *store.RunTx) error { return rt.SettleBudget(t.Context(), scopes, exactly(used)) })
	if err != nil {
		t.Fatal(err)
	}
}

func standing(t *testing.T, s *store.Store, now time.Time, scopes ...loop.BudgetScope) []loop.Standing {
	t.Helper()
	return look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Standing, error) {
		return r.Standings(ctx, scopes, nil, now)
	})
}

func TestABudgetIsReservedBeforeAndSettledAfter(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		l := seed(t, s, "ci")
		run, in := fire(t, s, l, "-1", alice), scopesOf(l)
		limit(t, s, budget(everything, loop.WindowDay, tokens(100)))
		if short := reserve(t, s, run, in, tokens(60)); short != nil {
			t.Fatalf("60 of 100 are refused: %+v", short)
		}
		got := standing(t, s, noon, in...)
		want := []loop.Standing{{
			Budget: got[0].Budget, Reserved: tokens(60), Opens: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC),
		}}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		charge(t, s, run, in, tokens(40))
		charge(t, s, run, in, tokens(40)) // Twice is once.
		want[0].Used, want[0].Reserved = tokens(40), loop.Amount{}
		if d := cmp.Diff(want, standing(t, s, noon, in...)); d != "" {
			t.Error(d)
		}
	})
}

func TestARefusalNamesTheWindowAndChangesNothing(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		l := seed(t, s, "ci")
		run, in := fire(t, s, l, "-1", alice), scopesOf(l)
		limit(t, s, budget(in[3], loop.WindowMonth, loop.Amount{MicroUSD: 5_000_000}))
		limit(t, s, budget(everything, loop.WindowDay, tokens(100)))
		if short := reserve(t, s, run, in, loop.Amount{Tokens: 90, MicroUSD: 1}); short != nil {
			t.Fatal(short)
		}
		short := reserve(t, s, run, in, loop.Amount{Tokens: 101, MicroUSD: 2})
		if short == nil {
			t.Fatal("101 of 100 are granted")
		}
		want := loop.Shortage{
			Budget: short.Budget, What: "tokens", Cap: 100, Left: 10, Need: 11, Opens: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC),
		}
		if d := cmp.Diff(want, *short); d != "" || short.Budget.Scope != everything || short.Budget.By != "ada" {
			t.Errorf("of %+v: %s", short.Budget, d)
		}
		for _, st := range standing(t, s, noon, in...) {
			if st.Reserved != (loop.Amount{Tokens: 90, MicroUSD: 1}) {
				t.Errorf("%v: reserved = %+v", st.Budget.Scope, st.Reserved)
			}
		}
	})
}

func TestTheCapOfARunBoundsItsWholeReservation(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		l := seed(t, s, "ci")
		run := fire(t, s, l, "-1", alice)
		own := budget(loop.BudgetScope{Kind: loop.BudgetLoop, ID: l.ID}, loop.WindowRun, loop.Amount{Output: 100})
		for _, step := range []struct {
			want    int64
			granted bool
		}{{60, true}, {100, true}, {101, false}, {80, true}, {100, true}} {
			short := reserve(t, s, run, nil, loop.Amount{Output: step.want}, own)
			if (short == nil) != step.granted {
				t.Errorf("%d of 100: %+v", step.want, short)
			}
			if short != nil && (short.Left != 0 || short.Need != 1 || !short.Opens.IsZero()) {
				t.Errorf("%d of 100: %+v, want 0 left, 1 needed", step.want, short)
			}
		}
	})
}

func TestFiftyRunsShareABudgetForTen(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		limit(t, s, budget(everything, loop.WindowDay, tokens(105)))
		runs, loops := make([]loop.Run, 50), make([]loop.Loop, 50)
		for i := range runs {
			loops[i] = seed(t, s, fmt.Sprint("ci", i))
			runs[i] = fire(t, s, loops[i], "-1", alice)
		}
		var granted, refused atomic.Int32
		var all sync.WaitGroup
		for i, run := range runs {
			all.Go(func() {
				err := held(t.Context(), s, run, func(rt *store.RunTx) error {
					short, err := rt.Reserve(t.Context(), scopesOf(loops[i]), nil, tokens(10))
					switch {
					case err != nil:
					case short == nil:
						granted.Add(1)
					case short.Left == 5 && short.Need == 10:
						refused.Add(1)
					default:
						t.Errorf("shortage = %+v", short)
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if granted.Load() != 10 || refused.Load() != 40 {
			t.Errorf("%d granted and %d refused, want 10 and 40", granted.Load(), refused.Load())
		}
		if got := standing(t, s, noon, everything)[0].Reserved; got != tokens(100) {
			t.Errorf("reserved = %+v, want 100 tokens", got)
		}
	})
}

func TestBudgetsAreSetReplacedAndRemoved(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		mine, namesake := loop.BudgetScope{Kind: loop.BudgetLoop, ID: "lp_ci"}, loop.BudgetScope{Kind: loop.BudgetAgent, ID: "lp_ci"}
		for _, b := range []loop.Budget{
			budget(namesake, loop.WindowMonth, tokens(5)), budget(everything, loop.WindowDay, tokens(1)), budget(mine, loop.WindowMonth, tokens(2)),
			budget(mine, loop.WindowRun, tokens(3)), budget(everything, loop.WindowDay, tokens(4)), budget(mine, loop.WindowMonth, loop.Amount{}),
		} {
			limit(t, s, b)
		}
		got := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Budget, error) { return r.Budgets(ctx) })
		want := []loop.Budget{budget(mine, loop.WindowRun, tokens(3)), budget(namesake, loop.WindowMonth, tokens(5)), budget(everything, loop.WindowDay, tokens(4))}
		for i := range want {
			want[i].Set = noon
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		for want, wrong := range map[string]loop.Budget{
			`"planet" is not a kind of scope`: budget(loop.BudgetScope{Kind: "planet"}, loop.WindowDay, tokens(1)), `"year" is not a window`: budget(everything, "year", tokens(1)),
		} {
			err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.SetBudget(t.Context(), wrong) })
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v was set: %v, want %q", wrong, err, want)
			}
		}
	})
}

func TestAChangeThatChangesNothingLeavesTheBudgetAsItIs(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, clock *hand) {
		all := loop.Budget{Scope: loop.BudgetScope{Kind: loop.BudgetAll}, Window: loop.WindowDay, By: "ada"}
		change := func(by string, to func(loop.Amount) loop.Amount) {
			t.Helper()
			b := all
			b.By = by
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				_, _, err := tx.ChangeBudget(ctx, b, to)
				return err
			})
			clock.add(time.Minute)
		}
		budgets := func() []loop.Budget {
			return look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Budget, error) { return r.Budgets(ctx) })
		}
		same := func(a loop.Amount) loop.Amount { return a }
		change("bo", same)
		if got := budgets(); len(got) != 0 {
			t.Errorf("a budget of no caps was made: %+v", got)
		}
		change("ada", func(loop.Amount) loop.Amount { return loop.Amount{Items: 3} })
		change("bo", same)
		all.Cap, all.Set = loop.Amount{Items: 3}, noon.Add(time.Minute)
		if d := cmp.Diff([]loop.Budget{all}, budgets()); d != "" {
			t.Error(d)
		}
		change("bo", func(loop.Amount) loop.Amount { return loop.Amount{} })
		if got := budgets(); len(got) != 0 {
			t.Errorf("what was removed stands: %+v", got)
		}
	})
}
