// Package event follows the feed of a store: what changed, in the order of the
// commits, in whatever process.
//
// It never writes the feed, which the transactions of package store do, and never
// says what the rows contain now: its users read them again.
package event

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Viewer reads one consistent view of a store.
type Viewer interface {
	View(ctx context.Context, fn func(*store.Reader) error) error
}

// Feed follows the feed of one store. Its methods may be called concurrently.
type Feed struct {
	Store Viewer
	Gap   time.Duration // between reads while nothing happens; 0 means 100 ms
	Pulse *Pulse        // says when to read again, instead of Gap; nil: nobody does
}

// maxEntries is how many entries are read at a time. A reader that does not read holds as
// many in memory.
const maxEntries = 100

// Head returns the cursor of the newest entry. Changes that are read after Head
// and before the first Next may be reported once more, but are never missed.
func (f Feed) Head(ctx context.Context) (c loop.Cursor, err error) {
	err = f.Store.View(ctx, func(r *store.Reader) error {
		c, err = r.FeedHead(ctx)
		return err
	})
	return c, err
}

// Next returns the entries after a cursor that wanted selects, oldest first, and
// the cursor of the last entry that it has read. If there are none, it waits for
// the first, at most for patience; then it returns none. A nil wanted selects
// all. If the cursor's entry was pruned, the error is store.ErrFeedPruned.
func (f Feed) Next(ctx context.Context, after loop.Cursor, patience time.Duration, wanted func(loop.FeedEntry) bool) ([]loop.FeedEntry, loop.Cursor, error) {
	enough := time.NewTimer(patience)
	defer enough.Stop()
	var again <-chan time.Time
	var moved <-chan struct{}
	if f.Pulse == nil {
		ticker := time.NewTicker(cmp.Or(f.Gap, 100*time.Millisecond))
		defer ticker.Stop()
		again = ticker.C
	}
	for {
		if f.Pulse != nil {
			moved = f.Pulse.next() // Before reading, so that no entry is missed.
		}
		var entries []loop.FeedEntry
		err := f.Store.View(ctx, func(r *store.Reader) (err error) {
			entries, err = r.Feed(ctx, after, maxEntries)
			return err
		})
		if ctx.Err() != nil {
			return nil, after, context.Cause(ctx)
		}
		if err != nil {
			return nil, after, err
		}
		read := len(entries)
		if read > 0 {
			after = entries[read-1].Cursor
		}
		if wanted != nil {
			entries = slices.DeleteFunc(entries, func(e loop.FeedEntry) bool { return !wanted(e) })
		}
		if len(entries) > 0 {
			return entries, after, nil
		}
		if read == maxEntries {
			continue
		}
		select {
		case <-ctx.Done():
			return nil, after, context.Cause(ctx)
		case <-enough.C:
			return nil, after, nil
		case <-again:
		case <-moved:
		}
	}
}
