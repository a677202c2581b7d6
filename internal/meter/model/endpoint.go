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

	"github.com/pawl-run/pawl/internal/clock"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/meter"
	"github.com/pawl-run/pawl/internal/modelapi"
	"github.com/pawl-run/pawl/internal/spend"
)

// Limits are caps. A zero field means its default, which stands beside it; none
// may be negative.
type Limits struct {
	Connections int           // open at once; more wait; 64
	Request     int64         // bytes of the body of a request; 64 MiB
	Response    int64         // bytes of the body of a response, unpacked; 256 MiB, and 64 MiB for what is not a stream
	Idle        time.Duration // without a byte from the provider; 10m: a model may think
	Age         time.Duration // of one call; 1h
	Rest        time.Duration // for which an answer is still counted whose client is gone; 500ms
	Denials     int           // calls of Denied; 1000
}

const mostWhole = 64 << 20 // bytes of a response that is read before it passes

func (l Limits) orDefault() Limits {
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
// change once it is used; it must not be copied then.
//
// What does not pass is answered in the provider's shape of errors with one
// sentence that begins with "pawl": 404 for what is not a model call, 403 for a
// budget that is used up (400 for Responses), 413 for too large a body, 502 for a provider that
// cannot be reached.
type Endpoint struct {
	// Base is where the provider is, with or without the version at the end of its
	// path. It comes from the definition and may be any address, also this machine.
	Base     *url.URL
	Provider string // modelapi.Anthropic, OpenAI or Gemini: the shape of calls

	Key    string // the real credential; empty: the provider wants none
	Bearer bool   // Key is a token, for Authorization, where Anthropic or Gemini would get a key

	Account *spend.Account

	// Tools are what the vendor may do by itself for a request. Nil allows nothing:
	// then requests for the vendor's own tools, for content by its address and for
	// what is stored at the vendor are refused.
	Tools []loop.ModelTool

	// Upstream says by which proxy this machine reaches an address, as
	// http://[user:password@]host:port, or https; nil, or a nil URL, if it needs
	// none. A Base on this machine is reached without it.
	Upstream func(to *url.URL) (*url.URL, error)

	Limits Limits

	// Denied is told what did not pass, was cut, or reported a usage that is none,
	// up to Limits.Denials times. Several goroutines may call it at once, and the
	// call waits for it. May be nil.
	Denied func(meter.Denial)

	Clock meter.Clock // nil means the machine's

	// What a test replaces; nil means the machine's own.
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
	omitted    map[string]bool // what was told of that is not forwarded
}

// LastFailure is the last error that the provider answered with, or zero, and
// whether a call went well after it.
func (e *Endpoint) LastFailure() (f loop.Failure, recovered bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failure, e.recovered
}

// Asked reports whether a call came that spends, also one that was refused or
// failed: then the account says what was used, if that is nothing too.
func (e *Endpoint) Asked() bool { return e.used.Load() }

// Stuck reports whether the last call that offered tools failed. That is how an
// agent acts: no turn that ends well ends with such a call.
func (e *Endpoint) Stuck() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stuck
}

// clientWaits reports whether there still is somebody for whom an answer matters.
func (x *exchange) clientWaits() bool { return x.in.Context().Err() == nil }

func (x *exchange) recordFailure(f loop.Failure) {
	if !x.clientWaits() {
		return
	}
	e := x.Endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stuck = e.stuck || x.offersTools()
	f.Text = modelapi.OneLine(e.hide.words(f.Text))
	e.failure, e.recovered = f, false
	e.rejections.add(f, e.now())
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

// offersTools reports whether the call offers tools.
func (x *exchange) offersTools() bool { return x.q != nil && x.q.OffersTools() }

// Serve answers the connections of l until ctx ends or l is closed; both give
// nil. It closes l, cuts the calls that are left, and returns when they are
// charged. An error means that l accepts nothing any more.
func (e *Endpoint) Serve(ctx context.Context, l net.Listener) error {
	e.prepare()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := &door{}
	s := &http.Server{
		Handler:           d.guard(e),
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
	err := s.Serve(bounded(l, e.limits().Connections))
	asked := ctx.Err() != nil || errors.Is(err, net.ErrClosed)
	cancel()
	<-closed
	d.close()
	e.via.CloseIdleConnections()
	if asked {
		return nil
	}
	return fmt.Errorf("accept on %s: %w", l.Addr(), err)
}

// door waits for the calls that are under way. A server that is closed may
// still begin one.
type door struct {
	mu   sync.Mutex
	shut bool
	open sync.WaitGroup
}

func (d *door) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.shut {
		d.open.Add(1)
	}
	return !d.shut
}

func (d *door) guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.enter() {
			defer d.open.Done()
			h.ServeHTTP(w, r)
		}
	})
}

func (d *door) close() {
	d.mu.Lock()
	d.shut = true
	d.mu.Unlock()
	d.open.Wait()
}

// prepare makes what is needed for the first call.
func (e *Endpoint) prepare() {
	e.once.Do(func() {
		e.hide = newHider(e.Key)
		e.via = &http.Transport{
			Proxy:                  e.proxy,
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

// proxy is the one for everything but this machine, whatever the environment says.
func (e *Endpoint) proxy(r *http.Request) (*url.URL, error) {
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
		return nil, errors.New("the proxy of this machine is invalid: check HTTPS_PROXY and HTTP_PROXY") // They may hold a password.
	}
	return proxy, nil
}

func (e *Endpoint) limits() Limits { return e.Limits.orDefault() }

func (e *Endpoint) now() time.Time {
	if e.Clock == nil {
		return clock.System{}.Now()
	}
	return e.Clock.Now()
}
