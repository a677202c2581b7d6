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

	"github.com/pawl-run/pawl/internal/ground/clock"
)

const (
	linger      = time.Second // after the last byte for a client, so that it can read the answer
	acceptPause = 5 * time.Millisecond
	acceptTries = 12 // pauses double, which makes about 20 seconds
)

// Clock tells the time of denials. clock.System implements it.
type Clock interface {
	Now() time.Time
}

// Egress is a forward proxy that passes requests to allowed hosts. The zero value
// passes nothing. Its fields must not change, and it must not be copied, after
// Serve was called.
//
// It speaks CONNECT and plain HTTP with an absolute URL, one request per
// connection. A refused request is answered with status 403 and one line of text,
// which is also the reason phrase of the status line.
type Egress struct {
	Allow Hosts

	// Private are ranges of this machine's networks that allowed names may
	// resolve to. A private address that Allow lists is allowed as well. Loopback,
	// link-local and metadata addresses and those of this machine never are.
	Private []netip.Prefix

	// Upstream returns the proxy through which this machine reaches an address,
	// as http://[user:password@]host:port, or https. Nil, or a nil URL, means no
	// proxy. All traffic goes through it by CONNECT, also plain HTTP; Upstream is
	// called with an https URL. The proxy looks names up, so that their addresses
	// cannot be checked here: only names are.
	Upstream func(to *url.URL) (*url.URL, error)

	Limits Limits

	// Denied is called with what was refused, at most Limits.Denials times.
	// Several goroutines may call it at once, and the connection waits for it. May
	// be nil.
	Denied func(Denial)

	// Answered is called with the name of a host once the TLS handshake of a tunnel
	// has completed, as far as can be seen: the host has answered after the client
	// replied to its first message. It is called once per tunnel, possibly by
	// several goroutines at once. May be nil.
	Answered func(host string)

	Clock Clock // nil means the machine's clock

	// Tests replace these; nil means the machine's own.
	Resolve    func(ctx context.Context, name string) ([]netip.Addr, error)
	Dial       func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	Interfaces func() ([]net.Addr, error)

	sent, received, told atomic.Int64
}

// Traffic returns the bytes that were sent to hosts and received from them so
// far.
func (e *Egress) Traffic() (sent, received int64) {
	return e.sent.Load(), e.received.Load()
}

// Serve answers the connections of l until ctx ends or l is closed, and returns
// nil in both cases. It closes l, cuts the remaining connections, and returns
// when they have ended. An error means that l no longer accepts connections.
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

// acceptRetrying accepts a connection. It retries after temporary errors, such as
// too many open files.
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

// serveConn handles one connection, and reports a denial.
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

// isForClient reports whether to answer with an error. A client that has gone
// gets no answer.
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

// closeAtEnd closes a connection when ctx ends, or when the returned function is
// called.
func closeAtEnd(ctx context.Context, conn net.Conn) func() {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	return func() {
		stop()
		_ = conn.Close()
	}
}

// handleRequest reads the request and passes it on, or returns why not.
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

// sendRefusal answers with one line, and waits so that the client can read it: if
// a connection is closed with unread bytes, the kernel drops the answer.
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
	maxPhrase = 400     // bytes of a reason phrase
	maxDrain  = 1 << 20 // bytes that are read and dropped
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
