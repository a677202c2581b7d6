package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var lockOnSrc = loop.Lock{Scope: []string{"src/**"}, Branch: "next", Group: "org", Priority: 7, Bound: 3, Wall: time.Hour, Insists: true}

// fireLocking fires a run with a lock.
func fireLocking(t *testing.T, s *store.Store, l loop.Loop, by loop.Holder) (run loop.Run) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
		if l, err = tx.Number(ctx, l.WorkspaceID, l.Protocol, l.Name); err != nil {
			return err
		}
		d := loop.Definition{Name: l.Name}
		if err := tx.AddDefinition(ctx, l.ID, d); err != nil {
			return err
		}
		run = loop.Run{ID: "run_" + l.ID, LoopID: l.ID, N: l.LastN, Key: l.ID, Trigger: "cadence", Definition: d.Digest(), Lock: lockOnSrc}
		if by == (loop.Holder{}) {
			run, err = tx.Fire(ctx, run)
			return err
		}
		run, err = tx.FireClaimed(ctx, run, by)
		return err
	})
	return run
}

func contenders(t *testing.T, s *store.Store, repository string) (names []string) {
	t.Helper()
	for _, c := range look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Contender, error) {
		return r.Contenders(ctx, repository)
	}) {
		if c.Age < 0 || c.Age > time.Hour {
			t.Errorf("%s was fired %v ago", c.Name(), c.Age)
		}
		if d := cmp.Diff(lockOnSrc, c.Lock); d != "" {
			t.Error(d)
		}
		name := c.Name()
		if c.Live {
			name += " " + c.Holder.String()
		}
		names = append(names, name)
	}
	return names
}

func TestALockLastsAsLongAsItsRun(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		want := func(what string, names ...string) {
			t.Helper()
			if got := contenders(t, s, "ws"); !slices.Equal(got, names) {
				t.Errorf("%s: contenders are %q, want %q", what, got, names)
			}
		}
		l, plain := seed(t, s, "ci"), seed(t, s, "plain")
		fire(t, s, plain, "-1", bob)
		want("a run without a lock")
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			w := loop.Workspace{ID: "tree", Root: "/tree", Repository: "ws"}
			return errors.Join(tx.AddLoop(ctx, w, loop.Loop{ID: "lp_tree", WorkspaceID: "tree", Name: "in-tree", Protocol: loop.ProtocolSpine}),
				tx.AddLoop(ctx, loop.Workspace{ID: "far", Root: "/far"}, loop.Loop{ID: "lp_far", WorkspaceID: "far", Name: "far", Protocol: loop.ProtocolSpine}))
		})
		fireLocking(t, s, loop.Loop{ID: "lp_far", WorkspaceID: "far", Name: "far", Protocol: loop.ProtocolSpine}, bob)
		inTree := fireLocking(t, s, loop.Loop{ID: "lp_tree", WorkspaceID: "tree", Name: "in-tree", Protocol: loop.ProtocolSpine}, bob)
		run := fireLocking(t, s, l, loop.Holder{})
		want("another repository does not count, a linked worktree does", "in-tree#1 process 2 on b", "ci#1")
		settle(t, s, inTree, loop.OutcomeQuiet)
		want("after the end", "ci#1")
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.Pause(ctx, l.ID, true) })
		want("a queued run of a paused loop")
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.Pause(ctx, l.ID, false) })
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.SetSwitch(ctx, loop.Actor{}, "ws", "lunch")
			return err
		})
		want("a queued run under a switch of its workspace")
		update(t, s, func(ctx context.Context, tx *store.Tx) error { _, err := tx.ClearSwitch(ctx, "ws"); return err })
		want("after all switches", "ci#1")
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			a, err := tx.Asking(ctx, run.ID)
			if d := cmp.Diff(lockOnSrc, a.Lock); d != "" || a.Age < 0 || a.Contends <= store.ContendAgain || a.N != run.N || a.Seq != run.Seq || a.LoopIsLive || a.Definition.Name != "ci" {
				t.Errorf("it is %+v, with a lock (-want +got):\n%s", a, d)
			}
			return err
		})
		update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
			run, _, err = tx.Claim(ctx, run.ID, run.Fence, alice, loop.Holder{})
			return err
		})
		want("claimed", "ci#1 process 1 on a")
		run.Outcome = loop.OutcomeProposed
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Settle(ctx, run, loop.PhaseConclude, true)
			return err
		})
		want("while it settles", "ci#1 process 1 on a")
		run.State = loop.RunSettling
		update(t, s, func(ctx context.Context, tx *store.Tx) error { _, err := tx.End(ctx, run, loop.PhaseSleep); return err })
		want("in the end")
	})
}

func TestADeferralIsCountedUntilTheLoopGoes(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "ci")
		run := fireLocking(t, s, l, loop.Holder{})
		to := loop.Deferral{Loop: "other", Run: "run_other", N: 3, Rule: loop.ReasonLockHigher, Scope: "src/**", Until: time.UnixMilli(1_800_000_000_000).UTC()}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			claimed, rt, err := tx.Claim(ctx, run.ID, run.Fence, alice, loop.Holder{})
			if run = claimed; err != nil {
				return err
			}
			return rt.DeferTo(ctx, to)
		})
		if got := contenders(t, s, "ws"); len(got) != 0 {
			t.Errorf("a run that defers has a lock: %q", got)
		}
		settle(t, s, run, loop.OutcomeQuiet)
		row := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Run, error) { return r.Run(ctx, run.ID) })
		if d := cmp.Diff(to, row.DeferredTo); d != "" {
			t.Error(d)
		}
		deferrals := func() int {
			return look(t, s, func(ctx context.Context, r *store.Reader) (loop.Loop, error) { return r.Loop(ctx, l.ID) }).Deferrals
		}
		if got := deferrals(); got != 1 {
			t.Errorf("the loop has deferred %d times", got)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.ClearDeferrals(ctx, l.ID) })
		if got := deferrals(); got != 0 {
			t.Errorf("the loop that goes has deferred %d times", got)
		}
	})
}

func TestTheLockOfAHolderIsTakenOnlyIfItIsDeadOrLate(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fireLocking(t, s, seed(t, s, "ci"), alice)
		take := func(seen loop.Run, dead loop.Holder) (taken bool) {
			t.Helper()
			update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
				taken, err = tx.TakeLock(ctx, seen, dead)
				return err
			})
			return taken
		}
		old := run
		old.Fence--
		for what, got := range map[string]bool{
			"its lease is not over": take(run, loop.Holder{}), "another one is dead": take(run, bob), "it was taken over since": take(old, alice),
		} {
			if got {
				t.Errorf("%s, and its lock is taken", what)
			}
		}
		if !take(run, alice) || len(contenders(t, s, "ws")) != 0 {
			t.Error("its holder is dead, and it keeps its lock")
		}
		if err := held(t.Context(), s, run, func(*store.RunTx) error { return nil }); !errors.Is(err, loop.ErrLeaseLost) {
			t.Errorf("the holder goes on: %v", err)
		}
		run.Fence++
		if take(run, alice) {
			t.Error("a lock is taken twice")
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { // Recovery goes on.
			_, _, err := tx.Claim(ctx, run.ID, run.Fence, bob, alice)
			return err
		})
	})
}

func TestTwoClaimsInOneRepositoryFollowEachOther(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		seed(t, s, "first")
		seed(t, s, "second")
		reached, second := make(chan bool), make(chan []loop.Contender, 1)
		var done sync.WaitGroup
		done.Go(func() {
			<-reached
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				list, err := tx.LockContenders(t.Context(), "ws", loop.Ahead{})
				second <- list
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
		defer done.Wait()
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			if list, err := tx.LockContenders(ctx, "ws", loop.Ahead{}); err != nil || len(list) > 0 {
				t.Errorf("the first finds %v, %v", list, err)
			}
			reached <- true
			select {
			case list := <-second:
				second <- list
				t.Errorf("the second has looked before the first was done: %v", list)
			case <-time.After(50 * time.Millisecond): // It can only fail to notice.
			}
			_, err := tx.FireClaimed(ctx, loop.Run{ID: "r", LoopID: "lp_first", N: 1, Key: "r", Trigger: "manual", Lock: lockOnSrc}, alice)
			return err
		})
		if list := <-second; len(list) != 1 || list[0].Loop != "first" {
			t.Errorf("the second finds %v, want the run of the first", list)
		}
	})
}

// Of the queued runs a claim reads only those that may go first, whoever asks.
func TestAClaimReadsThoseThatMayGoFirst(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, clock *hand) {
		fire := func(name string, lock loop.Lock, by loop.Holder) {
			l := seed(t, s, name)
			update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
				if l, err = tx.Number(ctx, l.WorkspaceID, l.Protocol, l.Name); err != nil {
					return err
				}
				run := loop.Run{ID: "run_" + name, LoopID: l.ID, N: l.LastN, Key: name, Trigger: "cadence", Definition: "d", Lock: lock}
				if by == (loop.Holder{}) {
					_, err = tx.Fire(ctx, run)
					return err
				}
				_, err = tx.FireClaimed(ctx, run, by)
				return err
			})
		}
		src := []string{"src/**"}
		fire("live", loop.Lock{Scope: src, Bound: 5}, alice)
		fire("old", loop.Lock{Scope: src, Bound: 5}, loop.Holder{})
		clock.add(time.Minute)
		for _, priority := range []int{10, 25, 50} {
			for _, bound := range []int{0, 5} {
				fire(fmt.Sprintf("p%d-b%d", priority, bound), loop.Lock{Scope: src, Priority: priority, Bound: bound}, loop.Holder{})
			}
		}
		all := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Contender, error) { return r.Contenders(ctx, "ws") })
		if len(all) != 8 {
			t.Fatalf("there are %d contenders, want 8", len(all))
		}
		for _, before := range []int64{0, all[3].Seq, all[7].Seq + 1} {
			for _, above := range []int{0, 25, 50} {
				for _, age := range []time.Duration{30 * time.Second, time.Hour} {
					may := loop.Ahead{Before: before, Above: above, Age: age}
					var got, want []string
					for _, c := range all {
						if c.Live || may.Includes(c) {
							want = append(want, c.Name())
						}
					}
					update(t, s, func(ctx context.Context, tx *store.Tx) error {
						list, err := tx.LockContenders(ctx, "ws", may)
						got = nil
						for _, c := range list {
							got = append(got, c.Name())
						}
						return err
					})
					if d := cmp.Diff(want, got); d != "" {
						t.Errorf("%+v (-want +got):\n%s", may, d)
					}
				}
			}
		}
	})
}
