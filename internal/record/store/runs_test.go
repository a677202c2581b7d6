package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestARunComesBackAsItWasSaved(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		run.Reason, run.Detail, run.Summary = loop.ReasonGatesPass, "détail\n\"x\"", "sum"
		run.Cause = loop.Cause{
			Switch: loop.KillSwitch{Path: "ops/off", Unread: "x"}, PullRequest: "https://h/1", Unpushed: "main", Ungated: "origin/main", Fetch: "git lfs pull", GitChange: true, Item: "pr=1",
		}
		run.BaseCommit, run.BaseTree, run.Branch, run.Commit, run.Snapshot, run.Approval = "c", "t", "b", "k", "s", "ap"
		run.Sandbox, run.Readiness = "none", 80
		run.Agent, run.Auth = "claude", loop.AuthLend
		run.Cost = loop.Cost{
			MicroUSD: 12, Unpriced: []string{"m"}, Prices: []loop.ModelPrice{{Model: "p", Input: 0.25, Output: 2}}, AsOf: "2026-06",
		}
		run.Usage = loop.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Source: loop.UsageMetered}
		run.Spent = loop.Spent{Total: 3 * time.Second, Agent: 2 * time.Second, Gates: 1500 * time.Microsecond}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Save(ctx, run, loop.PhaseAct)
			return err
		})
		got := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Run, error) { return r.Run(ctx, run.ID) })
		run.Phase, run.LeaseUntil = loop.PhaseAct, got.LeaseUntil
		if d := cmp.Diff(run, got); d != "" {
			t.Error(d)
		}
		if got.N != 1 || got.Fence != 1 || got.Holder != alice || got.State != loop.RunRunning {
			t.Errorf("claimed run = %+v", got)
		}
	})
}

func TestAKeyFiresOnceAndUsesUpNoNumber(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "ci")
		if run := fire(t, s, seed(t, s, "fresh"), "-1", loop.Holder{}); run.Created.IsZero() || run.Readiness != 100 {
			t.Errorf("a run that was fired was made at %v with readiness %d, want now and 100", run.Created, run.Readiness)
		}
		settle(t, s, fire(t, s, l, "-1", alice), loop.OutcomeQuiet)
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			l, err := tx.Number(t.Context(), "ws", l.Protocol, l.Name)
			if err == nil {
				_, err = tx.FireClaimed(t.Context(), loop.Run{ID: "other", LoopID: l.ID, N: l.LastN, Key: "ci-1", Trigger: "manual"}, bob)
			}
			return err
		})
		if !errors.Is(err, loop.ErrDuplicateKey) {
			t.Fatalf("second firing = %v, want ErrDuplicateKey", err)
		}
		if run := fire(t, s, l, "-2", alice); run.N != 2 {
			t.Errorf("next run is #%d, want #2", run.N)
		}
	})
}

func TestARunThatIsHeldFromItsFiringHasBegunThen(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, clock *hand) {
		l := seed(t, s, "ci")
		clock.add(time.Hour)
		var run loop.Run
		update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
			run, err = tx.FireClaimed(ctx, loop.Run{ID: "run", LoopID: l.ID, N: 1, Key: "key", Trigger: "manual", Definition: "d"}, alice)
			return err
		})
		if !run.Started.Equal(clock.now()) || !run.Created.Equal(clock.now()) {
			t.Errorf("it was made at %v and has begun at %v, want both at %v", run.Created, run.Started, clock.now())
		}
		row := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Run, error) { return r.Run(ctx, "run") })
		run.LeaseUntil = row.LeaseUntil
		if d := cmp.Diff(run, row); d != "" {
			t.Errorf("what was fired is not its row (-fired +row):\n%s", d)
		}
	})
}

func TestOneLoopHasOneLiveRun(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "ci")
		fire(t, s, l, "-1", alice)
		second := fire(t, s, l, "-2", loop.Holder{})
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			_, _, err := tx.Claim(t.Context(), second.ID, second.Fence, bob, loop.Holder{})
			return err
		})
		if err == nil {
			t.Error("two runs of one loop are live")
		}
	})
}

func TestARunThatSettlesStillKeepsTheNextOneOut(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "ci")
		run := fire(t, s, l, "-1", alice)
		run.Outcome = loop.OutcomeProposed
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Settle(ctx, run, loop.PhaseConclude, true)
			return err
		})
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			l, err := tx.Number(t.Context(), "ws", l.Protocol, l.Name)
			if err == nil {
				_, err = tx.FireClaimed(t.Context(), loop.Run{ID: "other", LoopID: l.ID, N: l.LastN, Key: "other", Trigger: "manual"}, bob)
			}
			return err
		})
		if held, ok := errors.AsType[*loop.HeldError](err); !ok || held.Holder != alice {
			t.Errorf("firing = %v, want that alice holds the run that settles", err)
		}
	})
}

func TestFiftyClaimersOfOneRunGiveOneWinner(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "ci"), "-1", loop.Holder{})
		var won atomic.Int32
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				err := s.Update(t.Context(), func(tx *store.Tx) error {
					_, _, err := tx.Claim(t.Context(), run.ID, run.Fence, loop.Holder{PID: i + 1, Host: "n"}, loop.Holder{})
					return err
				})
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, loop.ErrLeaseLost):
					t.Errorf("claim = %v, want ErrLeaseLost", err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Errorf("%d claimers won, want 1", won.Load())
		}
	})
}

func TestALiveLeaseIsNotTakenAndADeadHoldersIs(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		claim := func(seen int64, dead loop.Holder) (got loop.Run, err error) {
			err = s.Update(t.Context(), func(tx *store.Tx) error {
				got, _, err = tx.Claim(t.Context(), run.ID, seen, bob, dead)
				return err
			})
			return got, err
		}
		for name, try := range map[string]func() (loop.Run, error){
			"a live lease":                func() (loop.Run, error) { return claim(run.Fence, loop.Holder{}) },
			"another holder proven dead":  func() (loop.Run, error) { return claim(run.Fence, bob) },
			"an old fence of a dead man":  func() (loop.Run, error) { return claim(run.Fence-1, alice) },
			"a fence that never was seen": func() (loop.Run, error) { return claim(run.Fence+1, alice) },
		} {
			if _, err := try(); !errors.Is(err, loop.ErrLeaseLost) {
				t.Errorf("%s: claim = %v, want ErrLeaseLost", name, err)
			}
		}
		got, err := claim(run.Fence, alice)
		if err != nil || got.Fence != run.Fence+1 || got.Holder != bob {
			t.Fatalf("claim of a dead holder's run = %+v, %v", got, err)
		}
		err = s.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Save(t.Context(), run, loop.PhaseAct)
			return err
		})
		if !errors.Is(err, loop.ErrLeaseLost) {
			t.Errorf("write with the old fence = %v, want ErrLeaseLost", err)
		}
		if _, err := extend(t, s, run); !errors.Is(err, loop.ErrLeaseLost) {
			t.Errorf("extend with the old fence = %v, want ErrLeaseLost", err)
		}
	})
}

// setLease lets the lease of a run end so long after the database's now.
func setLease(ctx context.Context, tx *store.Tx, run loop.Run, left time.Duration) error {
	const set = `UPDATE runs SET lease_until_ms = %s + $1 WHERE id = $2`
	if pg := tx.Postgres(); pg != nil {
		_, err := pg.Exec(ctx, fmt.Sprintf(set, "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"), left.Milliseconds(), run.ID)
		return err
	}
	_, err := tx.SQLite().ExecContext(ctx, fmt.Sprintf(set, "CAST(unixepoch('subsec') * 1000 AS INTEGER)"), left.Milliseconds(), run.ID)
	return err
}

func TestALeaseIsTakenASecondAfterItsEndAndNotASecondBefore(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		claim := func(left time.Duration) (got loop.Run, err error) {
			err = s.Update(t.Context(), func(tx *store.Tx) error {
				if err := setLease(t.Context(), tx, run, left); err != nil {
					return err
				}
				got, _, err = tx.Claim(t.Context(), run.ID, run.Fence, bob, loop.Holder{})
				return err
			})
			return got, err
		}
		if got, err := claim(time.Second); !errors.Is(err, loop.ErrLeaseLost) {
			t.Errorf("a second before its end: %+v, %v, want ErrLeaseLost", got, err)
		}
		if got, err := claim(-time.Second); err != nil || got.Holder != bob || got.Fence != run.Fence+1 {
			t.Errorf("a second after its end: %+v, %v, want it with a new fence", got, err)
		}
	})
}

func TestWhateverItsHolderWritesLeavesAWholeLease(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "ci")
		run := fire(t, s, l, "-1", alice)
		var claimed loop.Run
		for name, write := range map[string]func(context.Context, *store.Tx) error{
			"enter":  func(ctx context.Context, tx *store.Tx) error { _, err := tx.Enter(ctx, run, loop.PhaseAct); return err },
			"save":   func(ctx context.Context, tx *store.Tx) error { _, err := tx.Save(ctx, run, loop.PhaseAct); return err },
			"extend": func(ctx context.Context, tx *store.Tx) error { _, err := tx.Extend(ctx, run.ID, run.Fence); return err },
		} {
			for _, left := range []time.Duration{time.Second, -time.Second} { // Nobody has taken it meanwhile.
				update(t, s, func(ctx context.Context, tx *store.Tx) error {
					return errors.Join(setLease(ctx, tx, run, left), write(ctx, tx), wholeLease(ctx, tx, run.ID))
				})
				if t.Failed() {
					t.Fatalf("%s with %s left", name, left)
				}
			}
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
			if err = setLease(ctx, tx, run, -time.Second); err != nil {
				return err
			}
			claimed, _, err = tx.Claim(ctx, run.ID, run.Fence, bob, loop.Holder{})
			return errors.Join(err, wholeLease(ctx, tx, run.ID))
		})
		claimed.Outcome = loop.OutcomeProposed
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Settle(ctx, claimed, loop.PhaseConclude, true)
			return errors.Join(err, wholeLease(ctx, tx, run.ID))
		})
		claimed.State = loop.RunSettling
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.End(ctx, claimed, loop.PhaseSleep)
			return err
		})
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			l, err := tx.Number(ctx, "ws", l.Protocol, l.Name)
			if err != nil {
				return err
			}
			next, err := tx.FireClaimed(ctx, loop.Run{ID: "next", LoopID: l.ID, N: l.LastN, Key: "next", Trigger: "manual", Definition: "d"}, alice)
			if row, rowErr := tx.Run(ctx, "next"); rowErr != nil || next.Fence != 1 || row.Fence != 1 {
				t.Errorf("it is claimed with fence %d, and the row says %d, %v; want the first", next.Fence, row.Fence, rowErr)
			}
			return errors.Join(err, wholeLease(ctx, tx, "next"))
		})
	})
}

// wholeLease is an error unless nearly all of a lease is left.
func wholeLease(ctx context.Context, tx *store.Tx, id string) error {
	asked, err := tx.Asked(ctx, id)
	if err == nil && (asked.Lease > store.Lease || asked.Lease < store.Lease-5*time.Second) {
		err = fmt.Errorf("%s of the lease of %s are left, want %s", asked.Lease, id, store.Lease)
	}
	return err
}

func TestARunThatHasEndedIsNotWrittenToBehindItsEnd(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		settle(t, s, run, loop.OutcomeDone)
		for name, write := range map[string]func(*store.Tx) error{
			"enter":  func(tx *store.Tx) error { _, err := tx.Enter(t.Context(), run, loop.PhaseAct); return err },
			"save":   func(tx *store.Tx) error { _, err := tx.Save(t.Context(), run, loop.PhaseAct); return err },
			"extend": func(tx *store.Tx) error { _, err := tx.Extend(t.Context(), run.ID, run.Fence); return err },
			"claim": func(tx *store.Tx) error {
				_, _, err := tx.Claim(t.Context(), run.ID, run.Fence, bob, loop.Holder{})
				return err
			},
		} {
			if err := s.Update(t.Context(), write); !errors.Is(err, loop.ErrLeaseLost) {
				t.Errorf("%s = %v, want ErrLeaseLost", name, err)
			}
		}
	})
}

func extend(t *testing.T, s *store.Store, r loop.Run) (why string, err error) {
	t.Helper()
	err = s.Update(t.Context(), func(tx *store.Tx) error {
		why, err = tx.Extend(t.Context(), r.ID, r.Fence)
		return err
	})
	return why, err
}

func TestTheHolderSeesThatItIsAskedToStop(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			ok, err := tx.Cancel(ctx, run.ID, "bob wants it")
			if !ok {
				t.Error("a running run could not be asked to stop")
			}
			return err
		})
		if why, err := extend(t, s, run); err != nil || why != "bob wants it" {
			t.Errorf("extend = %q, %v", why, err)
		}
	})
}

func TestARunIsAskedToStopOnceAndNotPastItsConclusion(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "ci"), "-1", loop.Holder{})
		cancel := func(why string) (ok bool) {
			t.Helper()
			update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
				ok, err = tx.Cancel(ctx, run.ID, why)
				return err
			})
			return ok
		}
		if !cancel("ann wants it") || cancel("ben wants it") {
			t.Error("a queued run is asked once, by the first")
		}
		got := look(t, s, func(ctx context.Context, r *store.Reader) (store.Asked, error) { return r.Asked(ctx, run.ID) })
		if got.Cancel != "ann wants it" {
			t.Errorf("it was asked to stop for %q", got.Cancel)
		}
		run = fire(t, s, seed(t, s, "other"), "-1", alice)
		run.Outcome = loop.OutcomeProposed
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Settle(ctx, run, loop.PhaseConclude, true)
			return err
		})
		if cancel("too late") {
			t.Error("a run that settles was asked to stop")
		}
		run.State = loop.RunSettling
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.End(ctx, run, loop.PhaseSleep)
			return err
		})
		if cancel("much too late") {
			t.Error("a run that has ended was asked to stop")
		}
	})
}

func TestTheDatabaseRefusesStatesThatTheTableDoesNotList(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		end := func(tx *store.Tx) error {
			_, err := tx.End(t.Context(), run, loop.PhaseSleep)
			return err
		}
		if err := s.Update(t.Context(), end); !errors.Is(err, loop.ErrLeaseLost) {
			t.Error("a running run was ended without being concluded")
		}
		settle(t, s, run, loop.OutcomeDone)
		again := func(tx *store.Tx) error {
			_, err := tx.Settle(t.Context(), run, loop.PhaseConclude, false)
			return err
		}
		if err := s.Update(t.Context(), again); !errors.Is(err, loop.ErrLeaseLost) {
			t.Errorf("a second outcome = %v, want ErrLeaseLost", err)
		}
		got := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Run, error) { return r.Run(ctx, run.ID) })
		if got.Outcome != loop.OutcomeDone || got.Holder != (loop.Holder{}) || got.Ended.IsZero() {
			t.Errorf("ended run = %+v", got)
		}
	})
}

func TestNothingOfAFailedTransactionRemains(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l, boom := seed(t, s, "ci"), errors.New("boom")
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			if _, err := tx.Fire(t.Context(), loop.Run{ID: "r", LoopID: l.ID, N: 1, Key: "k", Trigger: "manual"}); err != nil {
				return err
			}
			return boom
		})
		if !errors.Is(err, boom) {
			t.Fatalf("Update = %v, want the caller's error", err)
		}
		if runs := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Run, error) { return r.Runs(ctx, l.ID, 9) }); len(runs) > 0 {
			t.Errorf("runs = %v", runs)
		}
	})
}

func TestAViewCannotWrite(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "ci")
		err := s.View(t.Context(), func(r *store.Reader) error {
			return (&store.Tx{Reader: *r}).Pause(t.Context(), l.ID, true)
		})
		if err == nil {
			t.Error("a view wrote")
		}
	})
}

func TestAClaimLastsAsLongAsTheStoreSays(t *testing.T) {
	for name, c := range map[string]struct{ set, want time.Duration }{
		"nothing is said": {0, 30 * time.Second},
		"a second":        {time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := store.Open(t.Context(), store.Options{Database: filepath.Join(t.TempDir(), "pawl.db"), Now: time.Now, Lease: c.set})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			run := fire(t, s, seed(t, s, "a"), "1", alice)
			for _, claimed := range []string{"claimed", "extended"} {
				var asked store.Asked
				err := s.View(t.Context(), func(r *store.Reader) (err error) {
					asked, err = r.Asked(t.Context(), run.ID)
					return err
				})
				// A host under load may take a while to ask.
				if err != nil || asked.Lease > c.want || c.want == 30*time.Second && asked.Lease < 2*time.Second || s.Lease() != c.want {
					t.Errorf("%s: %v is left, %v, and the store says %v, want %v", claimed, asked.Lease, err, s.Lease(), c.want)
				}
				update(t, s, func(ctx context.Context, tx *store.Tx) error {
					_, err := tx.Extend(ctx, run.ID, run.Fence)
					return err
				})
			}
		})
	}
}
