package frame

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// conn has two goroutines: receive reads lines into inbox, from where Read
// takes them, and send writes what Write leaves in out.
type conn struct {
	reader io.Reader
	writer io.Writer
	stall  time.Duration
	drain  time.Duration

	mu      sync.Mutex
	changed sync.Cond // something below is not what it was

	inbox      []item        // in the order in which they came
	unanswered map[any]*call // by id, those in the inbox and those that the server has
	waiting    int           // calls in the inbox
	turns      int           // unanswered calls that have or wait for a turn
	running    int           // those that have it
	held       int           // bytes of unanswered
	version    string        // of the protocol, once the session is initialized

	out      [][]byte
	outBytes int // of out, and of what is being written

	inputErr   error // why nothing more is read
	drainTimer *time.Timer
	drained    bool  // the time for answers after inputErr is over
	closed     bool  // by Close, or because of cut
	cut        error // why the client can be written to no more

	sent    chan struct{} // closed when send has returned
	dead    chan struct{} // closed with cut
	endOnce sync.Once
}

// An item is a message for the server.
type item struct {
	message jsonrpc.Message
	call    *call // nil if no answer is due
}

// A call is a request that has no answer yet.
type call struct {
	method string
	size   int
	batch  *batch // of the array that it came in
}

// turn reports whether a call has to wait for its turn. A client finds out with
// a ping whether the server lives, also when all turns are taken.
func (k *call) turn() bool { return k.method != "ping" && !k.lasting() }

// lasting reports whether a call is answered only when its session ends.
func (k *call) lasting() bool { return k.method == "subscriptions/listen" }

// A batch collects the answers to the messages of one array.
type batch struct {
	open    int // answers that are still to come
	answers []json.RawMessage
}

// SessionID is that of HTTP only.
func (c *conn) SessionID() string { return "" }

// Read returns the next message that the server may have. After the end of the
// input it waits until the calls are answered, or the time for that is over:
// the server gives up its calls when it hears of the end.
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	defer c.wakeAfter(ctx)()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case c.cut != nil:
			return nil, c.cut
		case c.closed:
			return nil, io.EOF
		case c.drained:
			return nil, c.inputErr
		}
		for i, it := range c.inbox {
			if it.call != nil && it.call.turn() && c.running >= AtOnce {
				continue
			}
			c.inbox = append(c.inbox[:i:i], c.inbox[i+1:]...)
			if it.call != nil {
				c.waiting--
				if it.call.turn() {
					c.running++
				}
			}
			c.changed.Broadcast()
			return it.message, nil
		}
		if c.inputErr != nil && !c.owesAnswers() {
			return nil, c.inputErr
		}
		c.changed.Wait()
	}
}

func (c *conn) owesAnswers() bool {
	for _, k := range c.unanswered {
		if !k.lasting() {
			return true
		}
	}
	return c.outBytes > 0
}

// Write leaves a message to be sent and returns; it waits only while the client
// takes nothing.
func (c *conn) Write(ctx context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(boundError(m))
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	response, isResponse := m.(*jsonrpc.Response)
	defer c.wakeAfter(ctx)()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed && c.outBytes > maxOut {
		if ctx.Err() != nil && !isResponse {
			return context.Cause(ctx)
		}
		c.changed.Wait()
	}
	if c.closed {
		return fmt.Errorf("%w: %w", mcp.ErrConnectionClosed, c.endCause())
	}
	if !isResponse {
		c.enqueueOut(data)
		return nil
	}
	id := response.ID.Raw()
	k := c.unanswered[id]
	if k == nil {
		return fmt.Errorf("id %s is not that of a call that waits for an answer", quoteID(id))
	}
	if k.method == "initialize" && response.Error == nil {
		var result struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		if json.Unmarshal(response.Result, &result) == nil {
			c.version = result.ProtocolVersion
		}
	}
	if k.turn() {
		c.running--
	}
	c.finish(id, k, data)
	return nil
}

func (c *conn) endCause() error {
	if c.cut != nil {
		return c.cut
	}
	return io.EOF
}

// finish takes a call away and sends its answer.
func (c *conn) finish(id any, k *call, answer []byte) {
	delete(c.unanswered, id)
	if k.turn() {
		c.turns--
	}
	c.held -= k.size
	c.changed.Broadcast()
	if k.batch != nil {
		c.settle(k.batch, answer)
		return
	}
	c.enqueueOut(answer)
}

// settle adds an answer to a batch, and sends the batch with its last one. An
// array of notifications has no answer.
func (c *conn) settle(b *batch, answer json.RawMessage) {
	if answer != nil {
		b.answers = append(b.answers, answer)
	}
	if b.open--; b.open > 0 || len(b.answers) == 0 {
		return
	}
	data, err := json.Marshal(b.answers)
	if err != nil {
		panic(err) // each was made by an encoder
	}
	c.enqueueOut(data)
}

func (c *conn) enqueueOut(data []byte) {
	c.out = append(c.out, data)
	c.outBytes += len(data)
	c.changed.Broadcast()
}

// wakeAfter wakes those who wait when ctx ends, until the returned function is
// called.
func (c *conn) wakeAfter(ctx context.Context) func() bool {
	return context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.changed.Broadcast()
	})
}

// send writes messages until the connection is closed and nothing is left.
func (c *conn) send() {
	defer close(c.sent)
	for {
		c.mu.Lock()
		for len(c.out) == 0 && !c.closed {
			c.changed.Wait()
		}
		if len(c.out) == 0 || c.cut != nil {
			c.mu.Unlock()
			return
		}
		data := c.out[0]
		c.out = c.out[1:]
		c.mu.Unlock()

		if err := c.writeLine(data); err != nil {
			c.cutOff(fmt.Errorf("write to the client: %w", err))
			return
		}
		c.mu.Lock()
		c.outBytes -= len(data)
		c.changed.Broadcast()
		c.mu.Unlock()
	}
}

// writeLine writes in pieces that a pipe takes at once, so that a slow client
// is told from one that has stopped.
func (c *conn) writeLine(data []byte) error {
	const piece = 32 << 10
	line := append(data[:len(data):len(data)], '\n')
	for len(line) > 0 {
		n := min(len(line), piece)
		stalled := time.AfterFunc(c.stall, func() { c.cutOff(ErrStalled) })
		_, err := c.writer.Write(line[:n])
		stalled.Stop()
		if err != nil {
			return err
		}
		line = line[n:]
	}
	return nil
}

// cutOff ends the connection at once. Its first cause counts.
func (c *conn) cutOff(cause error) {
	c.mu.Lock()
	if c.cut == nil {
		c.cut = cause
		close(c.dead)
	}
	c.closed = true
	c.changed.Broadcast()
	c.mu.Unlock()
	c.closeStreams()
}

// Close ends the connection when the client has taken what was written, or
// after the time for that.
func (c *conn) Close() error {
	c.mu.Lock()
	c.closed = true
	if c.drainTimer != nil {
		c.drainTimer.Stop()
	}
	c.changed.Broadcast()
	c.mu.Unlock()

	late := time.AfterFunc(c.drain, func() { c.cutOff(ErrStalled) })
	defer late.Stop()
	select {
	case <-c.sent:
	case <-c.dead:
	}
	c.closeStreams()
	return nil
}

func (c *conn) closeStreams() {
	c.endOnce.Do(func() {
		for _, stream := range []any{c.reader, c.writer} {
			if closer, ok := stream.(io.Closer); ok {
				_ = closer.Close() // nothing is expected of it any more
			}
		}
	})
}

func quoteID(id any) string {
	data, err := json.Marshal(id)
	if err != nil {
		return "?"
	}
	return string(data)
}
