package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// watchGap is between two looks whether the store's feed has moved: a resource has at most one
// note for each.
const watchGap = time.Second

// mostWatched bounds the addresses that are looked at.
const mostWatched = 1000

// watch knows what clients have subscribed to.
type watch struct {
	mu   sync.Mutex
	seen map[string][sha256.Size]byte // by address: digest of what was read last
	stop context.CancelFunc           // nil: nobody looks
}

// end stops looking.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop != nil {
		w.stop()
	}
}

// subscribe begins to look at a resource.
func (s *Server) subscribe(ctx context.Context, r *sdk.SubscribeRequest) error {
	now, err := s.digest(ctx, r.Params.URI)
	if err != nil {
		return s.protocolError(r.Params.URI, err)
	}
	w := &s.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil {
		w.seen = map[string][sha256.Size]byte{}
	}
	if _, there := w.seen[r.Params.URI]; !there {
		if len(w.seen) == mostWatched {
			return fmt.Errorf("subscribe to %s: there are subscriptions to %d resources already: end sessions that are not needed", r.Params.URI, mostWatched)
		}
		w.seen[r.Params.URI] = now
	}
	if w.stop == nil {
		looking, stop := context.WithCancel(context.WithoutCancel(ctx))
		if w.stop = stop; !s.jobs.begin(func(ctx context.Context) {
			defer context.AfterFunc(ctx, stop)()
			s.look(looking)
		}) {
			stop()
		}
	}
	return nil
}

// unsubscribe keeps looking: other clients may want to know. What nobody wants is forgotten with
// the last session.
func (s *Server) unsubscribe(context.Context, *sdk.UnsubscribeRequest) error { return nil }

// digest is that of a resource as it is now.
func (s *Server) digest(ctx context.Context, uri string) (sum [sha256.Size]byte, err error) {
	out, err := s.find(ctx, uri)
	if err != nil {
		return sum, err
	}
	body, err := json.Marshal(out)
	return sha256.Sum256(body), err
}

// look tells subscribers of resources that have changed, until ctx ends or no session is left.
func (s *Server) look(ctx context.Context) {
	w := &s.watch
	var head loop.Cursor
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchGap):
		}
		sessions := 0
		for range s.server.Sessions() {
			sessions++
		}
		w.mu.Lock()
		if sessions == 0 {
			w.seen, w.stop = nil, nil
			w.mu.Unlock()
			return
		}
		var uris []string
		for uri := range w.seen {
			uris = append(uris, uri)
		}
		w.mu.Unlock()
		of, err := s.locate(uris[0]) // The feed is that of the whole store.
		if err != nil {
			continue // It was located when it was subscribed to.
		}
		place, err := api.FindFeedHead.Call(ctx, s.openIn(of.dir), verb.None{})
		if err == nil && place.Cursor == head {
			continue
		}
		head = place.Cursor
		for _, uri := range uris {
			now, err := s.digest(ctx, uri)
			w.mu.Lock()
			changed := err == nil && w.seen[uri] != now
			if changed {
				w.seen[uri] = now
			}
			w.mu.Unlock()
			if changed {
				_ = s.server.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri}) // Who is gone is not told.
			}
		}
	}
}
