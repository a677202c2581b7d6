package object

import (
	"bufio"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/git/program"
)

// session is a process that answers questions about objects, and owes none an
// answer.
type session struct {
	*program.Session
	out    *bufio.Reader
	cancel context.CancelCauseFunc
}

// startSession starts the process. It outlives ctx, whose values it has.
func (s Store) startSession(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	p, err := s.git.Start(ctx, "cat-file", "--batch-command", "--buffer")
	if err != nil {
		cancel(err)
		return nil, err
	}
	return &session{Session: p, out: bufio.NewReaderSize(p.Out, 64<<10), cancel: cancel}, nil
}

// endSession closes both pipes and waits for the process, which is killed if it does
// not end by that. Then the machine is busy, which is not an error: it owes no answer.
func (s *session) endSession() error {
	late := time.AfterFunc(time.Second, func() { s.cancel(errClosed) })
	defer late.Stop()
	defer s.cancel(errClosed)
	err := errors.Join(s.In.Close(), s.Out.Close())
	if ended := <-s.Ended; !errors.Is(ended, errClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// sessionCache keeps the process of a held Store while nobody uses it, one at most. A
// nil sessionCache keeps none.
type sessionCache struct {
	mu     sync.Mutex
	idle   *session
	closed bool
}

// take returns the process that is kept, or nil. One that died meanwhile is no
// longer kept.
func (s *sessionCache) take() *session {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.idle
	s.idle = nil
	if kept != nil && len(kept.Ended) > 0 {
		_ = kept.endSession()
		return nil
	}
	return kept
}

// put keeps a process, unless there is one already.
func (s *sessionCache) put(p *session) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.idle != nil {
		return false
	}
	s.idle = p
	return true
}

// clear ends the process that is kept, and keeps none any more if it is the
// last time. How it ends means nothing: all that was asked has been answered.
func (s *sessionCache) clear(last bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = s.closed || last
	kept := s.idle
	s.idle = nil
	if kept != nil {
		_ = kept.endSession()
	}
}
