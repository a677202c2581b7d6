package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// sideBySide begins a transaction, runs first in it, and begins another one with
// second, which has to wait for the end of the first: it fails the test if second
// comes to its end before. It returns the errors of both. Only PostgreSQL has two
// write transactions at once.
func sideBySide(t *testing.T, s *store.Store, first, second func(context.Context, *store.Tx) error) (error, error) {
	t.Helper()
	ctx := t.Context()
	began, end := make(chan struct{}), make(chan struct{})
	one, two := make(chan error, 1), make(chan error, 1)
	go func() {
		one <- s.Update(ctx, func(tx *store.Tx) error {
			err := first(ctx, tx)
			close(began)
			<-end
			return err
		})
	}()
	<-began
	go func() { two <- s.Update(ctx, func(tx *store.Tx) error { return second(ctx, tx) }) }()
	for !locked(t, s) {
		select {
		case err := <-two:
			t.Errorf("the second transaction did not wait for the first: %v", err)
			close(end)
			return <-one, err
		case <-time.After(time.Millisecond):
		}
	}
	close(end)
	return <-one, <-two
}

// locked reports whether a connection to the store's database waits for a lock.
func locked(t *testing.T, s *store.Store) bool {
	t.Helper()
	const waiting = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	var n int
	if err := s.PostgresPool().QueryRow(t.Context(), waiting).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// The switch is read with FOR SHARE: a plain SELECT would still see it cleared
// while the transaction that sets it is open, and would let it be set between
// the question and the commit of the effect that began.
func TestTheSwitchOfALoopAndAnEffectThatBeginsWaitForEachOther(t *testing.T) {
	requested := func(t *testing.T) (*store.Store, func(context.Context, *store.Tx) error, func(context.Context, *store.Tx) error) {
		t.Helper()
		s := open(t, storetest.PostgreSQL(t))
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		err := held(t.Context(), s, run, func(rt *store.RunTx) error {
			return rt.RequestEffect(t.Context(), loop.EffectRequest{Kind: "land", Key: "land/1"})
		})
		if err != nil {
			t.Fatal(err)
		}
		pause := func(ctx context.Context, tx *store.Tx) error { return tx.Pause(ctx, run.LoopID, true) }
		begin := func(ctx context.Context, tx *store.Tx) error {
			rt, err := tx.Enter(ctx, run, loop.PhaseEffect)
			if err != nil {
				return err
			}
			return rt.SaveEffect(ctx, loop.EffectRequested, loop.Effect{RunID: run.ID, Seq: 1, Key: "land/1", State: loop.EffectApplying})
		}
		return s, pause, begin
	}
	t.Run("the switch is set first", func(t *testing.T) {
		t.Parallel()
		s, pause, begin := requested(t)
		if set, began := sideBySide(t, s, pause, begin); set != nil || !errors.Is(began, loop.ErrPaused) {
			t.Errorf("pause = %v; the effect began with %v, want ErrPaused", set, began)
		}
	})
	t.Run("the effect begins first", func(t *testing.T) {
		t.Parallel()
		s, pause, begin := requested(t)
		if began, set := sideBySide(t, s, begin, pause); began != nil || set != nil {
			t.Errorf("the effect began with %v, pause = %v, want none", began, set)
		}
	})
}

// An agent is read with FOR UPDATE by whoever changes it: with a plain SELECT
// both would start from the same entry and the first change would be lost.
func TestOfTwoChangesOfAnAgentAtOnceNoneIsLost(t *testing.T) {
	s := open(t, storetest.PostgreSQL(t))
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		return tx.SaveAgent(ctx, loop.Agent{ID: "ag_1", Handle: "ada", Driver: "claude"})
	})
	learn := func(skill string) func(context.Context, *store.Tx) error {
		return func(ctx context.Context, tx *store.Tx) error {
			a, err := tx.AgentToChange(ctx, "ada")
			if err != nil {
				return err
			}
			a.Skills = append(a.Skills, skill)
			return tx.SaveAgent(ctx, a)
		}
	}
	if first, second := sideBySide(t, s, learn("go"), learn("sql")); first != nil || second != nil {
		t.Fatal(first, second)
	}
	got := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Agent, error) { return r.Agent(ctx, "ada") })
	if want := []string{"go", "sql"}; !slices.Equal(got.Skills, want) {
		t.Errorf("skills = %q, want %q", got.Skills, want)
	}
}

// A view of PostgreSQL is REPEATABLE READ: with READ COMMITTED each query would
// see what was committed before it, and two queries of one view would not belong
// together.
func TestAViewSeesNothingThatIsCommittedAfterItBegan(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		type seen struct {
			paused bool
			runs   int
		}
		read := func(r *store.Reader) (v seen, err error) {
			l, err := r.Loop(t.Context(), run.LoopID)
			if err != nil {
				return v, err
			}
			runs, err := r.Runs(t.Context(), run.LoopID, 10)
			return seen{l.Paused, len(runs)}, err
		}
		err := s.View(t.Context(), func(r *store.Reader) error {
			before, err := read(r)
			if err != nil {
				return err
			}
			settle(t, s, run, loop.OutcomeDone)
			fire(t, s, loop.Loop{Name: "ci", Protocol: loop.ProtocolSpine}, "-2", alice)
			update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.Pause(ctx, run.LoopID, true) })
			after, err := read(r)
			if d := cmp.Diff(seen{false, 1}, before, cmp.AllowUnexported(seen{})); d != "" || before != after {
				t.Errorf("one view saw %+v and then %+v (%s)", before, after, d)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestATransactionThatStandsStillKeepsNobodyWaiting(t *testing.T) {
	s := open(t, storetest.PostgreSQL(t))
	l := seed(t, s, "ci")
	stopped, err := s.PostgresPool().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stopped.Release()
	var most string
	if err := stopped.QueryRow(t.Context(), "SHOW idle_in_transaction_session_timeout").Scan(&most); err != nil || most != "1min" {
		t.Fatalf("a transaction may stand still for %q, %v; want two leases", most, err)
	}
	if _, err := stopped.Exec(t.Context(), "SET idle_in_transaction_session_timeout = 100"); err != nil { // Nobody waits for the minute.
		t.Fatal(err)
	}
	if _, err := stopped.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	if _, err := stopped.Exec(t.Context(), "SELECT 1 FROM loops WHERE id = $1 FOR UPDATE", l.ID); err != nil {
		t.Fatal(err)
	}
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.LockLoop(ctx, l.ID)
		return err
	})
}
