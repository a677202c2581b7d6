package model

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/meter"
	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/agents/spend"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestALimitThatIsNotSetIsTheOneThatIsDocumented(t *testing.T) {
	want := Limits{
		Connections: 64, Request: 64 << 20, Response: 256 << 20, Idle: 10 * time.Minute, Age: time.Hour, Rest: 500 * time.Millisecond, Denials: 1000,
	}
	if d := cmp.Diff(want, Limits{}.withDefaults()); d != "" {
		t.Errorf("defaults (-want +got):\n%s", d)
	}
	want = Limits{Connections: 1, Request: 2, Response: 3, Idle: 4, Age: 5, Rest: 6, Denials: 7}
	if d := cmp.Diff(want, want.withDefaults()); d != "" {
		t.Errorf("what is set is changed (-want +got):\n%s", d)
	}
}

func TestDenialsOfAnEndpointNameItsProviderAndAreToldUpToALimit(t *testing.T) {
	r := start(t, modelapi.Anthropic, nil, func(e *Endpoint) { e.Limits.Denials, e.Clock = 2, noonClock{} })
	r.prepare()
	var told []meter.Denial
	r.Denied = func(d meter.Denial) { told = append(told, d) }
	r.Base.Host = "provider.test:8443"
	for range 4 {
		r.reportDenial(ReasonNoCall, "detail")
	}
	d := meter.Denial{At: noon, Host: "provider.test", Port: 8443, Reason: ReasonNoCall, Detail: "detail"}
	if diff := cmp.Diff([]meter.Denial{d, d}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestARefusalHasTheShapeOfItsVendorsErrors(t *testing.T) {
	type words = map[string]any
	for name, c := range map[string]struct {
		provider string
		status   int
		reason   loop.Reason
		want     any
	}{
		"Anthropic, not found": {modelapi.Anthropic, 404, "", words{"type": "error", "error": words{"type": "not_found_error", "message": "pawl: no"}}},
		"Anthropic, forbidden": {modelapi.Anthropic, 403, "", words{"type": "error", "error": words{"type": "permission_error", "message": "pawl: no"}}},
		"Anthropic, bad":       {modelapi.Anthropic, 400, "", words{"type": "error", "error": words{"type": "invalid_request_error", "message": "pawl: no"}}},
		"Anthropic, too large": {modelapi.Anthropic, 413, "", words{"type": "error", "error": words{"type": "request_too_large", "message": "pawl: no"}}},
		"Anthropic, away":      {modelapi.Anthropic, 502, "", words{"type": "error", "error": words{"type": "api_error", "message": "pawl: no"}}},
		"Gemini, not found":    {modelapi.Gemini, 404, "", words{"error": words{"code": 404., "status": "NOT_FOUND", "message": "pawl: no"}}},
		"Gemini, forbidden":    {modelapi.Gemini, 403, "", words{"error": words{"code": 403., "status": "PERMISSION_DENIED", "message": "pawl: no"}}},
		"Gemini, bad":          {modelapi.Gemini, 400, "", words{"error": words{"code": 400., "status": "INVALID_ARGUMENT", "message": "pawl: no"}}},
		"Gemini, away":         {modelapi.Gemini, 502, "", words{"error": words{"code": 502., "status": "UNAVAILABLE", "message": "pawl: no"}}},
		"OpenAI":               {modelapi.OpenAI, 403, ReasonBudget, words{"error": words{"type": "invalid_request_error", "message": "pawl: no", "param": nil, "code": "budget_exhausted"}}},
		"OpenAI, away":         {modelapi.OpenAI, 502, "", words{"error": words{"type": "server_error", "message": "pawl: no", "param": nil, "code": nil}}},
		"OpenAI, its fault":    {modelapi.OpenAI, 500, "", words{"error": words{"type": "server_error", "message": "pawl: no", "param": nil, "code": nil}}},
	} {
		t.Run(name, func(t *testing.T) {
			e := &Endpoint{Provider: c.provider}
			got := httptest.NewRecorder()
			e.sendRefusal(got, refusal{c.status, c.reason, "no"})
			var body any
			if err := json.Unmarshal(got.Body.Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, body); d != "" || got.Code != c.status {
				t.Errorf("status %d (-want +got):\n%s", got.Code, d)
			}
			if retry := got.Header().Get("X-Should-Retry"); (retry == "false") != (c.status < 500) {
				t.Errorf("X-Should-Retry = %q", retry)
			}
			if length := got.Header().Get("Content-Length"); length != strconv.Itoa(got.Body.Len()) || got.Header().Get("Content-Type") != "application/json" {
				t.Errorf("header = %v for %d bytes", got.Header(), got.Body.Len())
			}
		})
	}
}

func TestAListenerThatIsClosedEndsTheWaitForAFreeSlot(t *testing.T) {
	var lc net.ListenConfig
	inner, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limitConns(inner, 1)
	var d net.Dialer
	out, err := d.DialContext(t.Context(), "tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	done := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		done <- err
	}()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the second Close = %v, want that it is closed", err)
	}
	select {
	case err := <-done:
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept = %v, want that it is closed", err)
		}
	case <-time.After(long):
		t.Error("Accept waits for a slot of a listener that is closed")
	}
}

type brokenListener struct{ net.Listener }

func (brokenListener) Accept() (net.Conn, error) { return nil, errors.New("no more of it") }

func TestAnEndpointWhoseListenerBreaksSaysSo(t *testing.T) {
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &Endpoint{Provider: modelapi.OpenAI, Account: &spend.Account{}}
	if err := e.Serve(t.Context(), brokenListener{l}); err == nil || !strings.Contains(err.Error(), "accept on "+l.Addr().String()+": no more of it") {
		t.Errorf("Serve = %v, want the error of its listener", err)
	}
}

func TestWhatComesKeepsACallAwake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Endpoint{Limits: Limits{Idle: time.Minute}}
		ctx, w := e.watchCall(t.Context())
		defer w.end()
		r := &cappedReader{Reader: strings.NewReader("hello"), watch: w, left: 4}
		for i := range 5 {
			time.Sleep(59 * time.Second)
			n, err := r.Read(make([]byte, 1))
			if ctx.Err() != nil || i < 4 && (n != 1 || err != nil) {
				t.Fatalf("after %d bytes: %v, %d, %v", i, context.Cause(ctx), n, err)
			}
			if i == 4 && !errors.Is(err, errLarge) {
				t.Errorf("the byte beyond the cap: %v, want that it is too large", err)
			}
		}
		time.Sleep(61 * time.Second)
		if cause := context.Cause(ctx); !errors.Is(cause, errQuiet) {
			t.Errorf("after a minute without a byte: %v", cause)
		}
	})
}
