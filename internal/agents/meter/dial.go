package meter

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/pawl-run/pawl/internal/ground/fault"
)

// perAddress bounds one attempt, so that an address that never answers leaves
// time for the next.
const perAddress = 5 * time.Second

var beforeDial = fault.New("meter.dial.before")

// connectTo connects to an allowed place, or returns why it cannot or may not be
// reached.
func (e *Egress) connectTo(ctx context.Context, w *watch, to place) (*countedConn, error) {
	if err := beforeDial.Hit(ctx); err != nil {
		return nil, &unreachableError{to, err}
	}
	proxy, err := e.upstreamProxy(to)
	if err != nil {
		return nil, &unreachableError{to, err}
	}
	if proxy != nil {
		conn, err := e.dialThrough(ctx, proxy, to)
		if err != nil {
			return nil, err
		}
		return e.newCountedConn(conn, to, w), nil
	}
	list, err := e.dialableAddrs(ctx, to)
	if err != nil {
		return nil, err
	}
	for _, addr := range list {
		conn, dialErr := e.dialAddr(ctx, addr)
		if dialErr == nil {
			return e.newCountedConn(conn, to, w), nil
		}
		err = errors.Join(err, dialErr)
	}
	return nil, &unreachableError{to, err}
}

// dialAddr takes an address, not a name, so that nothing is looked up again.
func (e *Egress) dialAddr(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, perAddress)
	defer cancel()
	if e.Dial != nil {
		return e.Dial(ctx, to)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", to.String())
}

// upstreamProxy returns the proxy for a place; nil if missing.
func (e *Egress) upstreamProxy(to place) (*url.URL, error) {
	if e.Upstream == nil {
		return nil, nil
	}
	proxy, err := e.Upstream(&url.URL{Scheme: "https", Host: to.authority()})
	if err != nil {
		return nil, errors.New("the proxy of this machine is invalid: check HTTPS_PROXY") // The error may contain a password.
	}
	return proxy, nil
}

// dialThrough opens a tunnel through a proxy.
func (e *Egress) dialThrough(ctx context.Context, proxy *url.URL, to place) (net.Conn, error) {
	if to.addr.IsValid() {
		// An address needs no lookup, so it can be checked here.
		if _, err := e.dialableAddrs(ctx, to); err != nil {
			return nil, err
		}
	}
	conn, err := dialProxy(ctx, proxy)
	if err != nil {
		return nil, &unreachableError{to, fmt.Errorf("dial the proxy %s: %w", proxy.Host, err)}
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	tunnel, err := requestTunnel(conn, proxy, to, e.limits().Head)
	if err != nil {
		_ = conn.Close()
		return nil, &unreachableError{to, fmt.Errorf("ask the proxy %s: %w", proxy.Host, err)}
	}
	return tunnel, nil
}

func dialProxy(ctx context.Context, proxy *url.URL) (net.Conn, error) {
	port := proxy.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[proxy.Scheme]
	}
	addr := net.JoinHostPort(proxy.Hostname(), port)
	switch proxy.Scheme {
	case "http":
		var d net.Dialer
		return d.DialContext(ctx, "tcp", addr)
	case "https":
		d := tls.Dialer{Config: &tls.Config{ServerName: proxy.Hostname(), MinVersion: tls.VersionTLS12}}
		return d.DialContext(ctx, "tcp", addr)
	}
	return nil, fmt.Errorf("its scheme is %q: write http or https", proxy.Scheme)
}

// requestTunnel sends CONNECT and returns the tunnel.
func requestTunnel(conn net.Conn, proxy *url.URL, to place, limit int) (net.Conn, error) {
	text := "CONNECT " + to.authority() + " HTTP/1.1\r\nHost: " + to.authority() + "\r\n"
	if u := proxy.User; u != nil {
		password, _ := u.Password()
		text += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)) + "\r\n"
	}
	if _, err := io.WriteString(conn, text+"\r\n"); err != nil {
		return nil, err
	}
	bounded := &io.LimitedReader{R: conn, N: int64(limit)}
	in := bufio.NewReader(bounded)
	resp, err := http.ReadResponse(in, &http.Request{Method: methodConnect})
	if err != nil {
		return nil, err
	}
	// The body of an answer to CONNECT is the tunnel, which is conn.
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answered %d", resp.StatusCode)
	}
	bounded.N = 1<<63 - 1
	return &bufferedConn{Conn: conn, in: in}, nil
}

// bufferedConn is a connection whose first bytes are in a buffer already.
type bufferedConn struct {
	net.Conn

	in *bufio.Reader
}

// Read reads the buffered bytes first.
func (b *bufferedConn) Read(p []byte) (int, error) { return b.in.Read(p) }

// CloseWrite says that nothing more will be sent.
func (b *bufferedConn) CloseWrite() error { return closeWrite(b.Conn) }
