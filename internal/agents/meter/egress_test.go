package meter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/ground/fault"
)

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }

func body(t *testing.T, resp *http.Response, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

func fetch(t *testing.T, c *http.Client, method, url string, send io.Reader) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, send)
	if err != nil {
		t.Fatal(err)
	}
	return c.Do(req)
}

func TestAListedHostIsReachedByRealClients(t *testing.T) {
	w := newWorld()
	plainServer(t, w, hello)
	roots := tlsServer(t, w, hello)
	r := start(t, w, []string{"allowed.test", "example.com"})
	for _, url := range []string{"http://allowed.test/", "https://example.com/"} {
		resp, err := fetch(t, r.client(roots), http.MethodGet, url, nil)
		if got := body(t, resp, err); got != "hello" {
			t.Errorf("%s = %q", url, got)
		}
	}
	if sent, received := r.Traffic(); sent == 0 || received == 0 {
		t.Errorf("traffic = %d, %d", sent, received)
	}
}

// TestCurlUsesTheProxy runs where there is a curl; other tests say the same of
// net/http.
func TestCurlUsesTheProxy(t *testing.T) {
	w := newWorld()
	plainServer(t, w, hello)
	tlsServer(t, w, hello)
	r := start(t, w, []string{"allowed.test", "example.com"})
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Log("there is no curl here; net/http alone was tried")
		resp, err := fetch(t, r.client(nil), http.MethodGet, "http://allowed.test/", nil)
		body(t, resp, err)
		return
	}
	run := func(args ...string) string {
		args = append([]string{"-sk", "--max-time", "10", "-w", "|%{http_code}|%{http_connect}", "-x", "http://" + r.addr}, args...)
		out, _ := exec.CommandContext(t.Context(), curl, args...).CombinedOutput()
		return string(out)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"plain":               {[]string{"http://allowed.test/"}, "hello|200|000"},
		"TLS":                 {[]string{"https://example.com/"}, "hello|200|200"},
		"a body":              {[]string{"-d", "x=1", "http://allowed.test/"}, "hello|200|000"},
		"a body with Expect":  {[]string{"-H", "Expect: 100-continue", "-d", "x=1", "http://allowed.test/"}, "hello|200|000"},
		"another host":        {[]string{"https://other.test/"}, "|000|403"},
		"another plain host":  {[]string{"http://other.test/"}, "network: [other.test]\n|403|000"},
		"another name in TLS": {[]string{"--connect-to", "other.test:443:example.com:443", "https://other.test/"}, "|000|200"},
	} {
		if got := run(c.args...); !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: curl says %q, want %q", name, got, c.want)
		}
	}
}

func TestTheZeroValueLetsNothingPass(t *testing.T) {
	w := newWorld()
	r := start(t, w, nil)
	wantStatus(t, r.say(get), "403", ReasonHost)
	wantStatus(t, r.say("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n"), "403", ReasonHost)
	if asked, _ := w.traces(); len(asked) > 0 {
		t.Errorf("looked up %v: a look-up is a message", asked)
	}
}

func TestADenialSaysWhatToWrite(t *testing.T) {
	for name, c := range map[string]struct{ authority, want string }{
		"a name":                      {"other.test:443", "network: [other.test]"},
		"a name on another port":      {"other.test:8443", "network: [other.test:8443]"},
		"a listed name, another port": {"example.com:8443", "network: [example.com:8443]"},
		"an address":                  {"93.184.216.34:443", "network: [93.184.216.34]"},
		"an IPv6 address":             {"[2606:2800::1]:443", `network: ["2606:2800::1"]`},
		"an IPv6 address and a port":  {"[2606:2800::1]:8443", `network: ["[2606:2800::1]:8443"]`},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, newWorld(), []string{"example.com"})
			got := r.say("CONNECT " + c.authority + " HTTP/1.1\r\nHost: " + c.authority + "\r\n\r\n")
			d := r.denied()[0]
			wantStatus(t, got, "403", d.Reason)
			line, _, _ := strings.Cut(got, "\r\n")
			if !strings.Contains(line, c.want) || !strings.Contains(line, "denied "+c.authority) {
				t.Errorf("status line = %q, want %q in it", line, c.want)
			}
			if d.hostPort() != c.authority {
				t.Errorf("told %s, want %s", d.hostPort(), c.authority)
			}
			entry := strings.Trim(strings.TrimSuffix(strings.TrimPrefix(c.want, "network: ["), "]"), `"`)
			if _, reason := hosts(t, entry).findEntries(placeFor(t, c.authority)); reason != "" {
				t.Errorf("the entry %s does not allow it: %s", entry, reason)
			}
		})
	}
}

func TestADenialIsOneLineOfASCIIWhateverWasAsked(t *testing.T) {
	r := start(t, newWorld(), nil)
	got := r.say("CONNECT " + strings.Repeat("%0d%0aSet-Cookie:x", 50) + ":443 HTTP/1.1\r\nHost: a\r\n\r\n")
	wantStatus(t, got, "403", ReasonSpelling)
	if d := r.wantDenied(ReasonSpelling); len(d.Host) > maxShortened+3 {
		t.Errorf("the host has %d bytes", len(d.Host))
	}
	if line := (Denial{Host: "a\r\nb\x1b[31m\u202e", Reason: ReasonHost}).String(); strings.ContainsAny(line, "\r\n\x1b\u202e") {
		t.Errorf("line = %q", line)
	}
}

func TestAHostThatIsNotReachedIsNoDenial(t *testing.T) {
	w := newWorld()
	w.put("allowed.test", "93.184.216.34", 80, "")
	r := start(t, w, []string{"allowed.test", "nowhere.test"})
	for name, c := range map[string]struct{ text, want string }{
		"nobody listens":  {get, "nobody is at 93.184.216.34:80"},
		"no such name":    {"GET http://nowhere.test/ HTTP/1.1\r\nHost: nowhere.test\r\n\r\n", "no such host"},
		"with a tunnel":   {"CONNECT nowhere.test:443 HTTP/1.1\r\nHost: nowhere.test\r\n\r\n", "no such host"},
		"with a body too": {"POST http://nowhere.test/ HTTP/1.1\r\nHost: nowhere.test\r\nContent-Length: 9\r\n\r\nx", "no such host"},
	} {
		if got := r.say(c.text); !strings.HasPrefix(got, "HTTP/1.1 502 ") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want 502 with %q", name, got, c.want)
		}
	}
	if told := r.told(); len(told) > 0 {
		t.Errorf("told %+v", told)
	}
}

func TestTheNextAddressIsTriedAndNoOtherIsDialled(t *testing.T) {
	w := newWorld()
	plainServer(t, w, hello)
	dead, alive := netip.MustParseAddr("2606:2800::1"), w.names["allowed.test"][0]
	w.names["allowed.test"] = []netip.Addr{netip.MustParseAddr("127.0.0.1"), dead, netip.MustParseAddr("10.0.0.1"), alive}
	r := start(t, w, []string{"allowed.test"})
	if got := r.say(get); !strings.HasSuffix(got, "hello") {
		t.Errorf("answer = %q", got)
	}
	_, dialled := w.traces()
	if got, want := fmt.Sprint(dialled), "[[2606:2800::1]:80 93.184.216.34:80]"; got != want {
		t.Errorf("dialled %s, want %s", got, want)
	}
}

func TestATunnelPassesBothWaysAndBothEnds(t *testing.T) {
	w := newWorld()
	l := listen(t)
	w.put("allowed.test", "93.184.216.34", 443, l.Addr().String())
	hello := helloOf(t, config("allowed.test"))
	done := make(chan string, 1)
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		got, _ := io.ReadAll(conn) // until the client has no more to say
		_, _ = conn.Write([]byte("answer"))
		done <- string(got)
	}()
	t.Cleanup(func() { _ = l.Close() })
	r := start(t, w, []string{"allowed.test"})
	conn := r.tunnel("allowed.test:443")
	if _, err := conn.Write(append(bytes.Clone(hello), "more"...)); err != nil {
		t.Fatal(err)
	}
	if err := closeWrite(conn); err != nil {
		t.Fatal(err)
	}
	if got := all(t, conn); got != "answer" {
		t.Errorf("the client got %q", got)
	}
	if got, want := <-done, string(hello)+"more"; got != want {
		t.Errorf("the host got %d bytes, want %d", len(got), len(want))
	}
}

// TestAHostHasAnsweredOnceItGoesOnAfterTheClientsReply plays a conversation inside
// of a tunnel, behind the client's hello.
func TestAHostHasAnsweredOnceItGoesOnAfterTheClientsReply(t *testing.T) {
	for name, c := range map[string]struct {
		talk string // who says something, in turn: h is the host, c the client
		want int
	}{
		"the host greets":                     {"h", 0},
		"the host sends more without a reply": {"hh", 0},
		"the client speaks before the host":   {"chh", 0},
		"the client replies":                  {"hc", 0},
		"the host answers the reply":          {"hch", 1},
		"it is told once for a conversation":  {"hchchh", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			l := listen(t)
			t.Cleanup(func() { _ = l.Close() })
			w.put("allowed.test", "93.184.216.34", 443, l.Addr().String())
			told := make(chan string, len(c.talk))
			r := start(t, w, []string{"allowed.test"}, func(e *Egress) { e.Answered = func(host string) { told <- host } })
			conn := r.tunnel("allowed.test:443")
			host, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer host.Close()
			send := func(from, to net.Conn, what []byte) {
				t.Helper()
				if _, err := from.Write(what); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(to, make([]byte, len(what))); err != nil {
					t.Fatal(err)
				}
			}
			send(conn, host, helloOf(t, config("allowed.test")))
			for _, who := range c.talk {
				if who == 'h' {
					send(host, conn, []byte("x"))
				} else {
					send(conn, host, []byte("x"))
				}
			}
			if len(told) != c.want {
				t.Errorf("told %d times, want %d", len(told), c.want)
			}
			if c.want > 0 && <-told != "allowed.test" {
				t.Error("another host was told")
			}
		})
	}
}

func TestServeEndsWithItsListener(t *testing.T) {
	l := listen(t)
	e := Egress{}
	done := make(chan error, 1)
	go func() { done <- e.Serve(context.Background(), l) }()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET "); err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("Serve = %v", err)
		}
	case <-time.After(long):
		t.Fatal("Serve did not return")
	}
	if got := all(t, conn); got != "" {
		t.Errorf("the client got %q", got)
	}
}

// broken is a listener that fails a few times, or always.
type broken struct {
	net.Listener
	fails int
}

func (b *broken) Accept() (net.Conn, error) {
	if b.fails > 0 {
		b.fails--
		return nil, errors.New("too many open files")
	}
	return b.Listener.Accept()
}

func TestAcceptingGoesOnAfterAFailure(t *testing.T) {
	l := listen(t)
	e := Egress{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Serve(ctx, &broken{l, 3}) }()
	r := &rig{t: t, addr: l.Addr().String()}
	wantStatus(t, r.say(get), "403", ReasonHost)
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Serve = %v", err)
	}
}

func TestAPointBeforeTheDialCanFail(t *testing.T) {
	w := newWorld()
	plainServer(t, w, hello)
	plan, err := fault.Parse("meter.dial.before=EIO")
	if err != nil {
		t.Fatal(err)
	}
	e := Egress{Resolve: w.Resolve, Dial: w.Dial}
	ctx, watch := watchConn(fault.With(t.Context(), plan), e.limits())
	defer watch.end()
	_, err = e.connectTo(ctx, watch, placeFor(t, "allowed.test:80"))
	if _, ok := errors.AsType[*unreachableError](err); !ok || !errors.Is(err, syscall.EIO) || len(w.dialled) > 0 {
		t.Errorf("open = %v, dialled %v", err, w.dialled)
	}
}

type brokenListener struct{ net.Listener }

func (brokenListener) Accept() (net.Conn, error) { return nil, errors.New("no more of it") }
func (brokenListener) Addr() net.Addr            { return &net.TCPAddr{Port: 7} }
func (brokenListener) Close() error              { return nil }

func TestServeGivesUpAListenerThatStaysBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if err := new(Egress).Serve(t.Context(), brokenListener{}); err == nil || err.Error() != "accept on :7: no more of it" {
			t.Errorf("Serve = %v, want the error of its listener", err)
		}
		if took := time.Since(begin); took != 2047*acceptPause {
			t.Errorf("it was tried for %s, want pauses that double", took)
		}
	})
}
