package meter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// endless is a reader of zeros.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func limited(change func(*Limits)) func(*Egress) {
	return func(e *Egress) { change(&e.Limits) }
}

func TestNoMoreIsSentThanMayLeave(t *testing.T) {
	for name, c := range map[string]struct {
		limits func(*Limits)
		chunks bool
	}{
		"of one connection":          {func(l *Limits) { l.Sent = 10_000 }, false},
		"of one connection, chunked": {func(l *Limits) { l.Sent = 10_000 }, true},
		"of all":                     {func(l *Limits) { l.TotalSent = 10_000 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			var got atomic.Int64
			plainServer(t, w, func(_ http.ResponseWriter, req *http.Request) {
				n, _ := io.Copy(io.Discard, req.Body)
				got.Store(n)
			})
			r := start(t, w, []string{"allowed.test"}, limited(c.limits))
			var send io.Reader = bytes.NewReader(make([]byte, 1<<20))
			if c.chunks {
				send = io.LimitReader(endless{}, 1<<20)
			}
			resp, err := fetch(t, r.client(nil), http.MethodPost, "http://allowed.test/", send)
			if err == nil {
				if said := body(t, resp, nil); resp.StatusCode != http.StatusForbidden || !strings.Contains(said, string(ReasonSent)) {
					t.Errorf("status %d, %q", resp.StatusCode, said)
				}
			}
			r.wantDenied(ReasonSent)
			if sent, _ := r.Traffic(); sent != 10_000 {
				t.Errorf("%d bytes were sent, want all that may", sent)
			}
			if got.Load() >= 10_000 {
				t.Errorf("the host read %d bytes", got.Load())
			}
		})
	}
}

// The end of the last chunk counts as well: without it the host waits.
func TestAllOfAChunkedRequestCounts(t *testing.T) {
	var whole int64
	for _, lacks := range []int64{0, 1, 2, 3, 5} {
		w := newWorld()
		plainServer(t, w, func(_ http.ResponseWriter, req *http.Request) { _, _ = io.Copy(io.Discard, req.Body) })
		r := start(t, w, []string{"allowed.test"}, limited(func(l *Limits) { l.Sent = max(whole-lacks, 0) }))
		got := r.say("POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
		if lacks == 0 {
			whole, _ = r.Traffic()
			if !strings.HasPrefix(got, "HTTP/1.1 200 ") {
				t.Fatalf("answer = %q", got)
			}
			continue
		}
		r.wantDenied(ReasonSent)
		wantStatus(t, got, "403", ReasonSent)
	}
}

func TestNoMoreComesBackThanMay(t *testing.T) {
	for name, limits := range map[string]func(*Limits){
		"to one connection": func(l *Limits) { l.Received = 10_000 },
		"to all":            func(l *Limits) { l.TotalReceived = 10_000 },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			plainServer(t, w, func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(rw, io.LimitReader(endless{}, 1<<20)) })
			r := start(t, w, []string{"allowed.test"}, limited(limits))
			resp, err := fetch(t, r.client(nil), http.MethodGet, "http://allowed.test/", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if n, err := io.Copy(io.Discard, resp.Body); err == nil || n >= 10_000 {
				t.Errorf("the client got %d bytes, %v", n, err)
			}
			r.wantDenied(ReasonReceived)
		})
	}
}

func TestTheCapsHoldInsideOfATunnel(t *testing.T) {
	for name, c := range map[string]struct {
		limits func(*Limits)
		want   loop.Reason
	}{
		"sent":     {func(l *Limits) { l.Sent = 100_000 }, ReasonSent},
		"received": {func(l *Limits) { l.Received = 100_000 }, ReasonReceived},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			roots := tlsServer(t, w, func(rw http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body)
				_, _ = io.Copy(rw, io.LimitReader(endless{}, 1<<20))
			})
			r := start(t, w, []string{"example.com"}, limited(c.limits))
			resp, err := fetch(t, r.client(roots), http.MethodPost, "https://example.com/", io.LimitReader(endless{}, 1<<20))
			if err == nil {
				if n, err := io.Copy(io.Discard, resp.Body); err == nil {
					t.Errorf("%d bytes came back", n)
				}
				_ = resp.Body.Close()
			}
			r.wantDenied(c.want)
		})
	}
}

func TestAnAnswerOfExactlyTheCapPasses(t *testing.T) {
	w := newWorld()
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
	raw(t, w, func(conn net.Conn) { fmt.Fprint(conn, answer) })
	r := start(t, w, []string{"allowed.test"}, limited(func(l *Limits) { l.Received = int64(len(answer)) }))
	if got := r.say(get); !strings.HasSuffix(got, "hello") || len(r.told()) > 0 {
		t.Errorf("answer = %q, told %+v", got, r.told())
	}
}

// TestNoQuotaGivesMoreThanThereIs holds for all sequences of transfers over two
// connections.
func TestNoQuotaGivesMoreThanThereIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var total atomic.Int64
		each, all := rapid.Int64Range(0, 100).Draw(t, "each"), rapid.Int64Range(0, 150).Draw(t, "all")
		quotas := []*quota{{left: each, total: &total, cap: all}, {left: each, total: &total, cap: all}}
		var got [2]int64
		for range 20 {
			i, n := rapid.IntRange(0, 1).Draw(t, "connection"), rapid.IntRange(0, 60).Draw(t, "bytes")
			may := quotas[i].takeUpTo(n)
			if may < n && got[i]+int64(may) != each && got[0]+got[1]+int64(may) != all {
				t.Fatalf("%d of %d may pass, though there is room: %v of %d and %d", may, n, got, each, all)
			}
			got[i] += int64(may)
		}
		if got[0] > each || got[1] > each || got[0]+got[1] > all || total.Load() != got[0]+got[1] {
			t.Fatalf("%v passed of %d and %d; the total is %d", got, each, all, total.Load())
		}
	})
}

func TestMoreConnectionsThanMayBeOpenAreTurnedAway(t *testing.T) {
	w := newWorld()
	r := start(t, w, nil, limited(func(l *Limits) { l.Connections = 2 }))
	first, second := r.connect(), r.connect()
	for _, conn := range []net.Conn{first, second} {
		if _, err := io.WriteString(conn, "GET "); err != nil {
			t.Fatal(err)
		}
	}
	wantStatus(t, r.say(get), "403", ReasonConnections)
	r.wantDenied(ReasonConnections)
	_ = first.Close()
	// The slot is free a moment after the close.
	for end := time.Now().Add(long); ; {
		if got := r.say(get); strings.Contains(got, string(ReasonHost)) {
			return
		}
		if time.Now().After(end) {
			t.Fatal("no connection is taken any more")
		}
	}
}

func TestServeEndsThoughAClientThatWasTurnedAwayStaysOn(t *testing.T) {
	l := listen(t)
	e := &Egress{Limits: Limits{Connections: 1}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Serve(ctx, l) }()
	r := &rig{t: t, addr: l.Addr().String()}
	r.connect()
	wantStatus(t, all(t, r.connect()), "403", ReasonConnections)
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("Serve = %v", err)
		}
	case <-time.After(long):
		t.Error("Serve did not return")
	}
}

// A client that reads its answer and does not go may not keep its connection: what
// it has left to say is waited for, but not for long.
func TestAClientThatHasItsAnswerAndStaysIsClosedSoon(t *testing.T) {
	w := newWorld()
	plainServer(t, w, hello)
	tls := listen(t)
	t.Cleanup(func() { _ = tls.Close() }) // The kernel answers.
	w.put("example.com", "93.184.216.35", 443, tls.Addr().String())
	r := start(t, w, []string{"allowed.test", "example.com"})
	denied, answered, tunnel := r.connect(), r.connect(), r.tunnel("example.com:443")
	for conn, text := range map[net.Conn]string{
		denied: strings.ReplaceAll(get, "allowed.test", "other.test"), answered: get, tunnel: string(helloOf(t, config("other.test"))),
	} {
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
	}
	end := time.Now().Add(Limits{}.withDefaults().Opening / 2)
	for name, conn := range map[string]net.Conn{"denied": denied, "answered": answered, "another name in TLS": tunnel} {
		all(t, conn)
		for {
			if _, err := conn.Write([]byte("x")); err != nil {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: the connection is still open", name)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// Closing with unread bytes makes the kernel throw the alert away.
func TestAClientThatSaysMoreBehindAWrongHelloReadsWhyItEnds(t *testing.T) {
	w := newWorld()
	l := listen(t)
	t.Cleanup(func() { _ = l.Close() }) // The kernel answers.
	w.put("example.com", "93.184.216.35", 443, l.Addr().String())
	r := start(t, w, []string{"example.com"})
	conn := r.tunnel("example.com:443")
	if _, err := conn.Write(append(helloOf(t, config("other.test")), make([]byte, 200<<10)...)); err != nil {
		t.Fatal(err)
	}
	if err := closeWrite(conn); err != nil {
		t.Fatal(err)
	}
	if got := all(t, conn); got != string(unrecognizedName) {
		t.Errorf("the client got %q, want the alert", got)
	}
}

func TestAHeadThatMayNotLeaveIsADenial(t *testing.T) {
	w := newWorld()
	plainServer(t, w, hello)
	r := start(t, w, []string{"allowed.test"}, limited(func(l *Limits) { l.Sent = 10 }))
	wantStatus(t, r.say(get), "403", ReasonSent)
	r.wantDenied(ReasonSent)
}

func TestAHeadOfAnAnswerThatMayNotComeInIsADenial(t *testing.T) {
	w := newWorld()
	plainServer(t, w, hello)
	r := start(t, w, []string{"allowed.test"}, limited(func(l *Limits) { l.Received = 10 }))
	wantStatus(t, r.say(get), "403", ReasonReceived)
	r.wantDenied(ReasonReceived)
}

func TestAClientThatBreaksOffInItsChunksIsNoDenial(t *testing.T) {
	w := newWorld()
	plainServer(t, w, func(_ http.ResponseWriter, req *http.Request) { _, _ = io.Copy(io.Discard, req.Body) })
	r := start(t, w, []string{"allowed.test"})
	conn := r.connect()
	if _, err := io.WriteString(conn, "POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"); err != nil {
		t.Fatal(err)
	}
	if err := closeWrite(conn); err != nil {
		t.Fatal(err)
	}
	all(t, conn)
	if told := r.told(); len(told) > 0 {
		t.Errorf("told %+v", told)
	}
}

func TestATunnelOfAClientThatBreaksOffInItsHelloPassesNothing(t *testing.T) {
	w := newWorld()
	l := listen(t)
	t.Cleanup(func() { _ = l.Close() })
	w.put("allowed.test", "93.184.216.34", 443, l.Addr().String())
	r := start(t, w, []string{"allowed.test"})
	conn := r.tunnel("allowed.test:443")
	host, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	raw := helloOf(t, config("allowed.test"))
	if _, err := conn.Write(raw[:len(raw)/2]); err != nil {
		t.Fatal(err)
	}
	if err := closeWrite(conn); err != nil {
		t.Fatal(err)
	}
	if got := all(t, host); got != "" {
		t.Errorf("the host got %q", got)
	}
	_, _ = host.Write([]byte("greeting"))
	if got := all(t, conn); got != "" {
		t.Errorf("the client got %q", got)
	}
}

func TestAnEndThatCannotBeSaidIsAnError(t *testing.T) {
	l := listen(t)
	t.Cleanup(func() { _ = l.Close() })
	conn, err := dialTo(l.Addr().String())(t.Context(), "tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	for name, closed := range map[string]net.Conn{"a connection": conn, "one that is counted": &countedConn{Conn: conn}, "one that was read ahead": &bufferedConn{Conn: conn}} {
		if err := closeWrite(closed); !errors.Is(err, net.ErrClosed) {
			t.Errorf("closeWrite of %s = %v, want that it is closed", name, err)
		}
	}
}

func TestWhatDoesNotReachTheHostIsAnError(t *testing.T) {
	conn, host := net.Pipe()
	_ = host.Close()
	e := &Egress{}
	_, w := watchConn(t.Context(), e.limits())
	defer w.end()
	if n, err := e.newCountedConn(conn, place{}, w).Write([]byte("x")); n != 0 || err == nil {
		t.Errorf("Write = %d, %v with nobody at the other end", n, err)
	}
}

func TestAConnectionIsCutInTime(t *testing.T) {
	const short = 50 * time.Millisecond
	hello := helloOf(t, config("example.com"))
	for name, c := range map[string]struct {
		limits func(l *Limits, longer time.Duration)
		say    string
		hello  bool
		told   int
	}{
		"without a request":         {func(l *Limits, _ time.Duration) { l.Opening = short }, "", false, 0},
		"in the middle of a head":   {func(l *Limits, _ time.Duration) { l.Opening = short }, "GET http://allo", false, 0},
		"before it says hello":      {func(l *Limits, longer time.Duration) { l.Opening = longer }, "CONNECT", false, 0},
		"idle":                      {func(l *Limits, longer time.Duration) { l.Idle = longer }, "CONNECT", true, 0},
		"old":                       {func(l *Limits, longer time.Duration) { l.Age = longer }, "CONNECT", true, 1},
		"old, before it says hello": {func(l *Limits, longer time.Duration) { l.Age = longer }, "CONNECT", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			l := listen(t)
			t.Cleanup(func() { _ = l.Close() }) // it never accepts: the kernel answers
			w.put("example.com", "93.184.216.35", 443, l.Addr().String())
			within := func(longer time.Duration) *rig {
				return start(t, w, []string{"example.com"}, limited(func(l *Limits) { c.limits(l, longer) }))
			}
			var r *rig
			var conn net.Conn
			if c.say == "CONNECT" {
				// A tunnel has to be open before its time is over, also on a busy machine.
				err := errors.ErrUnsupported
				for longer := 10 * short; err != nil; longer *= 2 {
					r = within(longer)
					if conn, err = r.tryTunnel("example.com:443"); err != nil && longer > long {
						t.Fatal(err)
					}
				}
			} else {
				r = within(0)
				conn = r.connect()
				if _, err := io.WriteString(conn, c.say); err != nil {
					t.Fatal(err)
				}
			}
			if c.hello {
				if _, err := conn.Write(hello); err != nil {
					t.Fatal(err)
				}
			}
			if got := all(t, conn); got != "" {
				t.Errorf("the client got %q", got)
			}
			if c.told > 0 {
				r.wantDenied(ReasonTime)
			} else if told := r.told(); len(told) > 0 {
				t.Errorf("told %+v", told)
			}
		})
	}
}

func TestDenialsAreToldUpToALimitAndAnsweredBeyond(t *testing.T) {
	r := start(t, newWorld(), nil, limited(func(l *Limits) { l.Denials = 2 }))
	for range 5 {
		wantStatus(t, r.say(get), "403", ReasonHost)
	}
	if got := len(r.denied()); got != 2 {
		t.Errorf("told %d times, want 2", got)
	}
}

type stopped struct{}

func (stopped) Now() time.Time { return time.Unix(1_800_000_000, 0) }

func TestADenialHasTheTimeOfTheClockAndIsAnsweredInFull(t *testing.T) {
	host := strings.Repeat(strings.Repeat("x", 49)+".", 5) + "x"
	r := start(t, newWorld(), nil, func(e *Egress) { e.Clock = stopped{} })
	got := r.say("GET http://" + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n")
	d := r.wantDenied(ReasonHost)
	if !d.At.Equal(stopped{}.Now()) || d.Detail != "" {
		t.Errorf("it was denied at %s, %q", d.At, d.Detail)
	}
	if got := oneLine(" a~\x7f\n\x1f\u00e9"); got != " a~????" {
		t.Errorf("one line = %q", got)
	}
	if want := "HTTP/1.1 403 " + d.String()[:400] + "\r\n"; !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "\r\n\r\n"+d.String()+"\n") {
		t.Errorf("answer = %q, want %q and %q", got, want, d)
	}
}

func TestABodyWithBrokenChunksIsRefused(t *testing.T) {
	for name, chunks := range map[string]string{
		"an invalid size":         "x\r\nabc\r\n0\r\n\r\n",
		"a line feed alone":       "3\nabc\n0\n\n",
		"more than the size says": "3\r\nabcdef\r\n0\r\n\r\n",
		"a size that is too long": "fffffffffffffffff\r\nabc\r\n0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			whole := make(chan error, 1)
			plainServer(t, w, func(_ http.ResponseWriter, req *http.Request) {
				_, err := io.Copy(io.Discard, req.Body)
				whole <- err
			})
			r := start(t, w, []string{"allowed.test"})
			got := r.say("POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
			wantStatus(t, got, "403", ReasonRequest)
			if err := <-whole; err == nil {
				t.Error("the host got a whole request")
			}
		})
	}
}

func TestALimitThatIsNotSetIsTheOneThatIsDocumented(t *testing.T) {
	want := Limits{
		Connections: 256, Head: 64 << 10, Sent: 64 << 20, Received: 4 << 30, TotalSent: 256 << 20, TotalReceived: 16 << 30,
		Opening: 30 * time.Second, Idle: 5 * time.Minute, Age: time.Hour, Denials: 1000,
	}
	if d := cmp.Diff(want, Limits{}.withDefaults()); d != "" {
		t.Errorf("defaults (-want +got):\n%s", d)
	}
	want = Limits{Connections: 1, Head: 2, Sent: 3, Received: 4, TotalSent: 5, TotalReceived: 6, Opening: 7, Idle: 8, Age: 9, Denials: 10}
	if d := cmp.Diff(want, want.withDefaults()); d != "" {
		t.Errorf("what is set is changed (-want +got):\n%s", d)
	}
}
