package daemon

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// requests is work for which callers wait. The zero requests takes work.
type requests struct {
	mu     sync.Mutex
	under  map[int]request // work under way, by its number
	long   int             // how much of that is not brief
	last   int             // number
	ending bool            // no more is taken
}

type request struct {
	cancel context.CancelFunc
	ended  chan struct{}
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
	if r.under == nil {
		r.under = map[int]request{}
	}
	r.last++
	n, ended := r.last, make(chan struct{})
	r.under[n] = request{cancel, ended}
	if !brief {
		r.long++
	}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.under, n)
		close(ended)
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
	for _, one := range r.under {
		one.cancel()
	}
}

// wait waits until all work has ended that is under way.
func (r *requests) wait() {
	r.mu.Lock()
	list := slices.Collect(maps.Values(r.under))
	r.mu.Unlock()
	for _, one := range list {
		<-one.ended
	}
}
