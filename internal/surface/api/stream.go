package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/record/event"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// stream is a response of server-sent events. Its methods may be called concurrently.
// Nobody waits for a reader that does not read: the server's writer gives it up after a while.
type stream struct {
	mu      sync.Mutex
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
	done    chan struct{}
	ends    sync.Once
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	s := &stream{w: w, control: http.NewResponseController(w), done: make(chan struct{})}
	s.write([]byte(": pawl\n\n"))
	go func() {
		alive := time.NewTicker(aliveGap)
		defer alive.Stop()
		for {
			select {
			case <-s.done:
				return
			case <-alive.C:
				s.write([]byte(": alive\n\n"))
			}
		}
	}()
	return s
}

// send sends one event. Afterwards err says whether it was sent.
func (s *stream) send(id, name string, data any) {
	body, err := json.Marshal(data)
	if err != nil {
		panic("api: an event does not marshal: " + err.Error()) // All results do, as a test shows.
	}
	var b bytes.Buffer
	if id != "" {
		fmt.Fprintf(&b, "id: %s\n", id)
	}
	fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, body)
	s.write(b.Bytes())
}

func (s *stream) write(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done:
		return
	default:
	}
	if s.err != nil {
		return
	}
	if _, s.err = s.w.Write(b); s.err == nil {
		s.err = s.control.Flush()
	}
}

// close ends the stream before its handler returns.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends.Do(func() { close(s.done) })
}

func (s *stream) broken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// serveEvents sends the store's feed from the entry after Last-Event-ID, or the parameter
// after, or from now on. The id of an event is its cursor. A reader that was away for so
// long that entries were pruned gets the event resync, with the newest cursor, and reads
// everything anew.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	ctx, q := r.Context(), r.URL.Query()
	after, err := s.firstPlace(ctx, cmp.Or(r.Header.Get("Last-Event-ID"), q.Get("after")))
	if err != nil {
		s.fail(w, err, nil)
		return
	}
	for _, kind := range q["kind"] {
		if !slices.Contains(loop.FeedKinds, loop.FeedKind(kind)) {
			s.fail(w, &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("invalid kind %q of a change", kind), Fix: fmt.Sprintf("write one of %q", loop.FeedKinds)}, nil)
			return
		}
	}
	wanted := func(e loop.FeedEntry) bool { return len(q["kind"]) == 0 || slices.Contains(q["kind"], string(e.Kind)) }
	out := newStream(w)
	defer out.close()
	leave := s.tails.enter(ctx)
	defer leave()
	for ctx.Err() == nil && out.broken() == nil {
		moved := s.tails.moved() // Before the look: what comes meanwhile is not missed.
		entries, next, err := s.Feed.Next(ctx, after, 0, nil)
		if errors.Is(err, store.ErrFeedPruned) {
			if after, err = s.Feed.Head(ctx); err == nil {
				out.send(after.String(), "resync", FeedPlace{after})
				continue
			}
		}
		if err != nil {
			out.send("", EventProblem, verb.ProblemOf(err))
			return
		}
		after = next
		for _, e := range entries {
			if wanted(e) {
				out.send(e.Cursor.String(), string(e.Kind), e)
			}
		}
		if len(entries) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
		case <-moved:
		}
	}
}

// Followers returns how many follow the feed.
func (s *Server) Followers() int {
	s.tails.mu.Lock()
	defer s.tails.mu.Unlock()
	return s.tails.readers
}

// firstPlace is the place in the feed after which a reader begins: the newest if it names
// none.
func (s *Server) firstPlace(ctx context.Context, named string) (place loop.Cursor, err error) {
	if named == "" {
		return s.Feed.Head(ctx)
	}
	if err := place.UnmarshalText([]byte(named)); err != nil {
		return place, &loop.Fault{Exit: loop.ExitUsage, What: "invalid place in the feed", Why: err.Error(), Fix: "leave it out to begin with what happens from now on"}
	}
	return place, nil
}

// tails wakes those who follow the feed: however many they are, one looks whether it has
// moved.
type tails struct {
	feed event.Feed

	mu      sync.Mutex
	readers int
	stop    context.CancelFunc
	wake    chan struct{} // closed when the feed has moved
}

// enter makes sure that somebody looks, until leave is called.
func (t *tails) enter(ctx context.Context) (leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.readers++; t.readers == 1 {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		t.stop, t.wake = cancel, make(chan struct{})
		go t.look(ctx)
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.readers--; t.readers == 0 {
			t.stop()
		}
	}
}

func (t *tails) moved() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wake
}

func (t *tails) look(ctx context.Context) {
	after, err := t.feed.Head(ctx)
	for ctx.Err() == nil {
		if err != nil { // The readers see for themselves; they are woken to do so.
			after = loop.Cursor{}
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
		}
		t.mu.Lock()
		close(t.wake)
		t.wake = make(chan struct{})
		t.mu.Unlock()
		if err != nil {
			after, err = t.feed.Head(ctx)
			continue
		}
		_, after, err = t.feed.Next(ctx, after, time.Minute, nil)
	}
}
