package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestAStoreInMemoryIsAStoreWhoseTimeIsVirtual(t *testing.T) {
	now := time.Date(2026, 3, 8, 1, 59, 0, 0, time.UTC)
	open := func() *store.Store {
		t.Helper()
		s, err := store.Open(t.Context(), store.Options{Database: store.Memory, Now: time.Now, Virtual: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	s, other := open(), open()
	l := seed(t, s, "l")
	run := fire(t, s, l, "-1", alice)
	if !run.Created.Equal(now) || !run.LeaseUntil.IsZero() && !run.LeaseUntil.Equal(now.Add(store.Lease)) {
		t.Errorf("the run is of %s, its lease ends at %s", run.Created, run.LeaseUntil)
	}
	undone := errors.New("undone")
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		for range 3 { // The same statement again and again.
			if _, err := tx.AddEvent(t.Context(), loop.FiringEvent{LoopID: l.ID, ID: "e", Source: "file:a"}, nil); err != nil {
				return err
			}
		}
		return undone
	})
	if !errors.Is(err, undone) {
		t.Errorf("the error of the caller is %v", err)
	}
	if list := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.FiringEvent, error) {
		return r.LoopEvents(ctx, l.ID, 9)
	}); len(list) > 0 {
		t.Errorf("what was taken back is there: %+v", list)
	}
	now = now.Add(time.Hour) // The lease is over, by the clock of the database.
	lapsed := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Run, error) { return r.Run(ctx, run.ID) })
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		taken, _, err := tx.Claim(ctx, run.ID, lapsed.Fence, loop.Holder{PID: 2, Host: "b"}, loop.Holder{})
		if taken.Fence != lapsed.Fence+1 || !tx.Now().Equal(now) {
			t.Errorf("an hour later it was claimed as %+v, at %s", taken, tx.Now())
		}
		return err
	})
	if ids := look(t, other, func(ctx context.Context, r *store.Reader) ([]string, error) { return r.WorkspaceIDs(ctx) }); len(ids) > 0 {
		t.Errorf("another one has the workspaces %q", ids)
	}
	for i := range 2100 { // More statements than are kept: each lists another number of loops.
		names := make([]string, i%300+1)
		for j := range names {
			names[j] = fmt.Sprint("l", j)
		}
		look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Loop, error) {
			return r.LoopsNamed(ctx, "ws", names...)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.View(ctx, func(r *store.Reader) error { _, err := r.Run(ctx, run.ID); return err }); err == nil {
		t.Error("a view whose time is over has no error")
	}
}
