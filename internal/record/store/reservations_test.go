package store_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestARunStaysInTheWindowsInWhichItBegan(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, clock *hand) {
		l := seed(t, s, "ci")
		run, in := fire(t, s, l, "-1", alice), scopesOf(l)
		limit(t, s, budget(everything, loop.WindowDay, tokens(100)))
		if short := reserve(t, s, run, in, tokens(90)); short != nil {
			t.Fatal(short)
		}
		clock.add(24 * time.Hour)
		if got := standing(t, s, clock.now(), in...)[0]; !got.Reserved.Zero() {
			t.Errorf("the next day: reserved = %+v", got.Reserved)
		}
		if short := reserve(t, s, run, in, tokens(101)); short == nil {
			t.Error("a reservation grew beyond the cap of its own day")
		}
		charge(t, s, run, in, tokens(95))
		if got := standing(t, s, clock.now(), in...)[0]; !got.Used.Zero() {
			t.Errorf("the next day: used = %+v", got.Used)
		}
		if got := standing(t, s, noon, in...)[0]; got.Used != tokens(95) || !got.Reserved.Zero() {
			t.Errorf("its own day: %+v", got)
		}
	})
}

func TestWhoFindsARunDeadKnowsWhatItHeldAndUsed(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		l := seed(t, s, "ci")
		run, in := fire(t, s, l, "-1", alice), scopesOf(l)
		limit(t, s, budget(everything, loop.WindowDay, tokens(100)))
		if err := held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.Use(t.Context(), tokens(1)) }); !errors.Is(err, loop.ErrNotFound) {
			t.Errorf("use without a reservation = %v, want ErrNotFound", err)
		}
		reserve(t, s, run, in, tokens(60))
		if err := held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.Use(t.Context(), tokens(70)) }); err != nil {
			t.Fatal(err)
		}
		var next loop.Run
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			r, rt, err := tx.Claim(ctx, run.ID, run.Fence, bob, alice)
			if err != nil {
				return err
			}
			next = r
			amount, used, ok, err := rt.Reserved(ctx)
			if err != nil || !ok || amount != tokens(60) || used != tokens(70) {
				t.Errorf("reserved = %+v, %+v, %v, %v", amount, used, ok, err)
			}
			return rt.SettleBudget(ctx, nil, exactly(amount.Max(used)))
		})
		// The holder that was thought dead is not: it may neither settle nor grow.
		for name, try := range map[string]func(*store.RunTx) error{
			"settle": func(rt *store.RunTx) error { return rt.SettleBudget(t.Context(), in, exactly(tokens(5))) },
			"use":    func(rt *store.RunTx) error { return rt.Use(t.Context(), tokens(5)) },
			"reserve": func(rt *store.RunTx) error {
				_, err := rt.Reserve(t.Context(), in, nil, tokens(1))
				return err
			},
		} {
			if err := held(t.Context(), s, run, try); !errors.Is(err, loop.ErrLeaseLost) {
				t.Errorf("%s with an old fence = %v, want ErrLeaseLost", name, err)
			}
			if name == "settle" {
				continue
			}
			if err := held(t.Context(), s, next, try); err == nil {
				t.Errorf("%s after the run was settled: no error", name)
			}
		}
		if got := standing(t, s, noon, in...)[0]; got.Used != tokens(70) || !got.Reserved.Zero() {
			t.Errorf("standing = %+v, want 70 used", got)
		}
	})
}

func TestATransactionThatFailsReservesNothing(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		l := seed(t, s, "ci")
		run, in := fire(t, s, l, "-1", alice), scopesOf(l)
		limit(t, s, budget(everything, loop.WindowDay, tokens(100)))
		died := errors.New("died")
		for _, at := range []func(rt *store.RunTx) error{
			func(rt *store.RunTx) error { _, err := rt.Reserve(t.Context(), in, nil, tokens(60)); return err },
			func(rt *store.RunTx) error { return rt.SettleBudget(t.Context(), in, exactly(tokens(60))) },
		} {
			err := held(t.Context(), s, run, func(rt *store.RunTx) error { return errors.Join(at(rt), died) })
			if !errors.Is(err, died) {
				t.Fatal(err)
			}
		}
		if got := standing(t, s, noon, in...)[0]; !got.Used.Zero() || !got.Reserved.Zero() {
			t.Errorf("standing = %+v, want nothing", got)
		}
	})
}

func TestWhatReservedNothingIsChargedAllTheSame(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		l := seed(t, s, "ci")
		run, in := fire(t, s, l, "-1", alice), scopesOf(l)
		charge(t, s, run, in, tokens(7))
		charge(t, s, run, in, tokens(7))
		// A cap that is set later counts what was spent before.
		limit(t, s, budget(in[3], loop.WindowMonth, tokens(10)))
		if got := standing(t, s, noon, in...)[0]; got.Used != tokens(7) {
			t.Errorf("used = %+v, want 7 tokens", got.Used)
		}
	})
}

func TestNumbersThatAreNoneAreRefused(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		l := seed(t, s, "ci")
		run, other, in := fire(t, s, l, "-1", alice), fire(t, s, seed(t, s, "cd"), "-1", alice), scopesOf(l)
		charge(t, s, other, in, tokens(math.MaxInt64-5))
		for name, try := range map[string]func(*store.RunTx) error{
			"a negative reservation":   func(rt *store.RunTx) error { _, err := rt.Reserve(t.Context(), in, nil, tokens(-1)); return err },
			"a reservation beyond all": func(rt *store.RunTx) error { _, err := rt.Reserve(t.Context(), in, nil, tokens(6)); return err },
			"a negative cap of its own": func(rt *store.RunTx) error {
				_, err := rt.Reserve(t.Context(), in, []loop.Budget{budget(everything, loop.WindowDay, loop.Amount{Wall: -1})}, tokens(1))
				return err
			},
			"a negative use": func(rt *store.RunTx) error { return rt.Use(t.Context(), loop.Amount{Items: -1}) },
			"a negative charge": func(rt *store.RunTx) error {
				return rt.SettleBudget(t.Context(), in, exactly(loop.Amount{MicroUSD: -1}))
			},
			"a negative cap": func(rt *store.RunTx) error {
				return rt.SetBudget(t.Context(), budget(everything, loop.WindowDay, tokens(-1)))
			},
		} {
			err := held(t.Context(), s, run, try)
			if _, ok := errors.AsType[*loop.AmountError](err); !ok {
				t.Errorf("%s = %v, want an AmountError", name, err)
			}
		}
		// What was used is charged, and never wraps.
		charge(t, s, run, in, tokens(math.MaxInt64))
		limit(t, s, budget(everything, loop.WindowDay, tokens(math.MaxInt64)))
		if got := standing(t, s, noon, everything)[0]; got.Used != tokens(math.MaxInt64) {
			t.Errorf("used = %+v", got.Used)
		}
	})
}

func TestHistoryIsWhatRunsWereCharged(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		l := seed(t, s, "ci")
		first := fire(t, s, l, "-1", alice) // As a run of a time before there were budgets.
		first.Usage, first.Spent.Agent = loop.Usage{Input: 5, CacheRead: 100, CacheWrite: 2, Output: 3}, time.Minute
		settle(t, s, first, loop.OutcomeDone)
		quiet := fire(t, s, l, "-2", alice)
		settle(t, s, quiet, loop.OutcomeQuiet)
		charged := loop.Amount{Tokens: 9, MicroUSD: 4, Wall: time.Second, Iterations: 2, Items: 1}
		third := fire(t, s, l, "-3", alice)
		reserve(t, s, third, scopesOf(l), tokens(1000))
		charge(t, s, third, nil, charged)
		settle(t, s, third, loop.OutcomeDone)
		idle := fire(t, s, l, "-4", alice) // What it held was never settled, and no agent acted.
		reserve(t, s, idle, scopesOf(l), tokens(2000))
		settle(t, s, idle, loop.OutcomeInterrupted)
		live := fire(t, s, l, "-5", alice)
		charge(t, s, live, scopesOf(l), tokens(1))
		other := fire(t, s, seed(t, s, "other"), "-1", alice)
		charge(t, s, other, nil, tokens(3))
		settle(t, s, other, loop.OutcomeDone)
		history := func(n int) []loop.Amount {
			return look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Amount, error) { return r.History(ctx, l.ID, n) })
		}
		if d := cmp.Diff([]loop.Amount{charged, {Tokens: 10, Output: 3, Wall: time.Minute}}, history(9)); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]loop.Amount{charged}, history(1)); d != "" {
			t.Error(d)
		}
	})
}

func TestRunsThatShareWindowsNeverWaitInACircle(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		limit(t, s, budget(everything, loop.WindowDay, tokens(1000)))
		loops, runs := make([]loop.Loop, 12), make([]loop.Run, 12)
		for i := range runs {
			loops[i] = seed(t, s, fmt.Sprint("ci", i))
			runs[i] = fire(t, s, loops[i], "-1", alice)
		}
		var all sync.WaitGroup
		for i, run := range runs {
			all.Go(func() {
				in := append(scopesOf(loops[i]), loop.BudgetScope{Kind: loop.BudgetAgent, ID: fmt.Sprint("a", i%3)})
				if i%2 == 0 {
					slices.Reverse(in)
				}
				for n := range int64(10) {
					err := held(t.Context(), s, run, func(rt *store.RunTx) error {
						if err := rt.Link(t.Context(), run.LoopID, loop.LinkEffect, run.ID, n); err != nil {
							return err
						}
						short, err := rt.Reserve(t.Context(), in, nil, tokens(n+1))
						if short != nil {
							t.Errorf("short of %+v", short)
						}
						return err
					})
					if err != nil {
						t.Error(err)
					}
				}
				if err := held(t.Context(), s, run, func(rt *store.RunTx) error { return rt.SettleBudget(t.Context(), in, exactly(tokens(7))) }); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := standing(t, s, noon, everything)[0]; got.Used != tokens(12*7) || !got.Reserved.Zero() {
			t.Errorf("standing = %+v, want 84 used", got)
		}
	})
}

func TestEveryPartOfAnAmountIsReservedAndSettled(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		l, m := seed(t, s, "ci"), seed(t, s, "other")
		limit(t, s, budget(everything, loop.WindowDay, loop.Amount{Tokens: 1 << 40}))
		held := loop.Amount{Tokens: 10, Output: 20, MicroUSD: 30, Wall: 40, Iterations: 50, Items: 60}
		used := loop.Amount{Tokens: 1, Output: 2, MicroUSD: 3, Wall: 4, Iterations: 5, Items: 6}
		first, second := fire(t, s, l, "-1", alice), fire(t, s, m, "-1", alice)
		reserve(t, s, first, scopesOf(l), held)
		reserve(t, s, second, scopesOf(m), held)
		charge(t, s, first, nil, used)
		if got := standing(t, s, noon, everything)[0]; got.Used != used || got.Reserved != held {
			t.Errorf("used = %+v, reserved = %+v, want %+v and %+v", got.Used, got.Reserved, used, held)
		}
		charge(t, s, second, nil, used)
		if got := standing(t, s, noon, everything)[0]; got.Used != used.Add(used) || !got.Reserved.Zero() {
			t.Errorf("used = %+v, reserved = %+v, want %+v and nothing", got.Used, got.Reserved, used.Add(used))
		}
	})
}

// The budgets of a run's own definition count for the next run too, whichever
// scopes the run names.
func TestWhatARunUsesOfItsOwnBudgetIsGoneForTheNext(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, _ *hand) {
		l := seed(t, s, "ci")
		in := []loop.BudgetScope{everything}
		own := budget(loop.BudgetScope{Kind: loop.BudgetLoop, ID: l.ID}, loop.WindowDay, tokens(10))
		run := fire(t, s, l, "-1", alice)
		if short := reserve(t, s, run, in, tokens(8), own); short != nil {
			t.Fatalf("8 of 10 are refused: %+v", short)
		}
		charge(t, s, run, in, tokens(8))
		settle(t, s, run, loop.OutcomeDone)
		next := fire(t, s, l, "-2", alice)
		if short := reserve(t, s, next, in, tokens(3), own); short == nil {
			t.Error("3 of the 2 that are left were granted")
		}
		if short := reserve(t, s, next, in, tokens(2), own); short != nil {
			t.Errorf("the 2 that are left are refused: %+v", short)
		}
	})
}
