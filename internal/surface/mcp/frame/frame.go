// Package frame carries MCP over a pair of streams, one JSON-RPC message a
// line, and keeps a session alive whatever the client sends: a line that is not
// a sound message is answered with an error and the next one is read. What
// waits in memory is bounded, a client that stops reading is cut off, and calls
// that have begun are answered after the end of the input.
//
// It never looks at what a message asks for, apart from the few methods that
// are about the session itself, and it never ends a process.
package frame

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// MaxLine is the number of bytes of the longest line that is read as a
	// message, without its end.
	MaxLine = 4 << 20

	// AtOnce is how many calls the server works on at the same time.
	AtOnce = 32

	// MaxWaiting is how many calls may wait for one of those to be answered.
	MaxWaiting = 256

	// maxHeld is the number of bytes of all calls that have no answer yet.
	maxHeld = 16 << 20

	// maxOut is the number of bytes of the messages that the client has not
	// taken yet. Above it nothing is read and no message is written.
	maxOut = 16 << 20

	// maxPassing is how many notifications and answers of the client may wait
	// for the server to take them, and how many calls that need no turn may have
	// no answer.
	maxPassing = 64
)

// ErrStalled ends a session whose client has stopped reading.
var ErrStalled = errors.New("the client has stopped reading")

// A Transport is an mcp.Transport over Reader and Writer. Both are closed with
// the connection if they are io.Closers. A Read or Write that goes on when its
// stream is closed, as those of a terminal do, leaves its goroutine behind until
// the process ends; pipes and sockets have no such trouble.
type Transport struct {
	Reader io.Reader
	Writer io.Writer

	// Stall is how long a client may leave a piece of a message unread before
	// it is cut off with ErrStalled. Zero means 30 seconds.
	Stall time.Duration

	// Drain is how long calls may still be answered after the end of the
	// input, and messages be taken after the session is closed. Zero means 10
	// seconds.
	Drain time.Duration
}

// Connect starts to read. The connection lives until it is closed, whatever
// becomes of ctx.
func (t *Transport) Connect(context.Context) (mcp.Connection, error) {
	c := &conn{
		reader: t.Reader, writer: t.Writer, stall: t.Stall, drain: t.Drain,
		unanswered: map[any]*call{}, sent: make(chan struct{}), dead: make(chan struct{}),
	}
	if c.stall == 0 {
		c.stall = 30 * time.Second
	}
	if c.drain == 0 {
		c.drain = 10 * time.Second
	}
	c.changed.L = &c.mu
	go c.receive()
	go c.send()
	return c, nil
}
