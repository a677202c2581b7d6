package daemon_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/surface/daemon"
	"github.com/pawl-run/pawl/internal/surface/httpguard"
)

// pipes is a listener whose connections live in the bubble of a test, so that hours pass at once.
type pipes struct {
	waiting chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.waiting:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// serve serves a handler on the pipes of a bubble, behind the guard of all surfaces.
func serve(t *testing.T, h http.HandlerFunc) *pipes {
	t.Helper()
	l := &pipes{waiting: make(chan net.Conn, 1000), closed: make(chan struct{})}
	stop := daemon.Serve(t.Context(), l, httpguard.Handler(h, httpguard.Options{}), slog.New(slog.DiscardHandler))
	t.Cleanup(func() { stop(context.Background()) })
	return l
}

func (p *pipes) dial(t *testing.T) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	p.waiting <- server
	return client
}

// drip sends a text by a byte a second, and returns how long it was taken.
func drip(c net.Conn, text string) time.Duration {
	began := time.Now()
	for i := range len(text) {
		if _, err := io.WriteString(c, text[i:i+1]); err != nil {
			break
		}
		time.Sleep(time.Second)
	}
	return time.Since(began)
}

func TestNobodyHoldsAConnectionByBeingSlow(t *testing.T) {
	t.Parallel()
	const head = "POST /x HTTP/1.1\r\nHost: localhost\r\n"
	for name, send := range map[string]func(c net.Conn) time.Duration{
		"a head by a byte a second": func(c net.Conn) time.Duration { return drip(c, head+strings.Repeat("A: b\r\n", 1000)) },
		"a body by a byte a second": func(c net.Conn) time.Duration {
			_, _ = io.WriteString(c, head+"Content-Length: 100000\r\n\r\n")
			return drip(c, strings.Repeat("x", 100_000))
		},
		"chunks by a byte a second": func(c net.Conn) time.Duration {
			_, _ = io.WriteString(c, head+"Transfer-Encoding: chunked\r\n\r\n")
			return drip(c, strings.Repeat("1\r\nx\r\n", 10_000))
		},
		"a body that never comes": func(c net.Conn) time.Duration {
			began := time.Now()
			_, _ = io.WriteString(c, head+"Content-Length: 1000000000\r\n\r\n")
			_, _ = io.Copy(io.Discard, c)
			return time.Since(began)
		},
		"nothing at all": func(c net.Conn) time.Duration {
			began := time.Now()
			_, _ = io.Copy(io.Discard, c)
			return time.Since(began)
		},
		"nothing after a request": func(c net.Conn) time.Duration {
			began := time.Now()
			_, _ = io.WriteString(c, head+"Content-Length: 0\r\n\r\n")
			_, _ = io.Copy(io.Discard, c)
			return time.Since(began)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := serve(t, func(w http.ResponseWriter, r *http.Request) {
					if _, err := io.Copy(io.Discard, r.Body); err != nil {
						http.Error(w, err.Error(), http.StatusBadRequest)
					}
				})
				c := l.dial(t)
				if !strings.HasPrefix(name, "nothing") && name != "a body that never comes" {
					go func() { _, _ = io.Copy(io.Discard, c) }()
				}
				if took := send(c); took > time.Minute {
					t.Errorf("the connection was held for %v", took)
				}
			})
		})
	}
}

func TestAReaderThatDoesNotReadIsGivenUpAndASlowOneIsNot(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	for name, c := range map[string]struct {
		pause time.Duration // of the client before each part that it reads; 0: it never reads
		whole bool
	}{"one that never reads": {0, false}, "one that is slow": {2 * time.Second, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan error, 1)
				l := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					_, err := w.Write(make([]byte, size))
					ended <- err
				})
				conn := l.dial(t)
				if _, err := io.WriteString(conn, "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				n := 0
				if c.pause > 0 {
					resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 64<<10), nil)
					if err != nil {
						t.Fatal(err)
					}
					defer func() { _ = resp.Body.Close() }()
					for part := make([]byte, 60<<10); err == nil; {
						time.Sleep(c.pause)
						var got int
						got, err = io.ReadFull(resp.Body, part)
						n += got
					}
				}
				if err := <-ended; (err == nil) != c.whole || (n == size) != c.whole {
					t.Errorf("it got %d bytes of %d, and its answer ended with %v", n, size, err)
				}
			})
		})
	}
}

// A deadline that was left on the connection would end the context of the request.
func TestAnAnswerMayComeHoursAfterItsRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			select {
			case <-r.Context().Done():
				t.Errorf("the request ended: %v", context.Cause(r.Context()))
			case <-time.After(5 * time.Hour):
			}
			_, _ = w.Write(body)
		})
		c := l.dial(t)
		in := bufio.NewReader(c)
		for i := range 2 { // On one connection.
			said := fmt.Sprint("word", i)
			if _, err := io.WriteString(c, "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n"+said); err != nil {
				t.Fatal(err)
			}
			if status, got := readAnswer(t, in); status != http.StatusOK || got != said {
				t.Errorf("answer %d is %d %q", i, status, got)
			}
		}
	})
}

func TestAListenerHasSoManyConnectionsAtMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := serve(t, reachedHandler)
		for range 300 {
			l.dial(t)
		}
		late := l.dial(t)
		synctest.Wait()
		if waiting := len(l.waiting); waiting != 301-256 {
			t.Errorf("%d of 301 connections are accepted, want 256", 301-waiting)
		}
		// Those that say nothing are closed, and it is the turn of others.
		go func() { _, _ = io.WriteString(late, "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n") }()
		if status, got := readAnswer(t, bufio.NewReader(late)); status != http.StatusOK || got != "reached" {
			t.Errorf("the last one is answered %d %q", status, got)
		}
	})
}

func reachedHandler(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "reached") }

func readAnswer(t *testing.T, in *bufio.Reader) (status int, body string) {
	t.Helper()
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}
