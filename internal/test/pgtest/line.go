package pgtest

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Line is a connection between a test and its database that can be cut.
type Line struct {
	tb     testing.TB
	server string // socket
	URL    string // of the same database, by way of the line

	mu    sync.Mutex
	down  bool
	open  map[net.Conn]bool
	watch func(query string) Cut
}

// Cut says where a connection is cut.
type Cut int

// The places. The zero Cut means that it is not cut.
const (
	Nowhere Cut = iota
	Before      // the server never sees the query
	After       // the server has carried it out, and its answer is lost
)

// NewLine makes a line to the database at a URL of this package.
func NewLine(tb testing.TB, to string) *Line {
	tb.Helper()
	u, err := url.Parse(to)
	if err != nil {
		tb.Fatal(err)
	}
	q := u.Query()
	dir, err := os.MkdirTemp("", "pawl-line-") //nolint:usetesting // The path of a socket may have 107 bytes, and that of TB.TempDir is longer.
	if err != nil {
		tb.Fatal(err)
	}
	const socket = ".s.PGSQL.5432"
	l := &Line{tb: tb, server: filepath.Join(q.Get("host"), socket), open: map[net.Conn]bool{}}
	q.Set("host", dir)
	u.RawQuery = q.Encode()
	l.URL = u.String()
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "unix", filepath.Join(dir, socket))
	if err != nil {
		tb.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { l.passOn(conn) })
		}
	})
	tb.Cleanup(func() {
		_ = listener.Close()
		l.Cut()
		all.Wait()
		_ = os.RemoveAll(dir)
	})
	return l
}

// Cut ends all connections, and refuses new ones until Mend.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for c := range l.open {
		_ = c.Close()
	}
}

// Mend accepts connections again.
func (l *Line) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

// CutFor cuts the line and mends it after a while, in the background.
func (l *Line) CutFor(d time.Duration) {
	l.Cut()
	time.AfterFunc(d, l.Mend)
}

// Watch calls fn for each query, right before the server executes it. Fn returns whether and
// where the line is cut. A cut lasts until Mend.
func (l *Line) Watch(fn func(query string) Cut) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watch = fn
}

// passOn forwards a client's data until either side ends.
func (l *Line) passOn(client net.Conn) {
	defer client.Close()
	server, err := (&net.Dialer{}).DialContext(l.tb.Context(), "unix", l.server)
	if err != nil || !l.addConns(client, server) {
		return
	}
	defer l.closeConns(client, server)
	muted := make(chan struct{}) // closed when the server's answers are to be lost
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer client.Close()
		_ = passAnswers(client, server, muted)
	}()
	l.passQueries(client, server, muted)
	_ = server.Close()
	<-over
}

func (l *Line) addConns(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		if l.down {
			_ = c.Close()
			continue
		}
		l.open[c] = true
	}
	return !l.down
}

func (l *Line) closeConns(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(l.open, c)
	}
}

// passQueries forwards the messages of a client.
func (l *Line) passQueries(client io.Reader, server net.Conn, muted chan struct{}) {
	in := bufio.NewReader(client)
	prepared := map[string]string{} // queries by the names of their statements
	bound := ""                     // the query that is executed next
	for first := true; ; first = false {
		message, err := readMessage(in, first)
		if err != nil {
			return
		}
		cut := Nowhere
		kind, texts := message[0], strings.SplitN(string(message[5:]), "\x00", 3)
		if first { // It has no kind.
			kind = 0
		}
		switch kind {
		case 'P': // parse: a name, a query
			prepared[texts[0]] = texts[1]
		case 'B': // bind: a portal, a name
			bound = prepared[texts[1]]
		case 'E': // execute: a portal
			cut = l.showQuery(bound)
		case 'Q': // a query
			cut = l.showQuery(texts[0])
		}
		switch cut {
		case Before:
			l.Cut()
			return
		case After:
			close(muted)
			_, _ = server.Write(message)
			time.Sleep(200 * time.Millisecond) // It is carried out by then.
			l.Cut()
			return
		case Nowhere:
		}
		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

func (l *Line) showQuery(query string) Cut {
	l.mu.Lock()
	watch := l.watch
	l.mu.Unlock()
	if watch == nil {
		return Nowhere
	}
	return watch(query)
}

// passAnswers forwards the answers of a server until it is muted.
func passAnswers(to io.Writer, from io.Reader, muted <-chan struct{}) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-muted:
		default:
			if _, werr := to.Write(buf[:n]); werr != nil {
				return werr
			}
		}
		if err != nil {
			return err
		}
	}
}

// readMessage reads one message of PostgreSQL's protocol.
func readMessage(from *bufio.Reader, first bool) ([]byte, error) {
	head := make([]byte, 5)
	if first {
		head = head[:4]
	}
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	body := make([]byte, max(4, binary.BigEndian.Uint32(head[len(head)-4:]))-4)
	_, err := io.ReadFull(from, body)
	return append(head, body...), err
}

// databaseName returns the database of a URL.
func databaseName(to string) string {
	u, err := url.Parse(to)
	if err != nil {
		return to
	}
	return strings.TrimPrefix(u.Path, "/")
}
