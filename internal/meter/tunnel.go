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

// tunnel passes bytes between a client and a host, once the client has shown
// that it wants to speak TLS with that host.
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
	return relayTunnel(c, up, e.newHandshake(c.to))
}

// readHello reads the ClientHello and refuses the wrong one.
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

// relayTunnel returns when both directions have ended. Whoever fails ends the other.
func relayTunnel(c *client, up *countedConn, talk *handshake) error {
	back := make(chan error, 1)
	go func() { back <- copyUntilEnd(c.Conn, notifyingReader{up, talk.noteAnswer}, up) }()
	in := io.MultiReader(io.LimitReader(c.in, int64(c.in.Buffered())), c.Conn)
	err := copyUntilEnd(up, notifyingReader{in, talk.noteReply}, c.Conn)
	return errors.Join(err, <-back)
}

// handshake follows who speaks in a tunnel: the host greets, the client replies, the
// host answers. Nothing that is said can be read.
type handshake struct {
	greeted, replied atomic.Bool
	answered         sync.Once
	report           func()
}

func (e *Egress) newHandshake(to place) *handshake {
	return &handshake{report: func() {
		if e.Answered != nil {
			e.Answered(to.name)
		}
	}}
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

// notifyingReader is a reader that tells of each piece that was read.
type notifyingReader struct {
	io.Reader

	onRead func()
}

// Read reads.
func (h notifyingReader) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if n > 0 {
		h.onRead()
	}
	return n, err
}

var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// copyUntilEnd copies until in ends and says so to out. After an error nothing can
// pass in the other direction either.
func copyUntilEnd(out net.Conn, in io.Reader, from net.Conn) error {
	b, _ := buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(b)
	// The wrapping keeps io from choosing ways of its own past the counting.
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
