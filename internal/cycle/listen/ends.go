package listen

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/record/event"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const (
	feedLag   = time.Minute     // how long what was read of the feed is not noted if it was no event
	feedPause = 5 * time.Second // after an error
)

// followEnds records the ends of runs that fire other loops, and wakes the trigger when a
// run has ended or a switch was changed: events may wait for that.
func (n *Listener) followEnds(ctx context.Context) {
	f := &follower{Listener: n}
	for ctx.Err() == nil {
		err := f.step(ctx)
		if err == nil {
			continue
		}
		n.logError(ctx, "follow the feed", err)
		f.begun = false
		select {
		case <-ctx.Done():
		case <-time.After(feedPause):
		}
	}
}

// follower reads the feed.
type follower struct {
	*Listener

	begun       bool
	read, saved loop.Cursor
	savedAt     time.Time
}

func (f *follower) step(ctx context.Context) error {
	feed := event.Feed{Store: f.Store, Pulse: f.Pulse}
	if !f.begun {
		if err := f.begin(ctx, feed); err != nil {
			return err
		}
	}
	entries, next, err := feed.Next(ctx, f.read, feedLag, isEnd)
	if errors.Is(err, store.ErrFeedPruned) {
		f.logError(ctx, "follow the feed", fmt.Errorf("%w; runs that ended before now fire no loop", err))
		next, err = feed.Head(ctx)
		entries = nil
	}
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		f.Wake()
	}
	return f.recordEnds(ctx, entries, next)
}

// isEnd reports whether an entry may be the end of a run, or of what an event waits for.
func isEnd(e loop.FeedEntry) bool {
	switch e.Kind {
	case loop.FeedRun:
		return e.State != string(loop.RunQueued) && e.State != string(loop.RunRunning)
	case loop.FeedSwitch:
		return true
	case loop.FeedLoop:
		return e.State != ""
	case loop.FeedApproval, loop.FeedBudget, loop.FeedHold, loop.FeedAgent:
	}
	return false
}

// begin goes on where this node stopped, or at the end of the feed if it never read it.
func (f *follower) begin(ctx context.Context, feed event.Feed) error {
	known := false
	err := f.Store.View(ctx, func(r *store.Reader) (err error) {
		f.read, known, err = r.EventCursor(ctx, f.Node)
		return err
	})
	f.saved, f.savedAt = f.read, f.Now()
	if err == nil && !known {
		f.read, err = feed.Head(ctx)
	}
	f.begun = err == nil
	return err
}

// ended is a loop that the end of a run fires.
type ended struct {
	listening

	run  loop.Run
	name string // of the loop whose run it was
}

// recordEnds records the ends of runs among the entries that fire a loop, together with how
// far the feed was read.
func (f *follower) recordEnds(ctx context.Context, entries []loop.FeedEntry, next loop.Cursor) error {
	var list []ended
	if on := f.listens(loop.OnLoop); len(on) > 0 {
		err := f.Store.View(ctx, func(r *store.Reader) (err error) {
			list, err = endsThatFire(ctx, r, entries, on)
			return err
		})
		if err != nil {
			return err
		}
	}
	f.read = next
	if f.read == f.saved || len(list) == 0 && f.Now().Sub(f.savedAt) < feedLag {
		return nil
	}
	if err := beforeRecord.Hit(ctx); err != nil {
		return err
	}
	err := f.Store.Update(ctx, func(tx *store.Tx) error {
		for _, e := range list {
			said := fmt.Sprintf("%s#%d %s", e.name, e.run.N, e.run.Outcome)
			if e.run.Detail != "" {
				said += ": " + e.run.Detail
			}
			_, err := tx.AddEvent(ctx, loop.FiringEvent{LoopID: e.ID, ID: e.run.ID, Source: e.on.String(), Payload: f.bound(said)}, nil)
			if err != nil {
				return err
			}
		}
		return tx.SaveEventCursor(ctx, f.Node, f.read)
	})
	if err != nil {
		return err
	}
	f.saved, f.savedAt = f.read, f.Now()
	if len(list) > 0 {
		f.Wake()
	}
	return afterRecord.Hit(ctx)
}

func endsThatFire(ctx context.Context, r *store.Reader, entries []loop.FeedEntry, on []listening) (list []ended, err error) {
	for _, e := range entries {
		if e.Kind != loop.FeedRun {
			continue
		}
		var l loop.Loop
		var run loop.Run
		for _, s := range on {
			if string(s.on.Outcome) != e.State {
				continue
			}
			if run.ID == "" {
				if l, err = r.Loop(ctx, e.LoopID); err != nil {
					return nil, err
				}
				if run, err = r.Run(ctx, e.ID); err != nil {
					return nil, err
				}
			}
			if run.State == loop.RunEnded && run.Outcome == s.on.Outcome && l.WorkspaceID == s.WorkspaceID && l.Name == s.on.What {
				list = append(list, ended{s, run, l.Name})
			}
		}
	}
	return list, nil
}
