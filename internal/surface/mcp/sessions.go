package mcp

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// headerSession is the header with the id of a session.
const headerSession = "Mcp-Session-Id"

// The bounds of those who come over HTTP.
const (
	mostSessions = 256              // of one token; more end the one that was not used for longest
	mostGuesses  = 10               // wrong tokens of one address that are answered in guessTime
	guessTime    = 10 * time.Second // after which they are counted anew
	mostGuessers = 1000             // addresses that are counted
)

// sessions bounds the sessions of a server over HTTP.
type sessions struct {
	of *Server

	mu   sync.Mutex
	uses int
	used map[string]*use // by id
}

// use is how a session is used.
type use struct {
	last int  // the larger, the later
	open int  // requests under way
	ends bool // it is being closed
}

// serve passes a request on, and ends a session if it begins one too many.
func (s *sessions) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	id := r.Header.Get(headerSession)
	switch {
	case id != "":
		defer s.enter(id)()
	case r.Method == http.MethodPost && !s.makeRoom():
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many sessions are in use", http.StatusTooManyRequests)
		return
	}
	next.ServeHTTP(w, r)
	if began := w.Header().Get(headerSession); id == "" && began != "" {
		s.enter(began)()
	}
}

// enter notes that a session is used until leave is called.
func (s *sessions) enter(id string) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.used[id]
	if u == nil { // It has begun, or it is an id that somebody made up.
		u = &use{}
		if s.isLive(id) {
			s.used[id] = u
		}
	}
	s.uses++
	u.last, u.open = s.uses, u.open+1
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		u.open--
	}
}

func (s *sessions) isLive(id string) bool {
	for live := range s.of.server.Sessions() {
		if live.ID() == id {
			return true
		}
	}
	return false
}

// makeRoom ends the session that was not used for longest if there are as many as there may be.
// It reports false if all of them are being used.
func (s *sessions) makeRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := map[string]*use{}
	n := 0
	var oldest *sdk.ServerSession
	var least int
	for session := range s.of.server.Sessions() {
		u := s.used[session.ID()]
		if u == nil { // It begins just now.
			u = &use{last: s.uses}
		}
		live[session.ID()] = u
		if u.ends {
			continue
		}
		n++
		if u.open == 0 && (oldest == nil || u.last < least) {
			oldest, least = session, u.last
		}
	}
	s.used = live
	if n < mostSessions {
		return true
	}
	if oldest == nil {
		return false
	}
	live[oldest.ID()].ends = true
	// Closing waits for the calls of the session whose clients have gone.
	return s.of.jobs.begin(func(context.Context) { _ = oldest.Close() })
}

// guesses bounds how often wrong tokens are answered. The right token is never held up.
type guesses struct {
	mu     sync.Mutex
	began  time.Time
	recent map[string]int // by address
}

// allow reports whether one more wrong token of an address is answered.
func (g *guesses) allow(remote string, now time.Time) bool {
	host, _, _ := net.SplitHostPort(remote)
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.Sub(g.began) >= guessTime || now.Before(g.began) {
		g.began, g.recent = now, map[string]int{}
	}
	if g.recent[host] == 0 && len(g.recent) == mostGuessers {
		return false
	}
	g.recent[host]++
	return g.recent[host] <= mostGuesses
}
