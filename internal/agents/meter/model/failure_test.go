package model

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/modelcalls"
)

var noon = modelcalls.Noon

type noonClock struct{}

func (noonClock) Now() time.Time { return noon }

func TestErrorsOfVendorsArePassedOnAndUnderstood(t *testing.T) {
	for name, c := range modelcalls.ErrorAnswers() {
		t.Run(name, func(t *testing.T) {
			r := start(t, modelapi.OpenAI, func(w http.ResponseWriter, _ *http.Request) {
				for field := range strings.SplitSeq(c.Header, "\n") {
					if name, value, ok := strings.Cut(field, ": "); ok {
						w.Header().Set(name, value)
					}
				}
				w.WriteHeader(c.Status)
				_, _ = w.Write([]byte(c.Body))
			}, func(e *Endpoint) { e.Clock = noonClock{} })
			got := r.post("/v1/chat/completions", askChat)
			if got.status != c.Status || got.body != c.Body {
				t.Errorf("the client got %d %q", got.status, got.body)
			}
			c.Want.Status = c.Status
			f, recovered := r.LastFailure()
			f.Reset = f.Reset.UTC()
			if diff := cmp.Diff(c.Want, f); diff != "" || recovered {
				t.Errorf("failure (-want +got), recovered %t\n%s", recovered, diff)
			}
			if total, _ := r.Account.Total(); !total.Zero() || r.Account.Calls() != 0 {
				t.Errorf("an error was charged: %+v", total)
			}
		})
	}
}

func TestAFailureInAStreamIsOneAndWhatAModelWritesIsNone(t *testing.T) {
	for name, c := range map[string]struct {
		provider, path, answer string
		want                   loop.FailureClass
	}{
		"Anthropic":      {modelapi.Anthropic, "/v1/messages", modelcalls.EventStream(true, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), loop.FailureServer},
		"Responses":      {modelapi.OpenAI, "/v1/responses", modelcalls.EventStream(true, `{"type":"response.failed","response":{"model":"m","error":{"code":"context_length_exceeded","message":"Your input exceeds"}}}`), loop.FailureOverflow},
		"Responses, old": {modelapi.OpenAI, "/v1/responses", modelcalls.EventStream(true, `{"type":"error","code":"rate_limit_exceeded","message":"slow down"}`), loop.FailureRateLimit},
		"Responses, new": {modelapi.OpenAI, "/v1/responses", modelcalls.EventStream(true, `{"type":"error","error":{"code":"rate_limit_exceeded","message":"slow down"}}`), loop.FailureRateLimit},
		"Chat":           {modelapi.OpenAI, "/v1/chat/completions", modelcalls.EventStream(false, `{"error":{"message":"no credits","code":402,"type":"insufficient_quota"}}`), loop.FailureQuota},
		"Gemini":         {modelapi.Gemini, "/v1beta/models/m:streamGenerateContent", modelcalls.EventStream(false, `{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`), loop.FailureServer},
		"written by a model": {
			modelapi.OpenAI, "/v1/chat/completions",
			chatStream(`{"prompt_tokens":9,"completion_tokens":60}`, `{"error":{"type":"rate_limit_error"}} 429 rate limit, prompt is too long`), "",
		},
		"written in an event's name": {modelapi.OpenAI, "/v1/chat/completions", "event: error\n" + chatStream(`{"prompt_tokens":9,"completion_tokens":60}`, "hi"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, c.provider, says(c.answer))
			r.post(c.path, `{"model":"m","stream":true}`)
			r.stop()
			if f, _ := r.LastFailure(); f.Class != c.want {
				t.Errorf("failure = %+v, want %q", f, c.want)
			}
		})
	}
}

func TestAFailureIsOverWhenACallGoesWell(t *testing.T) {
	n := 0
	r := start(t, modelapi.OpenAI, func(w http.ResponseWriter, _ *http.Request) {
		if n++; n == 1 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		write(w, chatStream(`{"prompt_tokens":9,"completion_tokens":1}`, "hi"))
	})
	if f, recovered := r.LastFailure(); f.Class != "" || recovered {
		t.Errorf("at first: %+v %t", f, recovered)
	}
	r.post("/v1/chat/completions", askChat)
	r.post("/v1/chat/completions", askChat)
	r.stop()
	if f, recovered := r.LastFailure(); f.Status != http.StatusServiceUnavailable || !recovered {
		t.Errorf("failure = %+v, recovered %t", f, recovered)
	}
}
