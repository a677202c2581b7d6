package event_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/record/event"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func open(t *testing.T, file string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Database: file, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func hold(t *testing.T, s *store.Store, subject string) {
	t.Helper()
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		return tx.SetHold(t.Context(), loop.Hold{Subject: subject, Reason: "limited"})
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAFollowerIsToldWhatAnotherConnectionChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.db")
	feed, other := event.Feed{Store: open(t, file), Gap: time.Millisecond}, open(t, file)
	hold(t, other, "before")
	after, err := feed.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		hold(t, other, "one")
		hold(t, other, "two")
		hold(t, other, "three")
	}()
	var got []string
	notOne := func(e loop.FeedEntry) bool { return e.ID != "one" }
	for len(got) < 2 {
		entries, next, err := feed.Next(t.Context(), after, time.Minute, notOne)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			got = append(got, e.ID)
		}
		after = next
	}
	if !slices.Equal(got, []string{"two", "three"}) {
		t.Errorf("the feed says %q", got)
	}
	if head, err := feed.Head(t.Context()); err != nil || head != after {
		t.Errorf("the head is %v: %v, and everything up to %v was read", head, err, after)
	}
	<-done
}

func TestAFollowerWaitsNoLongerThanItWasTold(t *testing.T) {
	feed := event.Feed{Store: open(t, filepath.Join(t.TempDir(), "p.db")), Gap: time.Hour}
	if entries, _, err := feed.Next(t.Context(), loop.Cursor{}, time.Millisecond, nil); err != nil || len(entries) != 0 {
		t.Errorf("nothing happens: %v, %v", entries, err)
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Millisecond, func() { cancel(enough) })
	if entries, _, err := feed.Next(ctx, loop.Cursor{}, time.Hour, nil); !errors.Is(err, enough) || len(entries) != 0 {
		t.Errorf("a follower that was told to stop: %v, %v", entries, err)
	}
}
