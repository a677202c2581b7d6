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
	up, err := e.open(ctx, w, c.to)
	if err != nil {
		return err
	}
	defer closeAtEnd(ctx, up)()
	c.answered = true
	if _, err := io.WriteString(c.Conn, established); err != nil {
		return err
	}
	raw, err := c.hello(w)
	if err != nil {
		return err
	}
	if _, err := up.Write(raw); err != nil {
		return err
	}
	return relay(c, up, e.answers(c.to))
}

// hello reads the ClientHello and refuses the wrong one.
func (c *client) hello(w *watch) ([]byte, error) {
	raw, message, err := readHello(c.in)
	if errors.Is(err, errNotTLS) || errors.Is(err, errHello) {
		return nil, deny(c.to, ReasonNoTLS, err.Error())
	}
	if err != nil {
		return nil, err
	}
	if err := checkHello(message, c.to); err != nil {
		w.last(linger)
		if _, alerted := c.Write(unrecognizedName); alerted == nil {
			c.drain()
		}
		return nil, err
	}
	return raw, nil
}

// relay returns when both directions have ended. Whoever fails ends the other.
func relay(c *client, up *counted, talk *talk) error {
	back := make(chan error, 1)
	go func() { back <- pass(c.Conn, heard{up, talk.answer}, up) }()
	in := io.MultiReader(io.LimitReader(c.in, int64(c.in.Buffered())), c.Conn)
	err := pass(up, heard{in, talk.reply}, c.Conn)
	return errors.Join(err, <-back)
}

// talk follows who speaks in a tunnel: the host greets, the client replies, the
// host answers. Nothing that is said can be read.
type talk struct {
	greeted, replied atomic.Bool
	answered         sync.Once
	tell             func()
}

func (e *Egress) answers(to place) *talk {
	return &talk{tell: func() {
		if e.Answered != nil {
			e.Answered(to.name)
		}
	}}
}

func (t *talk) reply() {
	if t.greeted.Load() {
		t.replied.Store(true)
	}
}

func (t *talk) answer() {
	if t.replied.Load() {
		t.answered.Do(t.tell)
	}
	t.greeted.Store(true)
}

// heard is a reader that tells of each piece that was read.
type heard struct {
	io.Reader

	of func()
}

// Read reads.
func (h heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if n > 0 {
		h.of()
	}
	return n, err
}

var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// pass copies until in ends and says so to out. After an error nothing can
// pass in the other direction either.
func pass(out net.Conn, in io.Reader, from net.Conn) error {
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
