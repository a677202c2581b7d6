package daemon

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/notify"
)

func TestAnIdleDaemonRemovesWhatIsOldAndMakesItsFileSmaller(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.plans("ws", "l", r.Now().Add(time.Hour))
		var run loop.Run
		r.update(func(ctx context.Context, tx *store.Tx) error {
			l, err := tx.Number(ctx, "ws", loop.ProtocolBoard, "l")
			if err != nil {
				return err
			}
			if run, err = tx.FireClaimed(ctx, loop.Run{ID: "run_1", LoopID: l.ID, N: l.LastN, Key: "1", Trigger: "manual", Definition: "d"}, loop.Holder{PID: 1, Host: "a", Start: 7}); err != nil {
				return err
			}
			rt, err := tx.Enter(ctx, run, loop.PhaseAct)
			for i := range 20 { // 20 MB, which the compressed transcript does not need.
				err = errors.Join(err, rt.AppendEvents(ctx, []loop.Event{{RunID: run.ID, Seq: int64(i + 1), Kind: "output", Text: strings.Repeat("x", 1<<20)}}))
			}
			return err
		})
		r.update(func(ctx context.Context, tx *store.Tx) error {
			run.Outcome = loop.OutcomeQuiet
			_, err := tx.Settle(ctx, run, loop.PhaseConclude, false)
			return err
		})
		r.update(func(ctx context.Context, tx *store.Tx) error {
			l := loop.Loop{ID: "lp_l", WorkspaceID: "ws", Name: "l"}
			_, first := notify.RaiseLate(ctx, tx, l, "It did not come.")
			_, over := notify.Over(ctx, tx, notify.KeyOfLate(l.ID), "")
			_, lasts := notify.RaiseLate(ctx, tx, l, "It did not come again.")
			return errors.Join(first, over, lasts)
		})
		had := r.left()
		tidy := func() {
			t.Helper()
			if err := r.tidy(r.t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		tidy()
		if now := r.left(); now != had {
			t.Errorf("of what is new, %+v was left: %+v", had, now)
		}
		r.wrong.Store(int64(oldAge + time.Hour))
		r.atWork.Add(1)
		tidy()
		if now := r.left(); now != had {
			t.Errorf("while a run is executed, %+v became %+v", had, now)
		}
		r.atWork.Add(-1)
		r.plans("ws", "new", r.Now().Add(time.Hour))
		r.plans("ws", "newer", r.Now().Add(time.Hour))
		tidy()
		now := r.left()
		if now.feed != 2 || now.notices != 1 { // One for each new loop, and the matter that lasts.
			t.Errorf("of %+v, %+v was left", had, now)
		}
		if now.pages > had.pages/2 {
			t.Errorf("the file had %d pages and has %d", had.pages, now.pages)
		}
	})
}

// rest is what is in a store.
type rest struct{ feed, notices, pages int }

func (r *rig) left() (n rest) {
	r.t.Helper()
	err := r.Store.View(r.t.Context(), func(rd *store.Reader) error {
		entries, err := rd.Feed(r.t.Context(), loop.Cursor{}, 1000)
		if err != nil {
			return err
		}
		notices, err := rd.Notices(r.t.Context(), 0, 1000)
		n.feed, n.notices = len(entries), len(notices)
		return err
	})
	if err == nil {
		err = r.Store.SQLiteWriter().QueryRowContext(r.t.Context(), `PRAGMA page_count`).Scan(&n.pages)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}
