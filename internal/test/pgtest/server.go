package pgtest

import (
	"syscall"
	"testing"
)

// Server is the cluster of one test, which may stop and start it.
type Server struct {
	tb      testing.TB
	cluster *cluster
	down    bool
}

// NewServer starts a server that ends with the test.
func NewServer(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	c, err := startCluster(settings)
	if err != nil {
		tb.Fatalf("start PostgreSQL for this test: %v", err)
	}
	s := &Server{tb: tb, cluster: c}
	tb.Cleanup(func() {
		if err := c.stopServer(); err != nil {
			tb.Errorf("stop PostgreSQL: %v", err)
		}
	})
	return s
}

// URL returns the address of a new and empty database.
func (s *Server) URL() string {
	s.tb.Helper()
	s.tb.Cleanup(func() {
		if s.down {
			s.Start()
		}
	})
	return s.cluster.newDatabase(s.tb, maintenance)
}

// Stop ends the server like `pg_ctl stop -m immediate`, and returns when it has ended. The
// next start recovers what was committed.
func (s *Server) Stop() {
	if err := s.cluster.server.Signal(syscall.SIGQUIT); err != nil {
		s.tb.Errorf("stop PostgreSQL: %v", err)
	}
	for range s.cluster.exited {
	}
	s.down = true
}

// Start starts the server again, and returns when it answers.
func (s *Server) Start() {
	s.down = false
	if err := s.cluster.startServer(s.tb.Context()); err != nil {
		s.tb.Errorf("start PostgreSQL again: %v", err)
	}
}

// Drop removes a database, even if it has connections.
func (s *Server) Drop(url string) {
	s.tb.Helper()
	if err := s.cluster.execAdmin(s.tb.Context(), "DROP DATABASE "+databaseName(url)+" WITH (FORCE)"); err != nil {
		s.tb.Errorf("drop %s: %v", url, err)
	}
}
