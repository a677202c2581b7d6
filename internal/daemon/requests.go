package daemon

import (
	"context"
	"sync"

	"github.com/pawl-run/pawl/internal/loop"
)

// requests is work for which callers wait. The zero requests takes work.
type requests struct {
	mu     sync.Mutex
	all    sync.WaitGroup             // but for what began after refuse
	cancel map[int]context.CancelFunc // of the work under way, by its number
	long   int                        // how much of that is not brief
	last   int                        // number
	ending bool                       // no more is taken
}

// do carries out work, until ctx ends or interrupt is called. After refuse it does so only
// with work that is brief.
func (r *requests) do(ctx context.Context, brief bool, work func(context.Context) error) error {
	r.mu.Lock()
	if r.ending && !brief {
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
	if !r.ending { // Who waits may be through already.
		r.all.Add(1)
		defer r.all.Done()
	}
	r.last++
	n := r.last
	r.cancel[n] = cancel
	if !brief {
		r.long++
	}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.cancel, n)
		if !brief {
			r.long--
		}
	}()
	return work(ctx)
}

// refuse takes no more work that is not brief.
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

// count returns how much work is under way that is not brief.
func (r *requests) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.long
}

// interrupt ends the work that is under way.
func (r *requests) interrupt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cancel := range r.cancel {
		cancel()
	}
}

// wait waits until all work has ended that began before refuse, which was called.
func (r *requests) wait() { r.all.Wait() }
