package frame

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxBatch is more than are ever worked on at once, and little enough that the
// errors for all of them are small.
const maxBatch = AtOnce + MaxWaiting

// batched are the versions of the protocol in which a line may be an array of
// messages. Later ones have taken that out.
var batched = map[string]bool{"2024-11-05": true, "2025-03-26": true}

// receive reads lines until there are no more, and leaves the reason in
// inputErr.
func (c *conn) receive() {
	r := bufio.NewReaderSize(c.reader, 64<<10)
	for c.roomToRead() {
		line, err := readLine(r)
		if errors.Is(err, errLong) {
			c.refuse(parseError("the line is longer than %d bytes", MaxLine), nil)
			err = skipLine(r)
		}
		if line = bytes.Trim(line, " \t\r\n"); len(line) > 0 {
			c.accept(line)
		}
		if err != nil {
			c.endInput(err)
			return
		}
	}
}

var errLong = errors.New("long line")

// readLine returns the next line in memory of its own. Of a long one, which it
// does not read to its end, it returns nothing and errLong. What comes before
// the end of the input is a line too, returned with the error.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > MaxLine {
			if err == nil { // its end has been read
				_ = r.UnreadByte()
			}
			return nil, errLong
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func skipLine(r *bufio.Reader) error {
	for {
		if _, err := r.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// roomToRead waits while the client takes nothing, or the server takes nothing
// that needs no answer. It returns false after the end of the connection.
func (c *conn) roomToRead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed && (c.outBytes > maxOut || len(c.inbox)-c.waiting > maxPassing) {
		c.changed.Wait()
	}
	return !c.closed
}

func (c *conn) endInput(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !errors.Is(err, io.EOF) {
		err = fmt.Errorf("read from the client: %w", err)
	}
	c.inputErr = err
	if !c.closed {
		c.drainTimer = time.AfterFunc(c.drain, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.drained = true
			c.changed.Broadcast()
		})
	}
	c.changed.Broadcast()
}

// accept passes a line on, or answers it.
func (c *conn) accept(line []byte) {
	if bad := check(line); bad != nil {
		c.refuse(bad, nil)
		return
	}
	if line[0] != '[' {
		c.acceptOne(line, nil)
		return
	}
	messages, bad := c.readBatch(line)
	if bad != nil {
		c.refuse(bad, nil)
		return
	}
	b := &batch{open: 1} // not answered before its last message is read
	for _, m := range messages {
		c.acceptOne(m, b)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle(b, nil)
}

func (c *conn) readBatch(line []byte) ([]json.RawMessage, *fault) {
	c.mu.Lock()
	version := c.version
	c.mu.Unlock()
	if !batched[version] {
		return nil, invalid("an array of messages is for the protocols 2024-11-05 and 2025-03-26 only, once the session is initialized with one of them; send one message a line")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	if _, err := d.Token(); err != nil {
		return nil, parseError("%v", err)
	}
	var messages []json.RawMessage
	for d.More() {
		if len(messages) == maxBatch {
			return nil, invalid("an array may have at most %d messages", maxBatch)
		}
		var m json.RawMessage
		if err := d.Decode(&m); err != nil {
			return nil, parseError("%v", err)
		}
		messages = append(messages, m)
	}
	if len(messages) == 0 {
		return nil, invalid("the array is empty")
	}
	return messages, nil
}

func (c *conn) acceptOne(line []byte, b *batch) {
	f, bad := readFields(line)
	var m jsonrpc.Message
	if bad == nil {
		m, bad = f.message()
	}
	if bad == nil {
		if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
			bad = c.enqueueCall(r, len(line), b)
		} else {
			c.enqueueOther(m)
		}
	}
	if bad != nil {
		c.refuse(bad, b)
	}
}

// enqueueCall lets the server have a call in its turn.
func (c *conn) enqueueCall(r *jsonrpc.Request, size int, b *batch) *fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := r.ID.Raw()
	switch {
	case c.unanswered[id] != nil:
		// Without the id: the client would take this for the answer to its first call.
		return invalid("id %s is that of a call that has no answer yet", quoteID(id))
	case b != nil && r.Method == "initialize":
		bad := invalid("initialize must not be in an array")
		bad.id = id
		return bad
	}
	k := &call{size: size, batch: b, method: r.Method}
	full := c.turns >= AtOnce+MaxWaiting
	if !k.turn() {
		full = len(c.unanswered)-c.turns >= maxPassing
	}
	if full || c.held+size > maxHeld {
		return &fault{code: codeBusy, id: id, reason: fmt.Sprintf(
			"the server is busy: %d calls of %d bytes have no answer yet; send this one again when some of them have", len(c.unanswered), c.held)}
	}
	if k.turn() {
		c.turns++
	}
	if b != nil {
		b.open++
	}
	c.unanswered[id] = k
	c.held += size
	c.waiting++
	c.inbox = append(c.inbox, item{message: r, call: k})
	c.changed.Broadcast()
	return nil
}

func (c *conn) enqueueOther(m jsonrpc.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := m.(*jsonrpc.Request); ok && r.Method == "notifications/cancelled" && c.withdraw(r) {
		return
	}
	c.inbox = append(c.inbox, item{message: m})
	c.changed.Broadcast()
}

// withdraw answers a call that the client cancels before the server has it.
func (c *conn) withdraw(cancelled *jsonrpc.Request) bool {
	var params struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(cancelled.Params, &params) != nil {
		return false
	}
	id, bad := readID(params.RequestID)
	if bad != nil || !id.IsValid() {
		return false
	}
	for i, it := range c.inbox {
		if r, ok := it.message.(*jsonrpc.Request); ok && it.call != nil && r.ID == id {
			c.inbox = append(c.inbox[:i:i], c.inbox[i+1:]...)
			c.waiting--
			c.finish(id.Raw(), it.call, (&fault{code: codeBusy, id: id.Raw(), reason: "cancelled before it began"}).answer())
			return true
		}
	}
	return false
}

// refuse answers a message that is not passed on.
func (c *conn) refuse(bad *fault, b *batch) {
	if bad.silent {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if bad.code == jsonrpc.CodeInvalidRequest && c.unanswered[bad.id] != nil {
		bad.id = nil // of a call that has its own answer to come
	}
	if b != nil {
		b.open++
		c.settle(b, bad.answer())
		return
	}
	c.enqueueOut(bad.answer())
}
