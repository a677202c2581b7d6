package api

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// fuzzStream feeds a parser with anything: whatever comes, it ends, counts no
// usage that cannot be, and makes calls that can be told of.
func fuzzStream(f *testing.F, provider string) {
	f.Helper()
	seeds, err := filepath.Glob(filepath.Join("testdata", "streams", provider+"-*"))
	if err != nil || len(seeds) == 0 {
		f.Fatalf("there are no seeds of %s: %v", provider, err)
	}
	for _, name := range seeds {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		f.Add(text[:len(text)/2])
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := play(shapeOf(provider), text)
		if fail, ok := errors.AsType[*failedError](err); ok && (fail.Class == "" || fail.Text == "") {
			t.Errorf("a failure without a class or a text: %+v", fail)
		}
		q, err := modelapi.ReadRequest(shapeOf(provider).api, "m", true, []byte(`{"max_tokens":500}`))
		if err != nil {
			t.Fatal(err)
		}
		u := r.callUsage(q)
		if u.Zero() || min(u.Input, u.Output, u.CacheRead, u.CacheWrite, u.CacheWrite1h) < 0 || u.CacheWrite1h > u.CacheWrite || u.Source == "" {
			t.Errorf("usage is %+v", u)
		}
		for _, c := range r.calls {
			if len(inputJSON(c.input)) == 0 || !bytes.HasPrefix(bytes.TrimSpace(inputObject(c.input)), []byte("{")) {
				t.Errorf("the input %q is told as %s", c.input, inputJSON(c.input))
			}
		}
		if r.done && !r.begun {
			t.Error("it is done, and never began")
		}
		// What was received goes back to the vendor in the next request.
		shapeOf(provider).buildRequest(conversation{messages: []message{{model: true, text: string(r.text), calls: r.calls}}}, "")
	})
}

func FuzzStreamAnthropic(f *testing.F) { fuzzStream(f, anthropic) }

func FuzzStreamChat(f *testing.F) { fuzzStream(f, openai) }

func FuzzStreamGemini(f *testing.F) { fuzzStream(f, gemini) }

func FuzzExplain(f *testing.F) {
	for _, body := range []string{
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, `{"error":{"code":"insufficient_quota","message":"x"}}`,
		`[{"error":{"code":429,"message":"x","details":[{"retryDelay":"3s"}]}}]`, `{"error":"model not found"}`, `<html>`, ``,
		`{"error":{"type":"usage_limit_reached","resets_at":4102444800}}`, `{"error":{"resets_at":1e300,"details":7}}`,
	} {
		f.Add(429, body, "7")
		f.Add(400, body, "")
	}
	now := time.Unix(1_800_000_000, 0)
	f.Fuzz(func(t *testing.T, status int, body, after string) {
		got := responseFailure(status, http.Header{"Retry-After": {after}}, []byte(body), now)
		if got.Class == "" || got.Text == "" || got.retryAfter < 0 || bytes.ContainsAny([]byte(got.Text), "\n\r") {
			t.Errorf("the failure is %+v", got)
		}
		if !got.Reset.IsZero() && (got.Reset.Before(now) || got.Class != loop.FailureRateLimit) {
			t.Errorf("a limit that is lifted before it began: %+v", got)
		}
	})
}
