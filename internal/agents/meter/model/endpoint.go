package model

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/agents/meter"
	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/agents/spend"
	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Limits are caps. A zero field means its default, which its comment names. No
// field may be negative.
type Limits struct {
	Connections int           // open at once, further ones wait; 64
	Request     int64         // bytes of the body of a request; 64 MiB
	Response    int64         // bytes of the body of a response, decompressed; 256 MiB, and 64 MiB if it is not a stream
	Idle        time.Duration // without a byte from the provider; 10m, since a model may think
	Age         time.Duration // of one call; 1h
	Rest        time.Duration // how long an answer is still counted after the client has gone; 500ms
	Denials     int           // calls of Denied; 1000
}

const maxWholeBytes = 64 << 20 // bytes of a response that is read before it is passed on

func (l Limits) withDefaults() Limits {
	l.Connections = cmp.Or(l.Connections, 64)
	l.Request = cmp.Or(l.Request, 64<<20)
	l.Response = cmp.Or(l.Response, 256<<20)
	l.Idle = cmp.Or(l.Idle, 10*time.Minute)
	l.Age = cmp.Or(l.Age, time.Hour)
	l.Rest = cmp.Or(l.Rest, 500*time.Millisecond)
	l.Denials = cmp.Or(l.Denials, 1000)
	return l
}

// Endpoint forwards the model calls of one sandbox to one provider. It is an
// http.Handler. Base, Provider and Account must be set. Its fields must not
// change, and it must not be copied, once it is used.
//
// A refused call is answered in the provider's form of errors, with one sentence
// that begins with "pawl": 404 for anything but a model call, 403 if the budget
// is used up (400 for Responses), 413 if the body is too large, 502 if the
// provider cannot be reached.
type Endpoint struct {
	// Base is the provider's URL, with or without the version at the end of its
	// path. It comes from the definition and may be any address, also this machine.
	Base     *url.URL
	Provider string // modelapi.Anthropic, OpenAI or Gemini: the shape of calls

	Key    string // the real credential; empty if the provider needs none
	Bearer bool   // Key is a token for Authorization, also for Anthropic and Gemini, which take keys elsewhere

	Account *spend.Account

	// Tools are the vendor's own tools that requests may use. Nil allows none: then
	// requests for such tools, for content by URL and for data stored at the vendor
	// are refused.
	Tools []loop.ModelTool

	// Upstream returns the proxy through which this machine reaches an address, as
	// http://[user:password@]host:port, or https. Nil, or a nil URL, means no proxy.
	// A Base on this machine is reached without it.
	Upstream func(to *url.URL) (*url.URL, error)

	Limits Limits

	// Denied is called with what was refused, was cut, or reported an implausible
	// usage, at most Limits.Denials times. Several goroutines may call it at once,
	// and the call waits for it. May be nil.
	Denied func(meter.Denial)

	Clock meter.Clock // nil means the machine's clock

	// Tests replace these; nil means the machine's own.
	Dial  func(ctx context.Context, network, address string) (net.Conn, error)
	Roots *x509.CertPool

	once sync.Once
	via  *http.Transport
	hide *hider
	told atomic.Int64
	used atomic.Bool

	mu         sync.Mutex
	failure    loop.Failure
	recovered  bool
	rejections rejections
	stuck      bool
	omitted    map[string]bool // what was reported as not forwarded
}

// LastFailure returns the last error that the provider answered with, or zero,
// and whether a call succeeded after it.
func (e *Endpoint) LastFailure() (f loop.Failure, recovered bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failure, e.recovered
}

// Asked reports whether the program has made a call that spends, also one that
// was refused or failed. Then the account knows what was used, even if it is
// nothing.
func (e *Endpoint) Asked() bool { return e.used.Load() }

// Stuck reports whether the last call that offered tools failed. An agent acts by
// such calls, so a turn that ends well never ends with a failed one.
func (e *Endpoint) Stuck() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stuck
}

// clientWaits reports whether the client is still waiting for the answer.
func (x *exchange) clientWaits() bool { return x.in.Context().Err() == nil }

func (x *exchange) recordFailure(f loop.Failure) {
	if !x.clientWaits() {
		return
	}
	e := x.Endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stuck = e.stuck || x.offersTools()
	f.Text = modelapi.OneLine(e.hide.redactText(f.Text))
	e.failure, e.recovered = f, false
	e.rejections.addFailure(f, e.now())
	e.giveUpUnlessLifted(f)
}

func (x *exchange) recordSuccess() {
	if !x.clientWaits() {
		return
	}
	e := x.Endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recovered = e.failure != loop.Failure{}
	e.rejections.reset()
	e.stuck = e.stuck && !x.offersTools()
}

func (x *exchange) offersTools() bool { return x.q != nil && x.q.OffersTools() }

// Serve answers the connections of l until ctx ends or l is closed, and returns
// nil in both cases. It closes l, cuts the remaining calls, and returns when they
// are charged. An error means that l no longer accepts connections.
func (e *Endpoint) Serve(ctx context.Context, l net.Listener) error {
	e.prepare()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := &callGuard{}
	s := &http.Server{
		Handler:           d.wrap(e),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: time.Minute,
		IdleTimeout:       e.limits().Idle,
		MaxHeaderBytes:    256 << 10,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	closed := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(closed)
		_ = s.Close()
	})
	err := s.Serve(limitConns(l, e.limits().Connections))
	asked := ctx.Err() != nil || errors.Is(err, net.ErrClosed)
	cancel()
	<-closed
	d.closeAndWait()
	e.via.CloseIdleConnections()
	if asked {
		return nil
	}
	return fmt.Errorf("accept on %s: %w", l.Addr(), err)
}

// callGuard waits for the calls under way. A server that is closed may still
// begin one.
type callGuard struct {
	mu   sync.Mutex
	shut bool
	open sync.WaitGroup
}

func (d *callGuard) tryBegin() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.shut {
		d.open.Add(1)
	}
	return !d.shut
}

func (d *callGuard) wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.tryBegin() {
			defer d.open.Done()
			h.ServeHTTP(w, r)
		}
	})
}

func (d *callGuard) closeAndWait() {
	d.mu.Lock()
	d.shut = true
	d.mu.Unlock()
	d.open.Wait()
}

// prepare makes what the first call needs.
func (e *Endpoint) prepare() {
	e.once.Do(func() {
		e.hide = newHider(e.Key)
		e.via = &http.Transport{
			Proxy:                  e.proxyFor,
			DialContext:            e.Dial,
			TLSClientConfig:        &tls.Config{RootCAs: e.Roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    30 * time.Second,
			ForceAttemptHTTP2:      true,
			HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
			MaxResponseHeaderBytes: 256 << 10,
			MaxIdleConnsPerHost:    8,
			IdleConnTimeout:        90 * time.Second,
		}
		if e.Dial == nil {
			e.via.DialContext = (&net.Dialer{Timeout: 30 * time.Second}).DialContext
		}
	})
}

// proxyFor returns the proxy for all addresses except this machine's. It ignores
// the environment.
func (e *Endpoint) proxyFor(r *http.Request) (*url.URL, error) {
	host := strings.ToLower(r.URL.Hostname())
	addr, err := netip.ParseAddr(host)
	if host == "localhost" || err == nil && addr.Unmap().IsLoopback() {
		return nil, nil
	}
	if e.Upstream == nil {
		return nil, nil
	}
	proxy, err := e.Upstream(r.URL)
	if err != nil {
		return nil, errors.New("the proxy of this machine is invalid: check HTTPS_PROXY and HTTP_PROXY") // The error may contain a password.
	}
	return proxy, nil
}

func (e *Endpoint) limits() Limits { return e.Limits.withDefaults() }

func (e *Endpoint) now() time.Time {
	if e.Clock == nil {
		return clock.System{}.Now()
	}
	return e.Clock.Now()
}
