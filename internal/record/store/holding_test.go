package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// holder is the store as the holder of a new run uses it.
func holder(t *testing.T, s *store.Store, claimed time.Time) (*store.Holding, loop.Run) {
	t.Helper()
	run := fire(t, s, seed(t, s, "ci"), "-1", alice)
	return s.Holding(run, claimed, nil), run
}

// link is a transaction that must not be repeated: it extends the audit chain.
func link(ctx context.Context, h *store.Holding, run loop.Run) error {
	return h.Update(ctx, func(tx *store.Tx) error {
		rt, err := tx.Enter(ctx, run, loop.PhaseGather)
		if err != nil {
			return err
		}
		return rt.Link(ctx, run.LoopID, "effect", run.ID, "once")
	})
}

// wantLinks checks how many transactions of link were committed.
func wantLinks(t *testing.T, s *store.Store, run loop.Run, want int) {
	t.Helper()
	var links []loop.Link
	err := s.View(t.Context(), func(r *store.Reader) (err error) {
		links, err = r.Chain(t.Context(), run.LoopID)
		return err
	})
	if err != nil || len(links) != want {
		t.Errorf("%d links, %v; want %d", len(links), err, want)
	}
}

func TestAHolderWaitsForADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	line := pgtest.NewLine(t, url)
	s := open(t, line.URL)
	h, run := holder(t, s, time.Now())
	line.CutFor(time.Second)
	if err := s.Update(t.Context(), func(*store.Tx) error { return nil }); err == nil {
		t.Error("who holds nothing was made to wait")
	}
	if err := link(t.Context(), h, run); err != nil {
		t.Errorf("Update = %v", err)
	}
	line.CutFor(time.Second)
	err := h.View(t.Context(), func(r *store.Reader) error {
		_, err := r.Run(t.Context(), run.ID)
		return err
	})
	if err != nil {
		t.Errorf("View = %v", err)
	}
	wantLinks(t, s, run, 1)
}

func TestACommitThatNobodyAcknowledgedIsLookedUpAndNeverRepeated(t *testing.T) {
	for name, cut := range map[string]pgtest.Cut{"the commit never arrived": pgtest.Before, "its acknowledgment was lost": pgtest.After} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := pgtest.NewLine(t, storetest.PostgreSQL(t))
			s := open(t, line.URL)
			fire(t, s, seed(t, s, "other"), "-1", bob) // Its lease says nothing about that of the holder.
			h, run := holder(t, s, time.Now())
			for n := 1; n <= 3; n++ {
				var cuts atomic.Int64
				line.Watch(func(query string) pgtest.Cut {
					if query != "commit" || cuts.Add(1) > 1 {
						return pgtest.Nowhere
					}
					time.AfterFunc(500*time.Millisecond, line.Mend)
					return cut
				})
				if err := link(t.Context(), h, run); err != nil {
					t.Fatal(err)
				}
				if cuts.Load() == 0 {
					t.Fatal("nothing was cut")
				}
				wantLinks(t, s, run, n)
			}
		})
	}
}

// The lease that the claim wrote says nothing about a first transaction that wrote
// the same one, in the same millisecond.
func TestALostCommitInTheMillisecondOfTheClaimIsRepeated(t *testing.T) {
	t.Parallel()
	line := pgtest.NewLine(t, storetest.PostgreSQL(t))
	s := open(t, line.URL)
	h, run := holder(t, s, time.Now())
	var claimed int64
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		return tx.Postgres().QueryRow(t.Context(), `SELECT lease_until_ms FROM runs WHERE id = $1`, run.ID).Scan(&claimed)
	})
	if err != nil {
		t.Fatal(err)
	}
	var cuts atomic.Int64
	line.Watch(func(query string) pgtest.Cut {
		if query != "commit" || cuts.Add(1) > 1 {
			return pgtest.Nowhere
		}
		time.AfterFunc(100*time.Millisecond, line.Mend)
		return pgtest.Before
	})
	err = h.Update(t.Context(), func(tx *store.Tx) error {
		rt, err := tx.Enter(t.Context(), run, loop.PhaseGather)
		if err != nil {
			return err
		}
		if _, err := tx.Postgres().Exec(t.Context(), `UPDATE runs SET lease_until_ms = $1 WHERE id = $2`, claimed, run.ID); err != nil {
			return err
		}
		return rt.Link(t.Context(), run.LoopID, "effect", run.ID, "once")
	})
	if err != nil || cuts.Load() == 0 {
		t.Fatalf("Update = %v after %d commits", err, cuts.Load())
	}
	wantLinks(t, s, run, 1)
}

func TestAServerThatIsStoppedAndStartedAgainIsWaitedFor(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t, "fsync=off")
	s := open(t, server.URL())
	h, run := holder(t, s, time.Now())
	for n := range 3 {
		server.Stop()
		done := make(chan error, 1)
		go func() { done <- link(t.Context(), h, run) }()
		time.Sleep(300 * time.Millisecond)
		server.Start()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		wantLinks(t, s, run, n+1)
	}
}

func TestWhatIsNoTroubleOfTheConnectionIsNotTriedAgain(t *testing.T) {
	s := open(t, storetest.PostgreSQL(t))
	h, run := holder(t, s, time.Now())
	mine := errors.New("mine")
	for name, fn := range map[string]func(*store.Tx) error{
		"an error of the caller": func(*store.Tx) error { return mine },
		"a lost fence": func(tx *store.Tx) error {
			_, err := tx.Enter(t.Context(), loop.Run{ID: run.ID, Fence: 9}, loop.PhaseAct)
			return err
		},
		"a constraint": func(tx *store.Tx) error {
			_, err := tx.Postgres().Exec(t.Context(), `UPDATE runs SET state = 'nowhere'`)
			return err
		},
	} {
		calls := 0
		err := h.Update(t.Context(), func(tx *store.Tx) error {
			calls++
			return fn(tx)
		})
		if err == nil || calls != 1 {
			t.Errorf("%s: %d calls, %v; want one call and the error", name, calls, err)
		}
	}
}

func TestAHolderWaitsNoLongerThanItsLease(t *testing.T) {
	line := pgtest.NewLine(t, storetest.PostgreSQL(t))
	s := open(t, line.URL)
	var said atomic.Int64
	run := fire(t, s, seed(t, s, "ci"), "-1", alice)
	h := s.Holding(run, time.Now().Add(500*time.Millisecond-store.Lease), func(error) { said.Add(1) })
	line.Cut()
	began := time.Now()
	err := link(t.Context(), h, run)
	f, ok := errors.AsType[*loop.Fault](err)
	if !ok || !strings.Contains(f.Why, "lease") || !strings.Contains(f.Advice().String(), "pawl recover") {
		t.Errorf("Update = %v, want a fault with the fix", err)
	}
	if took := time.Since(began); took < 400*time.Millisecond || took > 10*time.Second || said.Load() != 1 {
		t.Errorf("it took %s and was said %d times, want half a second and once", took, said.Load())
	}
	line.Mend()
	if err := link(t.Context(), h, run); err != nil {
		t.Errorf("a database that answers is used however old the lease is: %v", err)
	}
	if left := h.Left(); left < store.Lease/2 {
		t.Errorf("left = %s after an extension", left)
	}
}

func TestAHolderThatIsToEndDoesNotWaitForADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	line := pgtest.NewLine(t, storetest.PostgreSQL(t))
	s := open(t, line.URL)
	run := fire(t, s, seed(t, s, "ci"), "-1", alice)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h := s.Holding(run, time.Now(), func(error) { cancel() }) // While it waits.
	line.Cut()
	began := time.Now()
	if err := link(ctx, h, run); err == nil {
		t.Error("a transaction was committed to a database that is away")
	}
	if took := time.Since(began); took > store.Lease/2 {
		t.Errorf("it took %s", took)
	}
}

func TestAStoreThatIsGoneIsNoticedAtOnceAndNamed(t *testing.T) {
	server := pgtest.NewServer(t, "fsync=off")
	for name, c := range map[string]struct {
		place func(t *testing.T) string
		gone  func(t *testing.T, place string)
		want  string // in the error; empty: the place
	}{
		"its file is deleted": {
			func(t *testing.T) string { t.Helper(); return filepath.Join(t.TempDir(), "pawl.db") },
			func(t *testing.T, place string) {
				t.Helper()
				if err := os.Remove(place); err != nil {
					t.Error(err)
				}
			}, "",
		},
		"its file is replaced": {
			func(t *testing.T) string { t.Helper(); return filepath.Join(t.TempDir(), "pawl.db") },
			func(t *testing.T, place string) {
				t.Helper()
				data, err := os.ReadFile(place)
				if err = errors.Join(err, os.WriteFile(place+"2", data, 0o600), os.Rename(place+"2", place)); err != nil {
					t.Error(err)
				}
			}, "",
		},
		"its database is dropped": {
			func(*testing.T) string { return server.URL() },
			func(_ *testing.T, place string) { server.Drop(place) }, "postgres://",
		},
	} {
		t.Run(name, func(t *testing.T) {
			place := c.place(t)
			s := open(t, place)
			h, run := holder(t, s, time.Now())
			c.gone(t, place)
			began := time.Now()
			view := h.View(t.Context(), func(r *store.Reader) error {
				_, err := r.Asked(t.Context(), run.ID)
				return err
			})
			if c.want == "" {
				c.want = place
			}
			for what, err := range map[string]error{"Update": link(t.Context(), h, run), "View": view} {
				f, ok := errors.AsType[*loop.Fault](err)
				if !errors.Is(err, loop.ErrStoreGone) || !ok || f.Fix == "" || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s = %v, want that the store %s is gone", what, err, c.want)
				}
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %s: that comes to nothing however long it is tried", took)
			}
		})
	}
}
