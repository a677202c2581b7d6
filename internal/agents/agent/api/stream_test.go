package api

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// play reads a stream with the reader of a shape.
func play(s shape, text []byte) (reply, error) {
	var r reply
	err := s.readStream(bytes.NewReader(text), &r)
	return r, err
}

func TestPartsOfCallsAreJoined(t *testing.T) {
	for name, c := range map[string]struct {
		provider, text string
		want           []call
	}{
		"two at once, Anthropic": {anthropic, `data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"read"}}

data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"b","name":"list"}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"path\":"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"\"x\"}"}}
`, []call{{id: "a", tool: "read", input: `{"path":"x"}`}, {id: "b", tool: "list", input: "{}"}}},
		"two at once, OpenAI": {openai, `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":""}},{"index":1,"id":"b","function":{"name":"list","arguments":"{"}}]}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}},{"index":1,"function":{"arguments":"}"}}]}}]}
`, []call{{id: "a", tool: "read", input: "{}"}, {id: "b", tool: "list", input: "{}"}}},
		"two of one number, a local server": {openai, `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{}"}}]}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"list","arguments":"{}"}}]}}]}
`, []call{{id: "a", tool: "read", input: "{}"}, {id: "b", tool: "list", input: "{}"}}},
		"one with a signature, Gemini": {gemini, `data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"read","args":{"path":"x"}},"thoughtSignature":"c2ln"}]}}]}
`, []call{{id: "call_0", tool: "read", input: `{"path":"x"}`, sign: "c2ln"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := play(shapeOf(c.provider), []byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, r.calls, cmp.AllowUnexported(call{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestASignatureGoesBackWithItsCall(t *testing.T) {
	c := conversation{model: "m", messages: []message{{model: true, calls: []call{{tool: "read", input: "{}", sign: "c2ln"}}}}}
	_, _, body := geminiRequest(c, "k")
	if !strings.Contains(string(body), `"thoughtSignature":"c2ln"`) {
		t.Errorf("the request is %s", body)
	}
}

func TestAModelThatFallsSilentIsLeft(t *testing.T) {
	for _, kind := range []fakemodel.FaultKind{fakemodel.FaultHang, fakemodel.FaultStall} {
		s, url := serve(t, fakemodel.Say("half of it").Failing(fakemodel.Fault{Kind: kind}))
		turn := take(t, Driver{Self: "pawl", backoff: time.Millisecond, silence: 50 * time.Millisecond}, request(t, anthropic, url))
		retries := 0
		for _, e := range turn.Events {
			if e.Kind == agent.EventRetry {
				retries++
			}
		}
		f := turn.Result.Failure
		if f == nil || f.Class != loop.FailureServer || f.Text != errSilent.Error() || retries != maxRetries || len(s.Log()) == 0 {
			t.Errorf("%s: after %d retries the failure is %+v", kind, retries, f)
		}
	}
}

func TestALongAnswerIsASignOfLife(t *testing.T) {
	_, url := serve(t, fakemodel.Turn{Say: "end", Flood: 400_000, Usage: &fakemodel.Usage{Input: 1000, Output: 400_001}})
	r := request(t, openai, url)
	var told strings.Builder
	status := Main(t.Context(), strings.NewReader(`{"prompt":"x","model":"m","provider":"openai","url":"`+url+`","dir":"`+r.Dir+`"}`+"\n"), &told)
	if n := strings.Count(told.String(), `"alive"`); status != 0 || n < 2 {
		t.Errorf("status %d, and %d signs of life", status, n)
	}
}

func TestATaskThatCannotBeReadIsAnError(t *testing.T) {
	for _, text := range []string{"", "hello\n", "{}"} {
		var told strings.Builder
		if status := Main(t.Context(), strings.NewReader(text), &told); status != loop.ExitUsage || told.Len() > 0 {
			t.Errorf("%q: status %d, and %q", text, status, told.String())
		}
	}
}

func TestAVendorsDelayIsReadInAllItsForms(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		header, body string
		want         time.Duration
	}{
		"seconds":            {header: "7", want: 7 * time.Second},
		"parts of seconds":   {header: "0.5", want: 500 * time.Millisecond},
		"a date":             {header: "Fri, 20 Nov 2026 12:00:09 GMT", want: 9 * time.Second},
		"a date in the past": {header: "Fri, 20 Nov 2026 11:00:00 GMT"},
		"a detail":           {body: `{"error":{"details":[{"retryDelay":"3.5s"}]}}`, want: 3500 * time.Millisecond},
		"a negative number":  {header: "-1"},
		"no number":          {header: "NaN"},
		"an absurd number":   {header: "1e300"},
	} {
		f := responseFailure(http.StatusTooManyRequests, http.Header{"Retry-After": {c.header}}, []byte(c.body), now)
		if f.retryAfter != c.want || f.Class != loop.FailureRateLimit {
			t.Errorf("%s: %s %v, want %v", name, f.Class, f.retryAfter, c.want)
		}
	}
}
