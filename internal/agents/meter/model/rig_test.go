package model

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/meter"
	"github.com/pawl-run/pawl/internal/agents/spend"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// long is how long a test waits for what comes at once when all is well: less than the
// patience of `make mutants`, which takes a test that hangs for one that caught nothing.
const long = 15 * time.Second

// secret is the real key of the tests.
const secret = "sk-real-0123456789/abcdefghij+KLMNOP"

// rig is an endpoint that runs before a provider, and what it said.
type rig struct {
	*Endpoint

	t    testing.TB
	addr string
	stop func()

	mu      sync.Mutex
	denials []meter.Denial
}

// start runs an endpoint until the test ends.
func start(tb testing.TB, provider string, handler http.HandlerFunc, change ...func(*Endpoint)) *rig {
	tb.Helper()
	s := httptest.NewServer(handler)
	tb.Cleanup(s.Close)
	base, err := url.Parse(s.URL)
	if err != nil {
		tb.Fatal(err)
	}
	r := &rig{t: tb, Endpoint: &Endpoint{Base: base, Provider: provider, Key: secret, Account: &spend.Account{}}}
	r.Denied = func(d meter.Denial) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.denials = append(r.denials, d)
	}
	for _, f := range change {
		f(r.Endpoint)
	}
	r.serve()
	return r
}

func (r *rig) serve() {
	r.t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(r.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx, l) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				r.t.Errorf("Serve = %v", err)
			}
		case <-time.After(long):
			r.t.Error("Serve did not return")
		}
	})
	r.t.Cleanup(r.stop)
}

// told returns the reasons of what was denied so far.
func (r *rig) told() []loop.Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []loop.Reason
	for _, d := range r.denials {
		list = append(list, d.Reason)
	}
	return list
}

// request makes one to the endpoint.
func (r *rig) request(ctx context.Context, method, path, body string) *http.Request {
	r.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+r.addr+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer placeholder")
	req.Header.Set("Content-Type", "application/json")
	return req
}

// reply is what a client got.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // of the body
}

func (r *rig) do(req *http.Request) reply {
	r.t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{status: resp.StatusCode, header: resp.Header, body: string(body), err: err}
}

func (r *rig) post(path, body string) reply {
	r.t.Helper()
	return r.do(r.request(r.t.Context(), http.MethodPost, path, body))
}

// eventually waits for what happens beside the test.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for end := time.Now().Add(long); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("it never happened: %s", what)
		}
	}
}

// says answers with a body that is or is not a stream.
func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { write(w, body) }
}

func write(w http.ResponseWriter, body string) {
	kind := "application/json"
	if strings.HasPrefix(body, "event:") || strings.HasPrefix(body, "data:") {
		kind = "text/event-stream; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	_, _ = io.WriteString(w, body)
}

func wantTold(t *testing.T, r *rig, want ...loop.Reason) {
	t.Helper()
	if got := r.told(); !slices.Equal(got, want) {
		t.Errorf("denied %v, want %v", got, want)
	}
}
