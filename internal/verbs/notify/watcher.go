package notify

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/event"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var (
	beforeTell = fault.New("notify.tell.commit.before")
	afterTell  = fault.New("notify.tell.commit.after")
)

// Watcher writes notices for what the feed of a store says. Several may work on one
// store, in any number of processes: what one has told, no other tells.
type Watcher struct {
	Store *store.Store
	Log   *slog.Logger
	Sleep func(context.Context, time.Duration) error // after an error of the store
	Gap   time.Duration                              // between looks at the feed; 0 means 1 s
	Pulse *event.Pulse                               // says when to look at it, instead of Gap; nil: nobody does

	cursors struct{ saved, read loop.Cursor } // in the store, and of what was read since without cause for a notice
}

const (
	// lag is how long a watcher that finds nothing to tell waits before it notes how far it
	// has read: a commit for each run would cost more than reading some entries again.
	lag         = time.Minute
	mostUnsaved = 1000            // entries
	pause       = 5 * time.Second // after an error
)

// Run follows the feed until ctx ends, and returns its cause. It begins where the last
// watcher of the store stopped, and for a new store with the approvals that are open.
// An error of the store is logged, and it goes on after a pause.
func (w *Watcher) Run(ctx context.Context) error {
	begun := false
	for {
		err := w.step(ctx, &begun)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			continue
		}
		w.Log.WarnContext(ctx, "notices are not written", slog.String("error", err.Error()))
		begun = false
		if err := w.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

func (w *Watcher) step(ctx context.Context, begun *bool) error {
	if !*begun {
		if err := w.begin(ctx); err != nil {
			return err
		}
		*begun = true
	}
	gap := w.Gap
	if gap == 0 {
		gap = time.Second
	}
	feed := event.Feed{Store: w.Store, Gap: gap, Pulse: w.Pulse}
	entries, next, err := feed.Next(ctx, w.cursors.read, lag, isTold)
	switch {
	case errors.Is(err, store.ErrFeedPruned) && w.cursors.read != w.cursors.saved:
		return w.begin(ctx)
	case errors.Is(err, store.ErrFeedPruned):
		return w.skip(ctx, func(ctx context.Context, tx *store.Tx, head loop.Cursor) (bool, error) {
			return tx.MoveNoticeCursor(ctx, w.cursors.saved, head)
		})
	case err != nil:
		return err
	}
	return w.tell(ctx, entries, next)
}

// isTold reports whether an entry of the feed may give cause for a notice.
func isTold(e loop.FeedEntry) bool {
	switch e.Kind {
	case loop.FeedApproval:
		return true
	case loop.FeedRun:
		return e.State != string(loop.RunQueued) && e.State != string(loop.RunRunning)
	case loop.FeedLoop:
		return e.State == forgotten
	case loop.FeedBudget, loop.FeedHold, loop.FeedAgent, loop.FeedSwitch:
	}
	return false
}

// forgotten is the state of a loop in the feed that is not listed any more.
const forgotten = "forgotten"

// begin takes up the cursor of the store. Where there is none it starts at the end of the
// feed: nobody wants to be told what happened before.
func (w *Watcher) begin(ctx context.Context) error {
	var saved loop.Cursor
	err := w.Store.View(ctx, func(r *store.Reader) (err error) {
		saved, err = r.NoticeCursor(ctx)
		return err
	})
	w.cursors.saved, w.cursors.read = saved, saved
	if errors.Is(err, loop.ErrNotFound) {
		return w.skip(ctx, func(ctx context.Context, tx *store.Tx, head loop.Cursor) (bool, error) {
			return tx.StartNoticeCursor(ctx, head)
		})
	}
	return err
}

// skip goes to the end of the feed, and reads instead all rows that may have a matter. Move
// reports false if another watcher has moved the cursor.
func (w *Watcher) skip(ctx context.Context, move func(context.Context, *store.Tx, loop.Cursor) (bool, error)) error {
	head, err := event.Feed{Store: w.Store}.Head(ctx)
	if err != nil {
		return err
	}
	var t told
	err = w.Store.View(ctx, func(r *store.Reader) (err error) {
		t, err = everything(ctx, r, w.Store.Now())
		return err
	})
	if err != nil {
		return err
	}
	return w.write(ctx, t, head, func(ctx context.Context, tx *store.Tx) (bool, error) { return move(ctx, tx, head) })
}

// tell writes what the entries give cause for. Without a cause it only notes now and then
// how far it has read.
func (w *Watcher) tell(ctx context.Context, entries []loop.FeedEntry, next loop.Cursor) error {
	var t told
	err := w.Store.View(ctx, func(r *store.Reader) (err error) {
		t, err = ofEntries(ctx, r, entries, w.Store.Now())
		return err
	})
	if err != nil {
		return err
	}
	w.cursors.read = next
	quiet, soon := len(t.raise)+len(t.over) == 0, next.Seq-w.cursors.saved.Seq < mostUnsaved
	if next == w.cursors.saved || quiet && soon && len(entries) > 0 {
		return nil
	}
	return w.write(ctx, t, next, func(ctx context.Context, tx *store.Tx) (bool, error) {
		return tx.MoveNoticeCursor(ctx, w.cursors.saved, next)
	})
}

// write writes notices and moves the cursor, in one transaction. If another watcher has
// moved it, nothing is written, and what that one has not told is read again.
func (w *Watcher) write(ctx context.Context, t told, to loop.Cursor, move func(context.Context, *store.Tx) (bool, error)) error {
	if err := beforeTell.Hit(ctx); err != nil {
		return err
	}
	moved := false
	err := w.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if moved, err = move(ctx, tx); err != nil || !moved {
			return err
		}
		for _, e := range t.over {
			if _, err := Over(ctx, tx, e.key, e.how); err != nil {
				return err
			}
		}
		for _, n := range t.raise {
			if _, err := Raise(ctx, tx, n); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = afterTell.Hit(ctx)
	}
	if err != nil {
		return err
	}
	if !moved {
		return w.begin(ctx)
	}
	w.cursors.saved, w.cursors.read = to, to
	return nil
}

// ofEntries says what the rows give cause for that the entries are about, without what is
// told already. A row is read once, however many entries are about it.
func ofEntries(ctx context.Context, r *store.Reader, entries []loop.FeedEntry, now time.Time) (t told, err error) {
	type row struct {
		kind loop.FeedKind
		id   string
	}
	seen := map[row]bool{}
	for _, e := range entries {
		if seen[row{e.Kind, e.ID}] {
			continue
		}
		seen[row{e.Kind, e.ID}] = true
		one, err := ofRow(ctx, r, e.Kind, e.ID, now)
		if err != nil {
			return t, err
		}
		t.add(one)
	}
	return withoutTold(ctx, r, t)
}

// withoutTold leaves out the matters that last already, and the ends of those that do not.
func withoutTold(ctx context.Context, r *store.Reader, t told) (told, error) {
	lasting, err := r.LastingKeys(ctx, t.keys())
	t.raise = slices.DeleteFunc(t.raise, func(n loop.Notice) bool { return lasting[n.Key] })
	t.over = slices.DeleteFunc(t.over, func(e ended) bool { return !lasting[e.key] })
	return t, err
}

// ofRow says what one row gives cause for. A row that is gone gives none.
func ofRow(ctx context.Context, r *store.Reader, kind loop.FeedKind, id string, now time.Time) (t told, err error) {
	switch kind {
	case loop.FeedApproval:
		var a loop.Approval
		if a, err = r.Approval(ctx, id); err == nil {
			t, err = ofAsked(ctx, r, a, now)
		}
	case loop.FeedRun:
		var run loop.Run
		if run, err = r.Run(ctx, id); err == nil {
			t, err = ofRunRow(ctx, r, run)
		}
	case loop.FeedLoop:
		for _, key := range []string{keyOfFailing(id), keyOfBudget(id), keyOfUnpushed(id), KeyOfLate(id)} {
			t.over = append(t.over, ended{key, "the loop was removed"})
		}
	case loop.FeedBudget, loop.FeedHold, loop.FeedAgent, loop.FeedSwitch:
	}
	if errors.Is(err, loop.ErrNotFound) {
		return told{}, nil
	}
	return t, err
}

func ofAsked(ctx context.Context, r *store.Reader, a loop.Approval, now time.Time) (told, error) {
	run, err := r.Run(ctx, a.RunID)
	if err != nil {
		return told{}, err
	}
	p, err := placeOfRun(ctx, r, run)
	return ofApproval(a, run, p, now), err
}

func ofRunRow(ctx context.Context, r *store.Reader, run loop.Run) (told, error) {
	p, err := placeOfRun(ctx, r, run)
	if err != nil {
		return told{}, err
	}
	newest, err := r.Ended(ctx, run.LoopID, 1)
	return ofRun(run, p, !p.loop.Forgotten && len(newest) == 1 && newest[0].ID == run.ID), err
}

func placeOfRun(ctx context.Context, r *store.Reader, run loop.Run) (place, error) {
	l, err := r.Loop(ctx, run.LoopID)
	if err != nil {
		return place{}, err
	}
	return placeOf(ctx, r, l, run.Node)
}

// placeOf finds where the workspace of a loop lies: on that node, if it does there.
func placeOf(ctx context.Context, r *store.Reader, l loop.Loop, node string) (place, error) {
	p := place{loop: l}
	places, err := r.Placements(ctx, l.WorkspaceID)
	for i, lies := range places {
		if i == 0 || lies.NodeID == node {
			p.root = lies.Path
		}
	}
	return p, err
}

// everything says what the approvals give cause for that are open, and what has become
// of the matters that last.
func everything(ctx context.Context, r *store.Reader, now time.Time) (t told, err error) {
	workspaces, err := r.WorkspaceIDs(ctx)
	if err != nil {
		return t, err
	}
	for _, id := range workspaces {
		open, err := r.Approvals(ctx, id, loop.ApprovalOpen)
		if err != nil {
			return t, err
		}
		for _, a := range open {
			one, err := ofAsked(ctx, r, a, now)
			if err != nil {
				return t, err
			}
			t.add(one)
		}
	}
	lasting, err := r.LastingNotices(ctx)
	if err != nil {
		return t, err
	}
	for _, n := range lasting {
		one, err := ofLasting(ctx, r, n, now)
		if err != nil {
			return t, err
		}
		t.add(one)
	}
	return withoutTold(ctx, r, t)
}

// ofLasting says what has become of the matter of a notice.
func ofLasting(ctx context.Context, r *store.Reader, n loop.Notice, now time.Time) (t told, err error) {
	switch n.Event {
	case loop.NoticeApproval:
		return ofRow(ctx, r, loop.FeedApproval, n.Key[len(keyOfApproval("")):], now)
	case loop.NoticeFailing, loop.NoticeBudget, loop.NoticeUnpushed:
		newest, err := r.Ended(ctx, n.LoopID, 1)
		if err != nil || len(newest) == 0 {
			return t, err
		}
		return ofRunRow(ctx, r, newest[0])
	case loop.NoticeWaiting, loop.NoticeEscalated, loop.NoticeGaveUp, loop.NoticeLate, loop.NoticeLanded, loop.NoticeProposed, loop.NoticeUngated, loop.NoticeTest:
	}
	return t, nil
}
