package meter

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// long is how long a test waits for what comes at once when all is well: less than the
// patience of `make mutants`, which takes a test that hangs for one that caught nothing.
const long = 15 * time.Second

// world is what the names of a test lead to: addresses that are refused or not
// as on the real network, and servers on loopback behind them.
type world struct {
	mu      sync.Mutex
	names   map[string][]netip.Addr
	servers map[netip.AddrPort]string
	asked   []string
	dialled []netip.AddrPort
}

func (w *world) Resolve(_ context.Context, name string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, name)
	if addrs := w.names[name]; addrs != nil {
		return addrs, nil
	}
	return nil, errors.New("no such host")
}

func (w *world) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, to)
	server := w.servers[to]
	w.mu.Unlock()
	if server == "" {
		return nil, errors.New("nobody is at " + to.String())
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", server)
}

// traces returns which names were looked up and which addresses dialled.
func (w *world) traces() (asked []string, dialled []netip.AddrPort) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked), slices.Clone(w.dialled)
}

// put places a server at a name and a port, behind a public address.
func (w *world) put(name, address string, port uint16, server string) {
	addr := netip.MustParseAddr(address)
	w.names[name] = []netip.Addr{addr}
	w.servers[netip.AddrPortFrom(addr, port)] = server
}

func newWorld() *world {
	return &world{names: map[string][]netip.Addr{}, servers: map[netip.AddrPort]string{}}
}

// rig is a proxy that runs, and what it said.
type rig struct {
	*Egress

	t     *testing.T
	addr  string
	world *world

	mu      sync.Mutex
	denials []Denial // by told
}

// start runs a proxy until the test ends, and sees that nothing of it is left.
func start(t *testing.T, w *world, entries []string, change ...func(*Egress)) *rig {
	t.Helper()
	before := runtime.NumGoroutine()
	r := &rig{t: t, world: w, Egress: &Egress{Allow: hosts(t, entries...), Resolve: w.Resolve, Dial: w.Dial}}
	r.Denied = func(d Denial) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.denials = append(r.denials, d)
	}
	for _, f := range change {
		f(r.Egress)
	}
	l := listen(t)
	r.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Serve = %v", err)
			}
		case <-time.After(long):
			t.Error("Serve did not return")
		}
		noneLeft(t, before)
	})
	return r
}

// noneLeft waits until there are no more goroutines than before. Servers and
// clients of the test end a moment after they are told to.
func noneLeft(t *testing.T, before int) {
	t.Helper()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	end := time.Now().Add(long)
	for runtime.NumGoroutine() > before && time.Now().Before(end) {
		time.Sleep(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		stacks := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before\n%s", n, before, stacks[:runtime.Stack(stacks, true)])
	}
}

func listen(tb testing.TB) net.Listener {
	tb.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func hosts(tb testing.TB, entries ...string) Hosts {
	tb.Helper()
	h, err := ParseHosts(entries)
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

// plainServer is an HTTP server at allowed.test:80.
func plainServer(t *testing.T, w *world, handler http.HandlerFunc) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	w.put("allowed.test", "93.184.216.34", 80, s.Listener.Addr().String())
}

// tlsServer is an HTTPS server at example.com:443, for which its certificate is.
func tlsServer(tb testing.TB, w *world, handler http.HandlerFunc) *x509.CertPool {
	tb.Helper()
	s := httptest.NewTLSServer(handler)
	tb.Cleanup(s.Close)
	w.put("example.com", "93.184.216.35", 443, s.Listener.Addr().String())
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return pool
}

// client is a real one that goes through the proxy.
func (r *rig) client(roots *x509.CertPool) *http.Client {
	return clientOf(r.t, r.addr, roots)
}

func clientOf(tb testing.TB, proxy string, roots *x509.CertPool) *http.Client {
	tb.Helper()
	tr := &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: proxy}),
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
	tb.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: long}
}

// say sends raw bytes to the proxy and returns all that comes back.
func (r *rig) say(text string) string {
	r.t.Helper()
	conn := r.connect()
	if _, err := io.WriteString(conn, text); err != nil {
		r.t.Fatal(err)
	}
	return all(r.t, conn)
}

func (r *rig) connect() net.Conn {
	r.t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(r.t.Context(), "tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(long)); err != nil {
		r.t.Fatal(err)
	}
	return conn
}

func all(t *testing.T, conn net.Conn) string {
	t.Helper()
	got, err := io.ReadAll(conn)
	if err, ok := errors.AsType[net.Error](err); ok && err.Timeout() {
		t.Fatalf("nothing ended the connection; it said %q", got)
	}
	return string(got)
}

// tunnel sends a CONNECT and returns the connection when it is a tunnel.
func (r *rig) tunnel(authority string) net.Conn {
	r.t.Helper()
	conn, err := r.tryTunnel(authority)
	if err != nil {
		r.t.Fatal(err)
	}
	return conn
}

func (r *rig) tryTunnel(authority string) (net.Conn, error) {
	r.t.Helper()
	conn := r.connect()
	if _, err := io.WriteString(conn, "CONNECT "+authority+" HTTP/1.1\r\nHost: "+authority+"\r\n\r\n"); err != nil {
		return nil, err
	}
	line, err := bufio.NewReaderSize(onlyOne{conn}, 16).ReadString('\n')
	if err != nil || !strings.Contains(line, " 200 ") {
		return nil, fmt.Errorf("CONNECT %s = %q, %w", authority, line, err)
	}
	_, err = io.ReadFull(conn, make([]byte, len("\r\n")))
	return conn, err
}

// onlyOne reads single bytes, so that nothing of what follows is taken.
type onlyOne struct{ io.Reader }

func (o onlyOne) Read(p []byte) (int, error) { return o.Reader.Read(p[:1]) }

// told returns what the proxy told so far.
func (r *rig) told() []Denial {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.denials)
}

// denied returns what the proxy told, once it has told something.
func (r *rig) denied() []Denial {
	r.t.Helper()
	for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if list := r.told(); len(list) > 0 {
			return list
		}
	}
	r.t.Fatal("nothing was denied")
	return nil
}

// wantDenied checks the only denial.
func (r *rig) wantDenied(reason loop.Reason) Denial {
	r.t.Helper()
	list := r.denied()
	if len(list) != 1 || list[0].Reason != reason {
		r.t.Fatalf("told %+v, want one %s", list, reason)
	}
	if list[0].At.IsZero() {
		r.t.Error("the denial has no time")
	}
	return list[0]
}

// wantStatus checks how an answer begins and that it says why in one line.
func wantStatus(t *testing.T, answer string, status string, reason loop.Reason) {
	t.Helper()
	head, body, _ := strings.Cut(answer, "\r\n\r\n")
	if !strings.HasPrefix(head, "HTTP/1.1 "+status+" ") {
		t.Fatalf("answer = %q, want status %s", answer, status)
	}
	if !strings.Contains(body, string(reason)) || strings.Count(body, "\n") != 1 {
		t.Errorf("body = %q, want one line with %s", body, reason)
	}
}

// get is a request for a host that tests allow.
const get = "GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n"

// dialTo reaches one server whatever is asked for.
func dialTo(server string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, server)
	}
}
