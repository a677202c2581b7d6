package command

import (
	"errors"
	"sync"

	"github.com/pawl-run/pawl/internal/agents/agent"
)

// errSpent ends the copying of output when no more usage is allowed.
var errSpent = errors.New("nothing more may be used")

// counter counts the bytes that a program prints, and stops it when no more usage
// is allowed.
type counter struct {
	r     agent.Request
	mu    sync.Mutex
	bytes int64
	spent bool
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spent {
		return 0, errSpent
	}
	c.bytes += int64(len(p))
	if c.r.OnUsage != nil && c.r.Models.URL == "" {
		c.spent = !c.r.OnUsage(c.usage())
	}
	return len(p), nil
}
