package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/proc"
)

// session is a process that answers questions about objects, and owes none an
// answer.
type session struct {
	in     *os.File
	out    *bufio.Reader
	outEnd *os.File
	ended  chan error // carries the end of the process, once
	cancel context.CancelCauseFunc
}

// startSession starts the process. It outlives ctx, whose values it has.
func (r *Repo) startSession(ctx context.Context) (*session, error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start git cat-file: %w", err)
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start git cat-file: %w", err), childIn.Close(), in.Close())
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s := &session{in: in, out: bufio.NewReaderSize(out, 64<<10), outEnd: out, ended: make(chan error, 1), cancel: cancel}
	go func() {
		stderr := &bounded{limit: maxStderr}
		res, err := r.run.Run(ctx, proc.Spec{
			Argv: append(append([]string{"git"}, overrides...), "cat-file", "--batch-command", "--buffer"),
			Dir:  r.GitDir, Env: r.once,
			Stdin: childIn, Stdout: childOut, Stderr: stderr,
			Grace: time.Second,
		})
		err = ending(ctx, "cat-file", res, err, stderr.String())
		// These ends were the child's. Closing them tells the other side.
		s.ended <- errors.Join(err, childIn.Close(), childOut.Close())
	}()
	return s, nil
}

// end closes both pipes and waits for the process, which is killed if it does
// not end by that.
func (s *session) end() error {
	late := time.AfterFunc(time.Second, func() { s.cancel(errClosed) })
	defer late.Stop()
	defer s.cancel(errClosed)
	return errors.Join(s.in.Close(), s.outEnd.Close(), <-s.ended)
}

// shelf keeps the process of a held Repo while nobody uses it, one at most. A
// nil shelf keeps none.
type shelf struct {
	mu     sync.Mutex
	idle   *session
	closed bool
}

// take returns the process that is kept, or nil. One that died meanwhile is no
// longer kept.
func (s *shelf) take() *session {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.idle
	s.idle = nil
	if kept != nil && len(kept.ended) > 0 {
		_ = kept.end()
		return nil
	}
	return kept
}

// put keeps a process, unless there is one already.
func (s *shelf) put(p *session) bool {
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
func (s *shelf) clear(last bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = s.closed || last
	kept := s.idle
	s.idle = nil
	if kept != nil {
		_ = kept.end()
	}
}

// Hold returns the same repository for somebody who reads from it several times
// in a row: the process behind Blobs lives on after each use and serves the
// next one. Release ends it, waits for that, and must be called; afterwards
// each use starts its own again.
func (r *Repo) Hold() (held *Repo, release func()) {
	h := *r
	h.shelf = &shelf{}
	return &h, func() { h.shelf.clear(true) }
}

// Rest ends the process that a held repository keeps, and waits for that. It is
// for the time in which nobody will read; the next use starts another one.
func (r *Repo) Rest() { r.shelf.clear(false) }
