package meter

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// corporate is a proxy that takes CONNECT with a password, and says what it was
// asked for.
type corporate struct {
	net.Listener
	asked chan string
	done  chan struct{}
}

func startCorporate(t *testing.T, to string, answer string) *corporate {
	t.Helper()
	c := &corporate{Listener: listen(t), asked: make(chan string, 10), done: make(chan struct{})}
	go c.run(to, answer)
	t.Cleanup(func() {
		_ = c.Close()
		<-c.done
	})
	return c
}

func (c *corporate) run(to, answer string) {
	defer close(c.done)
	for {
		conn, err := c.Accept()
		if err != nil {
			return
		}
		c.serve(conn, to, answer)
	}
}

func (c *corporate) serve(conn net.Conn, to, answer string) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	req, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	c.asked <- req.Method + " " + req.RequestURI + " " + req.Header.Get("Proxy-Authorization")
	_, _ = io.WriteString(conn, answer)
	if !strings.Contains(answer, " 200 ") {
		return
	}
	host, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer host.Close()
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(conn, host)
		_ = closeWrite(conn)
	}()
	_, _ = io.Copy(host, in)
	_ = closeWrite(host)
	<-back
}

// by is the way by one proxy, wherever it leads.
func by(proxy *url.URL) func(*url.URL) (*url.URL, error) {
	return func(*url.URL) (*url.URL, error) { return proxy, nil }
}

func upstream(c *corporate) func(*Egress) {
	return func(e *Egress) {
		e.Upstream = by(&url.URL{Scheme: "http", Host: c.Addr().String(), User: url.UserPassword("me", "s3cret")})
	}
}

const agreed = "HTTP/1.1 200 Connection established\r\n\r\n"

func TestTheWayOutMayBeAnotherProxy(t *testing.T) {
	w := newWorld()
	roots := tlsServer(t, w, hello)
	plainServer(t, w, hello)
	for url, c := range map[string]struct{ server, asked string }{
		"https://example.com/": {w.servers[netip.MustParseAddrPort("93.184.216.35:443")], "CONNECT example.com:443 Basic bWU6czNjcmV0"},
		"http://allowed.test/": {w.servers[netip.MustParseAddrPort("93.184.216.34:80")], "CONNECT allowed.test:80 Basic bWU6czNjcmV0"},
	} {
		t.Run(url, func(t *testing.T) {
			proxy := startCorporate(t, c.server, agreed)
			r := start(t, w, []string{"example.com", "allowed.test"}, upstream(proxy))
			client := r.client(roots)
			resp, err := fetch(t, client, http.MethodGet, url, nil)
			if got := body(t, resp, err); got != "hello" {
				t.Errorf("got %q", got)
			}
			client.CloseIdleConnections()
			if got := <-proxy.asked; got != c.asked {
				t.Errorf("the proxy was asked %q, want %q", got, c.asked)
			}
			if asked, dialled := w.traces(); len(asked)+len(dialled) > 0 {
				t.Errorf("looked up %v, dialled %v", asked, dialled)
			}
		})
	}
}

func TestAProxyThatRefusesIsSaidWithoutItsPassword(t *testing.T) {
	for name, answer := range map[string]string{
		"by a status":   "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
		"by no word":    "",
		"by an endless": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 100<<10),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			proxy := startCorporate(t, "", answer)
			r := start(t, w, []string{"allowed.test"}, upstream(proxy))
			got := r.say(get)
			if !strings.HasPrefix(got, "HTTP/1.1 502 ") || !strings.Contains(got, "ask the proxy "+proxy.Addr().String()) {
				t.Errorf("answer = %q", got)
			}
			if strings.Contains(got, "s3cret") || strings.Contains(got, "bWU6") {
				t.Errorf("the answer has the password: %q", got)
			}
		})
	}
}

func TestWhatNeedsNoProxyIsReachedWithoutAndItsAddressIsChecked(t *testing.T) {
	w := newWorld()
	plainServer(t, w, hello)
	proxy := startCorporate(t, "", agreed)
	r := start(t, w, []string{"allowed.test"}, upstream(proxy), func(e *Egress) {
		behind := e.Upstream
		e.Upstream = func(to *url.URL) (*url.URL, error) {
			if to.Host == "allowed.test:80" {
				return nil, nil
			}
			return behind(to)
		}
	})
	if got := r.say(get); !strings.Contains(got, "hello") {
		t.Errorf("answer = %q", got)
	}
	if asked, dialled := w.traces(); len(asked) != 1 || len(dialled) != 1 || len(proxy.asked) > 0 {
		t.Errorf("looked up %v, dialled %v, and %d asked of the proxy", asked, dialled, len(proxy.asked))
	}
}

func TestAProxyThatCannotBeReadIsNamedWithoutItsPassword(t *testing.T) {
	r := start(t, newWorld(), []string{"allowed.test"}, func(e *Egress) {
		e.Upstream = func(*url.URL) (*url.URL, error) { return nil, errors.New("parse me:s3cret@") }
	})
	if got := r.say(get); !strings.HasPrefix(got, "HTTP/1.1 502 ") || !strings.Contains(got, "HTTPS_PROXY") || strings.Contains(got, "s3cret") {
		t.Errorf("answer = %q", got)
	}
}

func TestAProxyOfAnUnknownKindIsRefused(t *testing.T) {
	r := start(t, newWorld(), []string{"allowed.test"}, func(e *Egress) { e.Upstream = by(&url.URL{Scheme: "socks5", Host: "127.0.0.1:1"}) })
	if got := r.say(get); !strings.HasPrefix(got, "HTTP/1.1 502 ") || !strings.Contains(got, "write http or https") {
		t.Errorf("answer = %q", got)
	}
}

func TestAProxyIsReachedAtThePortOfItsScheme(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for proxy, want := range map[string]string{
		"http://127.0.0.1": "127.0.0.1:80", "https://127.0.0.1": "127.0.0.1:443", "http://127.0.0.1:3128": "127.0.0.1:3128", "https://[::1]:3129": "[::1]:3129",
	} {
		u, err := url.Parse(proxy)
		if err != nil {
			t.Fatal(err)
		}
		if conn, err := (&Egress{}).dialAddr(ctx, netip.MustParseAddrPort("93.184.216.34:81")); err == nil || !strings.Contains(err.Error(), "93.184.216.34:81:") {
			t.Errorf("without a proxy: %v, %v", conn, err)
		}
		if conn, err := dialProxy(ctx, u); err == nil || !strings.Contains(err.Error(), want+":") {
			t.Errorf("%s: %v, %v, want %s", proxy, conn, err, want)
		}
	}
}

func TestAProxyThatCannotBeAskedIsAnError(t *testing.T) {
	ours, theirs := net.Pipe()
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	if conn, err := requestTunnel(ours, &url.URL{}, place{name: "allowed.test", port: 80}, 1000); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("ask = %v, %v, want that the connection is closed", conn, err)
	}
}

// What a tunnel by a proxy has said in full is over for the host, too.
func TestTheEndOfATunnelIsSaidToAProxy(t *testing.T) {
	l := listen(t)
	defer l.Close()
	ours, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	theirs, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	if err := (&countedConn{Conn: &bufferedConn{Conn: ours, in: bufio.NewReader(ours)}}).CloseWrite(); err != nil {
		t.Error(err)
	}
	if got := all(t, theirs); got != "" {
		t.Errorf("the proxy read %q", got)
	}
	pipe, _ := net.Pipe()
	if err := closeWrite(pipe); err != nil {
		t.Errorf("what cannot say its end alone: %v", err)
	}
}

func TestTheCertificateOfAProxyIsChecked(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	defer s.Close()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, newWorld(), []string{"allowed.test"}, func(e *Egress) { e.Upstream = by(u) })
	if got := r.say(get); !strings.HasPrefix(got, "HTTP/1.1 502 ") || !strings.Contains(got, "certificate") {
		t.Errorf("answer = %q", got)
	}
}

func TestNamesAndAddressesAreCheckedBeforeAnotherProxyIsAsked(t *testing.T) {
	w := newWorld()
	proxy := startCorporate(t, "", agreed)
	r := start(t, w, []string{"allowed.test", "10.0.0.1"}, upstream(proxy), func(e *Egress) {
		e.Allow = append(e.Allow, Host{Name: "169.254.169.254"})
	})
	for host, reason := range map[string]string{"other.test": "host_not_listed", "169.254.169.254": "resolved_address"} {
		got := r.say(fmt.Sprintf("GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n", host, host))
		if !strings.HasPrefix(got, "HTTP/1.1 403 ") || !strings.Contains(got, reason) {
			t.Errorf("%s: %q", host, got)
		}
	}
	if len(proxy.asked) > 0 {
		t.Errorf("the proxy was asked %s", <-proxy.asked)
	}
}
