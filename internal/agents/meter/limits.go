package meter

import (
	"cmp"
	"net"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Limits are caps. A zero field means its default, which its comment names. No
// field may be negative.
type Limits struct {
	Connections   int           // open at once; 256
	Head          int           // bytes of the head of a request or a response; 64 KiB
	Sent          int64         // bytes sent to hosts, per connection; 64 MiB
	Received      int64         // bytes received from hosts, per connection; 4 GiB
	TotalSent     int64         // bytes sent by all connections of the Egress; 256 MiB
	TotalReceived int64         // bytes received by all connections; 16 GiB
	Opening       time.Duration // from accept to the first byte for the host; 30s
	Idle          time.Duration // without a byte in either direction; 5m
	Age           time.Duration // of one connection; 1h
	Denials       int           // calls of Denied; 1000
}

func (l Limits) withDefaults() Limits {
	l.Connections = cmp.Or(l.Connections, 256)
	l.Head = cmp.Or(l.Head, 64<<10)
	l.Sent = cmp.Or(l.Sent, 64<<20)
	l.Received = cmp.Or(l.Received, 4<<30)
	l.TotalSent = cmp.Or(l.TotalSent, 256<<20)
	l.TotalReceived = cmp.Or(l.TotalReceived, 16<<30)
	l.Opening = cmp.Or(l.Opening, 30*time.Second)
	l.Idle = cmp.Or(l.Idle, 5*time.Minute)
	l.Age = cmp.Or(l.Age, time.Hour)
	l.Denials = cmp.Or(l.Denials, 1000)
	return l
}

// quota is what may flow in one direction, of one connection and of all.
type quota struct {
	left  int64         // bytes of the connection; only one goroutine uses it
	total *atomic.Int64 // bytes of all connections so far
	cap   int64         // of total
}

// takeUpTo returns how many of n bytes may flow, and counts them.
func (q *quota) takeUpTo(n int) int {
	want := min(int64(n), q.left)
	if over := q.total.Add(want) - q.cap; over > 0 {
		back := min(over, want)
		q.total.Add(-back)
		want -= back
	}
	q.left -= want
	return int(want)
}

// countedConn is a connection to a host. It counts and caps its bytes, and tells
// its watch about activity.
type countedConn struct {
	net.Conn

	to             place
	watch          *watch
	sent, received quota
	cut            error // the denial that ended reading; nil if none did
}

func (e *Egress) newCountedConn(conn net.Conn, to place, w *watch) *countedConn {
	l := e.limits()
	return &countedConn{
		Conn: conn, to: to, watch: w,
		sent:     quota{left: l.Sent, total: &e.sent, cap: l.TotalSent},
		received: quota{left: l.Received, total: &e.received, cap: l.TotalReceived},
	}
}

// Read counts after reading, since the number of bytes is not known before. Bytes
// beyond the quota are dropped.
func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n == 0 {
		return 0, err
	}
	c.watch.noteActivity()
	if may := c.received.takeUpTo(n); may < n {
		c.cut = c.denyOver(ReasonReceived, "more came back than may")
		return may, c.cut
	}
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	may := c.sent.takeUpTo(len(p))
	n, err := c.Conn.Write(p[:may])
	c.watch.noteActivity()
	if err == nil && may < len(p) {
		return n, c.denyOver(ReasonSent, "more was sent than may leave")
	}
	return n, err
}

func (c *countedConn) denyOver(reason loop.Reason, detail string) error {
	return deny(c.to, reason, detail)
}

// CloseWrite says that nothing more will be sent, if the connection can be closed
// in one direction.
func (c *countedConn) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
