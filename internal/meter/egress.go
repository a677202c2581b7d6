package meter

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/clock"
)

const (
	linger      = time.Second // after the last byte for a client, so that it can be read
	acceptPause = 5 * time.Millisecond
	acceptTries = 12 // pauses double, which makes about 20 seconds
)

// Clock says when something was denied. clock.System is one.
type Clock interface {
	Now() time.Time
}

// Egress is a forward proxy that lets requests to declared hosts pass. The zero
// value lets nothing pass. Its fields must not change once Serve was called; it
// must not be copied then.
//
// It speaks CONNECT and plain HTTP with an absolute URL, one request for each
// connection. What does not pass is answered with status 403 and one line of
// text, which is also the status line's reason.
type Egress struct {
	Allow Hosts

	// Private are ranges of this machine's networks that listed names may lead
	// to. A private address that Allow lists is open as well. Nothing opens
	// loopback, link-local and metadata addresses and those of this machine.
	Private []netip.Prefix

	// Upstream says by which proxy this machine reaches an address, as
	// http://[user:password@]host:port, or https; nil, or a nil URL, if it needs
	// none. All goes through it by CONNECT, also plain HTTP, and it is asked for
	// the way of https. It looks the names up, so that nothing can be said here
	// about their addresses: names alone are checked.
	Upstream func(to *url.URL) (*url.URL, error)

	Limits Limits

	// Denied is told what did not pass, up to Limits.Denials times. Several
	// goroutines may call it at once, and the connection waits for it. May be nil.
	Denied func(Denial)

	// Answered is told the name of a host that goes on answering in a tunnel after
	// the client has answered its first message: the handshake has come through on
	// both sides. It is told once for each tunnel, by several goroutines; nil: nobody.
	Answered func(host string)

	Clock Clock // nil means the machine's

	// What a test replaces; nil means the machine's own.
	Resolve    func(ctx context.Context, name string) ([]netip.Addr, error)
	Dial       func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	Interfaces func() ([]net.Addr, error)

	sent, received, told atomic.Int64
}

// Traffic returns the bytes that have gone to hosts and come from them so far.
func (e *Egress) Traffic() (sent, received int64) {
	return e.sent.Load(), e.received.Load()
}

// Serve answers the connections of l until ctx ends or l is closed; both give
// nil. It closes l, cuts the connections that are left, and returns when they
// are gone. An error means that l accepts nothing any more.
func (e *Egress) Serve(ctx context.Context, l net.Listener) error {
	var open sync.WaitGroup
	defer open.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		_ = l.Close()
	})
	defer func() {
		if stop() {
			_ = l.Close()
			return
		}
		<-closed
	}()
	slots, turnedAway := make(chan struct{}, e.limits().Connections), make(chan struct{}, e.limits().Connections)
	for {
		conn, err := acceptRetrying(ctx, l)
		switch {
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			if err == nil {
				_ = conn.Close()
			}
			return nil
		case err != nil:
			return fmt.Errorf("accept on %s: %w", l.Addr(), err)
		}
		place, do := slots, e.serveConn
		if len(slots) == cap(slots) {
			place, do = turnedAway, e.turnAway
		}
		select {
		case place <- struct{}{}:
			open.Go(func() {
				defer func() { <-place }()
				do(ctx, conn)
			})
		default:
			_ = conn.Close()
		}
	}
}

// acceptRetrying waits out what passes, such as a process without free descriptors.
func acceptRetrying(ctx context.Context, l net.Listener) (net.Conn, error) {
	pause := acceptPause
	for try := 1; ; try++ {
		conn, err := l.Accept()
		if err == nil || errors.Is(err, net.ErrClosed) || ctx.Err() != nil || try == acceptTries {
			return conn, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause *= 2
	}
}

// client is a connection from the sandbox.
type client struct {
	net.Conn

	in       *bufio.Reader
	to       place // once it is known
	answered bool  // a status line was written
}

// serveConn answers one connection and tells why it did not pass.
func (e *Egress) serveConn(ctx context.Context, conn net.Conn) {
	ctx, w := watchConn(ctx, e.limits())
	defer w.end()
	defer closeAtEnd(ctx, conn)()
	c := &client{Conn: conn, in: bufio.NewReader(conn)}
	err := e.handleRequest(ctx, w, c)
	if errors.Is(context.Cause(ctx), errOld) {
		err = deny(c.to, ReasonTime, "it was open for "+e.limits().Age.String())
	}
	if err == nil {
		return
	}
	status := 502
	if d, denied := denialIn(err); denied {
		e.reportDenial(d)
		status = 403
	}
	if said := err.Error(); !c.answered && ctx.Err() == nil && isForClient(err) {
		c.sendRefusal(w, status, said)
	}
}

// isForClient tells whether an error is one to answer: a client that went away
// hears nothing.
func isForClient(err error) bool {
	_, unreachable := errors.AsType[*unreachableError](err)
	_, denied := denialIn(err)
	return unreachable || denied
}

func (e *Egress) turnAway(ctx context.Context, conn net.Conn) {
	ctx, w := watchConn(ctx, e.limits())
	defer w.end()
	defer closeAtEnd(ctx, conn)()
	c := &client{Conn: conn, in: bufio.NewReader(conn)}
	d := deny(place{}, ReasonConnections, fmt.Sprintf("%d connections are open already", e.limits().Connections))
	e.reportDenial(d.Denial)
	c.sendRefusal(w, 403, d.Error())
}

// closeAtEnd closes a connection when ctx ends, or when the function is called
// that it returns.
func closeAtEnd(ctx context.Context, conn net.Conn) func() {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	return func() {
		stop()
		_ = conn.Close()
	}
}

// handleRequest reads the request and lets it pass, or returns why not.
func (e *Egress) handleRequest(ctx context.Context, w *watch, c *client) error {
	h, err := readHead(c.in, e.limits().Head)
	if bad, ok := errors.AsType[*malformedError](err); ok {
		return deny(place{}, ReasonRequest, bad.Error())
	}
	if err != nil {
		return err
	}
	t, err := parseTarget(&h)
	if err != nil {
		return err
	}
	c.to = t.place
	listed, reason := e.Allow.findEntries(t.place)
	if reason != "" {
		return deny(t.place, reason, "")
	}
	if t.isTunnel {
		return e.tunnel(ctx, w, c)
	}
	return e.forward(ctx, w, c, request{head: &h, target: t, allowed: listed})
}

// sendRefusal answers with one line, and waits until the client can have read it:
// closing with unread bytes makes the kernel throw the answer away.
func (c *client) sendRefusal(w *watch, status int, line string) {
	phrase := line
	if len(phrase) > maxPhrase {
		phrase = phrase[:maxPhrase]
	}
	w.endAfter(linger)
	_, err := fmt.Fprintf(c.Conn, "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		status, phrase, len(line)+1, line)
	if err == nil {
		c.drainInput()
	}
}

const (
	maxPhrase = 400     // bytes of a status line's reason
	maxDrain  = 1 << 20 // bytes that are read and thrown away
)

func (c *client) drainInput() {
	if closeWrite(c.Conn) == nil {
		_, _ = io.CopyN(io.Discard, c.in, maxDrain)
	}
}

func (e *Egress) limits() Limits { return e.Limits.withDefaults() }

func (e *Egress) clock() Clock {
	if e.Clock == nil {
		return clock.System{}
	}
	return e.Clock
}
