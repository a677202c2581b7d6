package pgtest

import (
	"syscall"
	"testing"
)

// Server is a cluster of one test alone, which may be stopped in its midst.
type Server struct {
	tb      testing.TB
	cluster *cluster
	down    bool
}

// NewServer starts a server that ends with the test.
func NewServer(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	c, err := start(settings)
	if err != nil {
		tb.Fatalf("start PostgreSQL for this test: %v", err)
	}
	s := &Server{tb: tb, cluster: c}
	tb.Cleanup(func() {
		if err := c.stop(); err != nil {
			tb.Errorf("stop PostgreSQL: %v", err)
		}
	})
	return s
}

// URL is the address of a new and empty database.
func (s *Server) URL() string {
	s.tb.Helper()
	s.tb.Cleanup(func() {
		if s.down {
			s.Start()
		}
	})
	return s.cluster.fresh(s.tb, maintenance)
}

// Stop ends the server as `pg_ctl stop -m immediate` does, and returns when it is
// gone. What was committed is recovered by the next start.
func (s *Server) Stop() {
	if err := s.cluster.server.Signal(syscall.SIGQUIT); err != nil {
		s.tb.Errorf("stop PostgreSQL: %v", err)
	}
	for range s.cluster.exited {
	}
	s.down = true
}

// Start starts it again, and returns when it answers.
func (s *Server) Start() {
	s.down = false
	if err := s.cluster.serve(s.tb.Context()); err != nil {
		s.tb.Errorf("start PostgreSQL again: %v", err)
	}
}

// Drop removes a database whoever is connected to it.
func (s *Server) Drop(url string) {
	s.tb.Helper()
	if err := s.cluster.admin(s.tb.Context(), "DROP DATABASE "+nameIn(url)+" WITH (FORCE)"); err != nil {
		s.tb.Errorf("drop %s: %v", url, err)
	}
}
