package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// feed reads everything after a cursor, two entries at a time.
func feed(t *testing.T, s *store.Store, after loop.Cursor) (all []loop.FeedEntry) {
	t.Helper()
	for {
		var part []loop.FeedEntry
		err := s.View(t.Context(), func(r *store.Reader) (err error) {
			part, err = r.Feed(t.Context(), after, 2)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(part) == 0 {
			return all
		}
		all = append(all, part...)
		after = part[len(part)-1].Cursor
	}
}

func feedHead(t *testing.T, s *store.Store) (c loop.Cursor) {
	t.Helper()
	if err := s.View(t.Context(), func(r *store.Reader) (err error) { c, err = r.FeedHead(t.Context()); return err }); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheFeedSaysWhatEachTransactionChanged(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		if c := feedHead(t, s); c != (loop.Cursor{}) {
			t.Errorf("the head of an empty feed is %v", c)
		}
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		start := feedHead(t, s)
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.Pause(ctx, run.LoopID, true) })
		if err := held(t.Context(), s, run, func(rt *store.RunTx) error {
			return errors.Join(
				rt.AppendEvents(t.Context(), []loop.Event{{RunID: run.ID, Seq: 1, Kind: "note"}}),
				rt.AskApproval(t.Context(), loop.Approval{ID: "ap", LoopID: run.LoopID, RunID: run.ID, State: loop.ApprovalOpen, Expires: time.Now().Add(time.Hour)}))
		}); err != nil {
			t.Fatal(err)
		}
		undone := errors.New("undone")
		if err := s.Update(t.Context(), func(tx *store.Tx) error {
			return errors.Join(undone, tx.Pause(t.Context(), run.LoopID, false))
		}); !errors.Is(err, undone) {
			t.Fatal(err)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.AnswerApproval(ctx, "ap", loop.Answer{Yes: true, By: "ann"})
		})
		settle(t, s, run, loop.OutcomeDone)
		var got []string
		for _, e := range feed(t, s, start) {
			got = append(got, fmt.Sprint(e.Kind, " ", e.ID, " of ", e.LoopID, " ", e.State))
		}
		want := []string{
			"loop lp_ci of lp_ci paused", "run run_ci-1 of lp_ci running", "approval ap of lp_ci open",
			"approval ap of lp_ci approved", "run run_ci-1 of lp_ci done",
		}
		if !slices.Equal(got, want) {
			t.Errorf("the feed says\n%q, want\n%q", got, want)
		}
		if all := feed(t, s, loop.Cursor{}); all[len(all)-1].Cursor != feedHead(t, s) {
			t.Errorf("the head is %v, and the last entry is %v", feedHead(t, s), all[len(all)-1])
		}
	})
}

// Whoever tails the feed while many write must see each entry once, also those of
// a transaction that took its numbers early and was committed late.
func TestAReaderOfTheFeedMissesNothingOfWritersBesideIt(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		const writers, each = 8, 12
		var group sync.WaitGroup
		for w := range writers {
			group.Go(func() {
				for i := range each {
					err := s.Update(t.Context(), func(tx *store.Tx) error {
						return tx.SetHold(t.Context(), loop.Hold{Subject: fmt.Sprintf("w%d-%d", w, i), Reason: "limited"})
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { group.Wait(); close(done) }()
		var seen []string
		var after loop.Cursor
		for over := false; ; {
			part := feed(t, s, after)
			for _, e := range part {
				seen = append(seen, e.ID)
				after = e.Cursor
			}
			if over && len(part) == 0 {
				break
			}
			select {
			case <-done:
				over = true
			default:
			}
		}
		slices.Sort(seen)
		if n := len(seen); n != writers*each || len(slices.Compact(seen)) != n {
			t.Errorf("%d entries were read, %d different ones, want %d", n, len(slices.Compact(seen)), writers*each)
		}
	})
}

func TestOnlySoManyOfTheOldestEntriesArePruned(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "ci")
		for range 3 {
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				return tx.PlanNext(ctx, l.ID, tx.Now(), tx.Now(), tx.Now())
			})
		}
		all := feed(t, s, loop.Cursor{})
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			n, err := tx.PruneFeed(ctx, time.Now().Add(time.Minute), 2)
			if n != 2 {
				t.Errorf("%d entries were removed, want 2", n)
			}
			return err
		})
		if left := feed(t, s, loop.Cursor{}); len(all) < 4 || !slices.Equal(left, all[2:]) {
			t.Errorf("of %v are left %v", all, left)
		}
	})
}

func TestACursorThatWasPrunedIsRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "ci")
		old := feedHead(t, s)
		fire(t, s, l, "-1", alice)
		var n int64
		update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
			n, err = tx.PruneFeed(ctx, time.Now().Add(time.Minute), 1000)
			return err
		})
		if n == 0 || feedHead(t, s) == (loop.Cursor{}) {
			t.Errorf("%d entries were removed, and the head is %v: want all but the newest", n, feedHead(t, s))
		}
		err := s.View(t.Context(), func(r *store.Reader) error { _, err := r.Feed(t.Context(), old, 9); return err })
		if !errors.Is(err, store.ErrFeedPruned) {
			t.Errorf("an entry that is gone is a cursor: %v", err)
		}
		if got := feed(t, s, feedHead(t, s)); len(got) != 0 {
			t.Errorf("after the head come %v", got)
		}
	})
}
