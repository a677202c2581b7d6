package daemon

import (
	"context"
	"sync"

	"github.com/pawl-run/pawl/internal/loop"
)

// requests is work for which callers wait. The zero requests takes work.
type requests struct {
	mu     sync.Mutex
	all    sync.WaitGroup
	cancel map[int]context.CancelFunc // of the work under way, by its number
	last   int                        // number
	ending bool                       // no more is taken
}

// do carries out work, until ctx ends or interrupt is called.
func (r *requests) do(ctx context.Context, work func(context.Context) error) error {
	r.mu.Lock()
	if r.ending {
		r.mu.Unlock()
		return &loop.Fault{
			Exit: loop.ExitHeld, What: "the daemon is ending", Why: "it takes no more work", Fix: "try again when it has ended: {1} tells", Actions: []loop.Command{loop.PawlCommand("down")},
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.cancel == nil {
		r.cancel = map[int]context.CancelFunc{}
	}
	r.all.Add(1)
	defer r.all.Done()
	r.last++
	n := r.last
	r.cancel[n] = cancel
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.cancel, n)
	}()
	return work(ctx)
}

// refuse takes no more work.
func (r *requests) refuse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending = true
}

// refused reports whether refuse was called.
func (r *requests) refused() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ending
}

// count returns how much work is under way.
func (r *requests) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.cancel)
}

// interrupt ends the work that is under way.
func (r *requests) interrupt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cancel := range r.cancel {
		cancel()
	}
}

// wait waits until no work is under way. Call refuse before.
func (r *requests) wait() { r.all.Wait() }
