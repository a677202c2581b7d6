package meter

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestWhatIsPassedOnIsWhatWasAsked(t *testing.T) {
	w := newWorld()
	type seen struct {
		line, host, body string
		length           int64
		fields           http.Header
	}
	got := make(chan seen, 1)
	plainServer(t, w, func(rw http.ResponseWriter, req *http.Request) {
		b, _ := io.ReadAll(req.Body)
		got <- seen{req.Method + " " + req.RequestURI, req.Host, string(b), req.ContentLength, req.Header}
		rw.WriteHeader(http.StatusTeapot)
		fmt.Fprint(rw, "short and stout")
	})
	r := start(t, w, []string{"allowed.test"})
	for name, c := range map[string]struct {
		text, line, body string
		length           int64
	}{
		"a path that others would clean": {"GET http://ALLOWED.test./a//b/../%7e?q=%20#", "", "", 0},
		"a query alone":                  {"GET http://allowed.test?q=1", "GET /?q=1", "", 0},
		"a length":                       {"POST http://allowed.test/p%2Fq", "POST /p%2Fq", "abc", 3},
		"chunks":                         {"PUT http://allowed.test:80/x", "PUT /x", "abcdef", -1},
	} {
		t.Run(name, func(t *testing.T) {
			head := c.text + " HTTP/1.1\r\nHost: allowed.test\r\nProxy-Authorization: Basic eDp5\r\nX-Mine: 1\r\n"
			switch {
			case c.length > 0:
				head += fmt.Sprintf("Content-Length: %d\r\n\r\n%s", c.length, c.body)
			case c.length < 0:
				head += "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n3\r\ndef\r\n0\r\nX-Trailer: 1\r\n\r\n"
			default:
				head += "\r\n"
			}
			answer := r.say(head)
			if c.line == "" {
				wantStatus(t, answer, "403", ReasonRequest)
				return
			}
			s := <-got
			if s.line != c.line || s.host != "allowed.test" || s.body != c.body || s.length != c.length {
				t.Errorf("the host saw %+v, want %s with %q of %d", s, c.line, c.body, c.length)
			}
			if s.fields.Get("Proxy-Authorization") != "" || s.fields.Get("X-Mine") != "1" || s.fields.Get("X-Trailer") != "" {
				t.Errorf("the host saw the fields %v", s.fields)
			}
			if !strings.HasPrefix(answer, "HTTP/1.1 418 ") || !strings.HasSuffix(answer, "short and stout") {
				t.Errorf("answer = %q", answer)
			}
		})
	}
}

func TestFieldsForTheProxyDoNotReachTheClient(t *testing.T) {
	w := newWorld()
	raw(t, w, func(conn net.Conn) {
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Internal\r\nX-Internal: 1\r\nKeep-Alive: timeout=5\r\n"+
			"Proxy-Authenticate: Basic\r\nX-Kept: 1\r\nContent-Length: 2\r\n\r\nok")
	})
	r := start(t, w, []string{"allowed.test"})
	want := "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\nX-Kept: 1\r\n\r\nok"
	if got := r.say(get); got != want {
		t.Errorf("answer = %q, want %q", got, want)
	}
}

func TestABodyOfUnknownLengthReachesTheClientWhole(t *testing.T) {
	w := newWorld()
	want := strings.Repeat("0123456789", 100_000)
	plainServer(t, w, func(rw http.ResponseWriter, _ *http.Request) {
		for part := range slices.Chunk([]byte(want), 99_991) {
			_, _ = rw.Write(part)
			rw.(http.Flusher).Flush()
		}
	})
	r := start(t, w, []string{"allowed.test"})
	resp, err := fetch(t, r.client(nil), http.MethodGet, "http://allowed.test/", nil)
	if got := body(t, resp, err); got != want {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
	old := r.say("GET http://allowed.test/ HTTP/1.0\r\n\r\n")
	if fields, got, _ := strings.Cut(old, "\r\n\r\n"); got != want || strings.Contains(fields, "chunked") {
		t.Errorf("HTTP/1.0: %d bytes, want %d, as %q", len(got), len(want), fields)
	}
}

func TestARedirectIsForTheClientToFollow(t *testing.T) {
	w := newWorld()
	plainServer(t, w, func(rw http.ResponseWriter, req *http.Request) {
		http.Redirect(rw, req, "http://other.test/", http.StatusFound)
	})
	r := start(t, w, []string{"allowed.test"})
	if got := r.say(get); !strings.HasPrefix(got, "HTTP/1.1 302 ") || !strings.Contains(got, "Location: http://other.test/") {
		t.Errorf("answer = %q", got)
	}
	resp, err := fetch(t, r.client(nil), http.MethodGet, "http://allowed.test/", nil)
	if got := body(t, resp, err); !strings.Contains(got, string(ReasonHost)) {
		t.Errorf("a client that follows gets %q", got)
	}
	asked, _ := w.traces()
	if got, want := fmt.Sprint(asked), "[allowed.test allowed.test]"; got != want {
		t.Errorf("looked up %s, want %s", got, want)
	}
}

func TestAConnectionCarriesOneRequest(t *testing.T) {
	w := newWorld()
	served := make(chan string, 10)
	plainServer(t, w, func(_ http.ResponseWriter, req *http.Request) { served <- req.RequestURI })
	r := start(t, w, []string{"allowed.test"})
	got := r.say(get + "POST http://allowed.test/second HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
	if strings.Count(got, "HTTP/1.1 ") != 1 || !strings.Contains(got, "Connection: close") || len(served) != 1 {
		t.Errorf("served %d, answer %q", len(served), got)
	}
}

func TestAWebSocketNeedsATunnel(t *testing.T) {
	w := newWorld()
	plainServer(t, w, hello)
	upgrade := "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n\r\n"
	roots := tlsServer(t, w, func(rw http.ResponseWriter, req *http.Request) {
		conn, _, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\nframe", req.Header.Get("Upgrade"))
	})
	r := start(t, w, []string{"allowed.test", "example.com"})
	wantStatus(t, r.say("GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n"+upgrade), "403", ReasonRequest)

	conn := tls.Client(r.tunnel("example.com:443"), &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12})
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: example.com\r\n"+upgrade); err != nil {
		t.Fatal(err)
	}
	if got := all(t, conn); !strings.HasPrefix(got, "HTTP/1.1 101 ") || !strings.HasSuffix(got, "frame") {
		t.Errorf("in a tunnel: %q", got)
	}
}

func TestAHostThatChangesTheProtocolIsNotPassedOn(t *testing.T) {
	w := newWorld()
	raw(t, w, func(conn net.Conn) {
		fmt.Fprint(conn, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
	})
	r := start(t, w, []string{"allowed.test"})
	if got := r.say(get); !strings.HasPrefix(got, "HTTP/1.1 502 ") {
		t.Errorf("answer = %q", got)
	}
}

// raw is a server at allowed.test:80 that reads one head and the first byte of
// the body, and then does as it is told. A byte that it left unread would end
// the connection with a reset and not with an end of file.
func raw(t *testing.T, w *world, do func(net.Conn)) {
	t.Helper()
	l := listen(t)
	w.put("allowed.test", "93.184.216.34", 80, l.Addr().String())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(conn)
			if req, err := http.ReadRequest(r); err == nil {
				if req.ContentLength > 0 {
					_, _ = r.ReadByte()
				}
				do(conn)
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
}

func TestAHostThatBreaksOffIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		says string
		why  string
	}{
		"without a word":        {"", "unexpected EOF"},
		"in the head":           {"HTTP/1.1 200 OK\r\nX:", "unexpected EOF"},
		"with something else":   {"220 smtp.test ESMTP\r\n", "malformed"},
		"with a head too large": {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n\r\n", "its head is larger than may be"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			raw(t, w, func(conn net.Conn) { fmt.Fprint(conn, c.says) })
			r := start(t, w, []string{"allowed.test"})
			// The client waits with its body, which must not hold the answer up.
			got := r.say("POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 9\r\n\r\nx")
			if !strings.HasPrefix(got, "HTTP/1.1 502 ") || !strings.Contains(got, c.why) {
				t.Errorf("answer = %.200q, want 502 with %q", got, c.why)
			}
		})
	}
}

func TestABodyThatWasCutDoesNotLookWhole(t *testing.T) {
	for name, framing := range map[string]string{"a length": "Content-Length: 100\r\n\r\npart", "chunks": "Transfer-Encoding: chunked\r\n\r\n4\r\npart\r\n"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			raw(t, w, func(conn net.Conn) { fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n"+framing) })
			r := start(t, w, []string{"allowed.test"})
			resp, err := fetch(t, r.client(nil), http.MethodGet, "http://allowed.test/", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if got, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("the body is %q, %v", got, err)
			}
		})
	}
}
