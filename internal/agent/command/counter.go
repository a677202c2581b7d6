package command

import (
	"errors"
	"sync"

	"github.com/pawl-run/pawl/internal/agent"
)

// errSpent ends the copying of what a program prints that may use nothing more.
var errSpent = errors.New("nothing more may be used")

// counter counts the bytes that a program prints, until it may use nothing more.
type counter struct {
	r     agent.Request
	mu    sync.Mutex
	bytes int64
	spent bool
}

// Write counts.
func (c *counter) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spent {
		return 0, errSpent
	}
	c.bytes += int64(len(p))
	if c.r.Used != nil && c.r.Models.URL == "" {
		c.spent = !c.r.Used(c.usage())
	}
	return len(p), nil
}
