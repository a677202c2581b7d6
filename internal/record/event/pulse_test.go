package event_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/record/event"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestAllFollowersOfAPulseAreToldWhatAnotherConnectionChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.db")
	mine, other := open(t, file), open(t, file)
	hold(t, other, "before")
	pulse := event.NewPulse(mine, time.Millisecond)
	go func() { _ = pulse.Run(t.Context()) }()
	const followers = 3
	ready, got := make(chan error, followers), make(chan []string, followers)
	for range followers {
		go func() {
			feed := event.Feed{Store: mine, Gap: time.Nanosecond, Pulse: pulse}
			after, err := feed.Head(t.Context())
			ready <- err
			var ids []string
			for len(ids) < 3 && err == nil {
				var entries []loop.FeedEntry
				entries, after, err = feed.Next(t.Context(), after, time.Minute, nil)
				for _, e := range entries {
					ids = append(ids, e.ID)
				}
			}
			got <- ids
		}()
	}
	for range followers {
		if err := <-ready; err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"one", "two", "three"} {
		hold(t, other, id)
	}
	for range followers {
		if ids := <-got; !slices.Equal(ids, []string{"one", "two", "three"}) {
			t.Errorf("a follower read %q", ids)
		}
	}
}

// counted is a feed without entries that counts how often it is read.
type counted struct {
	err          error
	reads, heads int
}

func (c *counted) View(context.Context, func(*store.Reader) error) error {
	c.reads++
	return c.err
}

func (c *counted) FeedHead(context.Context) (loop.Cursor, error) {
	c.heads++
	return loop.Cursor{}, c.err
}

func TestAPulseLooksForItsFollowersWhileNothingHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		c := &counted{}
		pulse := event.NewPulse(c, time.Second)
		done := make(chan error)
		go func() { done <- pulse.Run(ctx) }()
		if _, _, err := (event.Feed{Store: c, Pulse: pulse}).Next(ctx, loop.Cursor{}, time.Minute+time.Millisecond, nil); err != nil {
			t.Fatal(err)
		}
		if c.heads != 61 || c.reads != 1 {
			t.Errorf("in a minute the pulse has looked %d times and its follower %d times", c.heads, c.reads)
		}
		over := errors.New("over")
		cancel(over)
		if err := <-done; !errors.Is(err, over) {
			t.Errorf("the pulse ended with %v", err)
		}
	})
}

func TestAFollowerOfAPulseSeesThatTheStoreDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{}
		pulse := event.NewPulse(c, time.Second)
		go func() { _ = pulse.Run(t.Context()) }()
		time.AfterFunc(5*time.Second+time.Millisecond, func() { c.err = errors.New("gone") })
		start := time.Now()
		_, _, err := event.Feed{Store: c, Pulse: pulse}.Next(t.Context(), loop.Cursor{}, time.Hour, nil)
		if took := time.Since(start); !errors.Is(err, c.err) || took != 6*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

func TestAFollowerReadsOnWhenThereWasMoreThanItReadsAtATime(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "p.db"))
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		var all []error
		for i := range 250 {
			all = append(all, tx.SetHold(t.Context(), loop.Hold{Subject: fmt.Sprint(i), Reason: "limited"}))
		}
		return errors.Join(all...)
	})
	if err != nil {
		t.Fatal(err)
	}
	feed := event.Feed{Store: s, Pulse: event.NewPulse(s, time.Hour)}
	last := func(e loop.FeedEntry) bool { return e.ID == "249" }
	if entries, _, err := feed.Next(t.Context(), loop.Cursor{}, time.Hour, last); err != nil || len(entries) != 1 {
		t.Errorf("a follower read %v, %v", entries, err)
	}
}
