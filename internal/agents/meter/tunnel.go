package meter

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

const established = "HTTP/1.1 200 Connection established\r\n\r\n"

// tunnel passes bytes between a client and a host, after the client has begun TLS
// with that host.
func (e *Egress) tunnel(ctx context.Context, w *watch, c *client) error {
	up, err := e.connectTo(ctx, w, c.to)
	if err != nil {
		return err
	}
	defer closeAtEnd(ctx, up)()
	c.answered = true
	if _, err := io.WriteString(c.Conn, established); err != nil {
		return err
	}
	raw, err := c.readHello(w)
	if err != nil {
		return err
	}
	if _, err := up.Write(raw); err != nil {
		return err
	}
	return relayTunnel(c, up, &handshake{report: func() {
		if e.Answered != nil {
			e.Answered(c.to.name)
		}
	}})
}

// readHello reads the ClientHello and refuses an invalid one.
func (c *client) readHello(w *watch) ([]byte, error) {
	raw, message, err := readHello(c.in)
	if errors.Is(err, errNotTLS) || errors.Is(err, errHello) {
		return nil, deny(c.to, ReasonNoTLS, err.Error())
	}
	if err != nil {
		return nil, err
	}
	if err := checkHello(message, c.to); err != nil {
		w.endAfter(linger)
		if _, alerted := c.Write(unrecognizedName); alerted == nil {
			c.drainInput()
		}
		return nil, err
	}
	return raw, nil
}

// relayTunnel returns when both directions have ended. An error in one direction
// ends the other.
func relayTunnel(c *client, up *countedConn, talk *handshake) error {
	back := make(chan error, 1)
	go func() { back <- copyUntilEnd(c.Conn, notifyingReader{up, talk.noteAnswer}, up) }()
	in := io.MultiReader(io.LimitReader(c.in, int64(c.in.Buffered())), c.Conn)
	err := copyUntilEnd(up, notifyingReader{in, talk.noteReply}, c.Conn)
	return errors.Join(err, <-back)
}

// handshake follows a TLS handshake by who speaks: the host greets, the client
// replies, the host answers. The content is encrypted.
type handshake struct {
	greeted, replied atomic.Bool
	answered         sync.Once
	report           func()
}

func (t *handshake) noteReply() {
	if t.greeted.Load() {
		t.replied.Store(true)
	}
}

func (t *handshake) noteAnswer() {
	if t.replied.Load() {
		t.answered.Do(t.report)
	}
	t.greeted.Store(true)
}

// notifyingReader is a reader that calls onRead after each read.
type notifyingReader struct {
	io.Reader

	onRead func()
}

// Read implements io.Reader.
func (h notifyingReader) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if n > 0 {
		h.onRead()
	}
	return n, err
}

var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// copyUntilEnd copies until in ends, and then closes out for writing. An error
// ends the other direction as well.
func copyUntilEnd(out net.Conn, in io.Reader, from net.Conn) error {
	b, _ := buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(b)
	// The wrapping hides ReadFrom and WriteTo, which would bypass the counting.
	_, err := io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, b[:])
	if err == nil {
		err = closeWrite(out)
	}
	if err != nil {
		_ = out.Close()
		_ = from.Close()
	}
	return err
}
