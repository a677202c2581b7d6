package api

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

func data(t *testing.T, text string) []string {
	t.Helper()
	var all []string
	err := events(strings.NewReader(text), func(d []byte) error {
		all = append(all, string(d))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEventsAreReadAsTheStandardSays(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"one after the other":        {"event: a\ndata: 1\n\ndata: 2\n\n", []string{"1", "2"}},
		"without a space":            {"data:1\n\n", []string{"1"}},
		"more than one line":         {"data: 1\ndata: 2\n\n", []string{"1\n 2"}},
		"ends of lines of Windows":   {"data: 1\r\n\r\ndata: 2\r\n\r\n", []string{"1", "2"}},
		"comments and other fields":  {": ping\nid: 7\nretry: 5\ndata: 1\n\n: ping\n\n", []string{"1"}},
		"a last one without its end": {"data: 1", []string{"1"}},
		"nothing":                    {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, data(t, c.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// slow gives a few bytes at a time.
type slow struct{ r io.Reader }

func (s slow) Read(p []byte) (int, error) { return s.r.Read(p[:min(len(p), 1+rand.IntN(7))]) }

func TestEventsDoNotDependOnHowTheyArrive(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"data: a\n", "data:b\r\n", "\n", ": c\n", "event: d\n", "data: ü"})).Draw(rt, "lines"), "")
		var whole, pieces []string
		keep := func(to *[]string) func([]byte) error {
			return func(d []byte) error {
				*to = append(*to, string(d))
				return nil
			}
		}
		err1 := events(strings.NewReader(text), keep(&whole))
		err2 := events(slow{strings.NewReader(text)}, keep(&pieces))
		if err1 != nil || err2 != nil || !cmp.Equal(whole, pieces) {
			rt.Fatalf("whole %q %v, in pieces %q %v", whole, err1, pieces, err2)
		}
	})
}

func TestAnEventThatIsTooLongIsAnError(t *testing.T) {
	endless := io.MultiReader(strings.NewReader("data: "), io.LimitReader(zeros{}, longest+10))
	if err := events(endless, func([]byte) error { return nil }); !errors.Is(err, errLong) {
		t.Errorf("it is %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// play reads a stream with the reader of a shape.
func play(s shape, text []byte) (reply, error) {
	var r reply
	err := events(bytes.NewReader(text), s.read(&r))
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
	_, _, body := requestGemini(c, "k")
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
		if f == nil || f.Class != loop.FailureServer || f.Text != errSilent.Error() || retries != mostRetries || len(s.Log()) == 0 {
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
		f := explain(http.StatusTooManyRequests, http.Header{"Retry-After": {c.header}}, []byte(c.body), now)
		if f.after != c.want || f.Class != loop.FailureRateLimit {
			t.Errorf("%s: %s %v, want %v", name, f.Class, f.after, c.want)
		}
	}
}
