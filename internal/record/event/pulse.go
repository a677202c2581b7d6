package event

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Header reads the cursor of the newest entry of a feed.
type Header interface {
	FeedHead(ctx context.Context) (loop.Cursor, error)
}

// Pulse looks whether a feed has moved, for all that follow it in one process: while nothing
// happens they cost together what one costs. Make it with NewPulse; without Run it wakes
// nobody.
type Pulse struct {
	of  Header
	gap time.Duration

	mu    sync.Mutex
	moved chan struct{} // closed when the feed has moved
}

// NewPulse returns a pulse that looks at a feed once in each gap.
func NewPulse(of Header, gap time.Duration) *Pulse {
	return &Pulse{of: of, gap: gap, moved: make(chan struct{})}
}

// Run looks until ctx ends, and returns its cause. If the store does not answer, it wakes
// all followers, who see the same when they read.
func (p *Pulse) Run(ctx context.Context) error {
	again := time.NewTicker(p.gap)
	defer again.Stop()
	for last := (loop.Cursor{}); ; {
		head, err := p.of.FeedHead(ctx)
		if err != nil || head != last {
			last = head
			p.wake()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-again.C:
		}
	}
}

func (p *Pulse) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.moved)
	p.moved = make(chan struct{})
}

// next is closed when the feed has moved from now on, or may have moved a little before.
func (p *Pulse) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.moved
}
