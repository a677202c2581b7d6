package fakemodel_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

func TestFaultsAreInTheVendorsWords(t *testing.T) {
	for name, c := range map[string]struct {
		shape  string
		stream bool
		fault  fakemodel.Fault
		status int
		path   []any
		want   any
		header [2]string
	}{
		"a wrong key, Anthropic":             {shape: "anthropic", fault: fakemodel.Fault{Status: 401}, status: 401, path: []any{"error", "type"}, want: "authentication_error"},
		"too many requests, Anthropic":       {shape: "anthropic", fault: fakemodel.Fault{Status: 429, RetryAfter: 7}, status: 429, path: []any{"error", "type"}, want: "rate_limit_error", header: [2]string{"Retry-After", "7"}},
		"a used-up window, Anthropic":        {shape: "anthropic", fault: fakemodel.Fault{Kind: fakemodel.FaultUsageLimit, Reset: time.Unix(77, 0)}, status: 429, path: []any{"error", "type"}, want: "rate_limit_error", header: [2]string{"Anthropic-Ratelimit-Unified-Reset", "77"}},
		"an empty account, Anthropic":        {shape: "anthropic", fault: fakemodel.Fault{Kind: fakemodel.FaultQuota}, status: 400, path: []any{"error", "type"}, want: "invalid_request_error"},
		"an overflow, Anthropic":             {shape: "anthropic", stream: true, fault: fakemodel.Fault{Kind: fakemodel.FaultOverflow}, status: 400, path: []any{"error", "message"}, want: "prompt is too long: 210000 tokens > 200000 maximum"},
		"an overload, Anthropic":             {shape: "anthropic", fault: fakemodel.Fault{Status: 529}, status: 529, path: []any{"error", "type"}, want: "overloaded_error"},
		"a refusal, Anthropic":               {shape: "anthropic", fault: fakemodel.Fault{Kind: fakemodel.FaultRefusal}, status: 200, path: []any{"stop_reason"}, want: "refusal"},
		"an answer at its limit, Anthropic":  {shape: "anthropic", fault: fakemodel.Fault{Kind: fakemodel.FaultMaxTokens}, status: 200, path: []any{"stop_reason"}, want: "max_tokens"},
		"a wrong key, Chat":                  {shape: "chat", fault: fakemodel.Fault{Status: 401}, status: 401, path: []any{"error", "code"}, want: "invalid_api_key"},
		"an empty account, Chat":             {shape: "chat", fault: fakemodel.Fault{Kind: fakemodel.FaultQuota}, status: 429, path: []any{"error", "code"}, want: "insufficient_quota"},
		"an overflow, Chat":                  {shape: "chat", stream: true, fault: fakemodel.Fault{Kind: fakemodel.FaultOverflow}, status: 400, path: []any{"error", "code"}, want: "context_length_exceeded"},
		"a refusal, Chat":                    {shape: "chat", fault: fakemodel.Fault{Kind: fakemodel.FaultRefusal}, status: 200, path: []any{"choices", 0, "finish_reason"}, want: "content_filter"},
		"an answer at its limit, Chat":       {shape: "chat", fault: fakemodel.Fault{Kind: fakemodel.FaultMaxTokens}, status: 200, path: []any{"choices", 0, "finish_reason"}, want: "length"},
		"a used-up window, Responses":        {shape: "responses", fault: fakemodel.Fault{Kind: fakemodel.FaultUsageLimit, Reset: time.Unix(77, 0)}, status: 429, path: []any{"error", "resets_at"}, want: 77.0},
		"an overflow, Responses":             {shape: "responses", fault: fakemodel.Fault{Kind: fakemodel.FaultOverflow}, status: 400, path: []any{"error", "code"}, want: "context_length_exceeded"},
		"an answer at its limit, Responses":  {shape: "responses", fault: fakemodel.Fault{Kind: fakemodel.FaultMaxTokens}, status: 200, path: []any{"incomplete_details", "reason"}, want: "max_output_tokens"},
		"too many requests, Gemini":          {shape: "gemini", fault: fakemodel.Fault{Status: 429, RetryAfter: 9}, status: 429, path: []any{"error", "details", 0, "retryDelay"}, want: "9s"},
		"an empty account, Gemini":           {shape: "gemini", fault: fakemodel.Fault{Kind: fakemodel.FaultQuota}, status: 429, path: []any{"error", "status"}, want: "RESOURCE_EXHAUSTED"},
		"an overflow, Gemini":                {shape: "gemini", stream: true, fault: fakemodel.Fault{Kind: fakemodel.FaultOverflow}, status: 400, path: []any{"error", "status"}, want: "INVALID_ARGUMENT"},
		"a refusal, Gemini":                  {shape: "gemini", fault: fakemodel.Fault{Kind: fakemodel.FaultRefusal}, status: 200, path: []any{"candidates", 0, "finishReason"}, want: "SAFETY"},
		"a body and a header of one's own":   {shape: "gemini", fault: fakemodel.Fault{Status: 418, Body: `{"tea":"pot"}`, Header: http.Header{"x-tea": {"green"}}}, status: 418, path: []any{"tea"}, want: "pot", header: [2]string{"X-Tea", "green"}},
		"a status that the vendor never had": {shape: "chat", fault: fakemodel.Fault{Status: 502}, status: 502, path: []any{"error", "type"}, want: "server_error"},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := serve(t, fakemodel.Write("a.txt", "x").Failing(c.fault))
			path, body := shapes[c.shape].ask(0, c.stream)
			g := post(t, url+path, body)
			if g.status != c.status {
				t.Errorf("status is %d, want %d", g.status, c.status)
			}
			if got := dig(decode(t, g.body), c.path...); got != c.want {
				t.Errorf("%v is %v, want %v: %s", c.path, got, c.want, g.body)
			}
			if c.header[0] != "" && g.header.Get(c.header[0]) != c.header[1] {
				t.Errorf("%s is %q, want %q", c.header[0], g.header.Get(c.header[0]), c.header[1])
			}
			if e := s.Log()[0]; e.Status != c.status || e.Status != 200 && e.Usage != (fakemodel.Usage{}) {
				t.Errorf("it is logged as %+v", e)
			}
		})
	}
}

func TestSomeErrorsComeInsideOfAStream(t *testing.T) {
	for name, c := range map[string]struct {
		kind fakemodel.FaultKind
		at   int
		path []any
		want any
	}{
		"anthropic": {kind: fakemodel.FaultOverload, at: 0, path: []any{"error", "type"}, want: "overloaded_error"},
		"chat":      {kind: fakemodel.FaultOverload, at: 0, path: []any{"error", "code"}, want: "server_overloaded"},
		"responses": {kind: fakemodel.FaultOverflow, at: 1, path: []any{"response", "error", "code"}, want: "context_length_exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := serve(t, fakemodel.Say("x").Failing(fakemodel.Fault{Kind: c.kind}))
			path, body := shapes[name].ask(0, true)
			g := post(t, url+path, body)
			if g.status != http.StatusOK || len(g.events) <= c.at || dig(g.events[c.at].data, c.path...) != c.want {
				t.Errorf("it is %d with %s", g.status, g.body)
			}
		})
	}
}

func TestAStreamThatIsCutCountsTheUsageThatWasSent(t *testing.T) {
	for name, want := range map[string]fakemodel.Usage{
		"anthropic": {Input: 10, Output: 1, CacheRead: 30}, "chat": {}, "responses": {}, "gemini": {},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := serve(t, fakemodel.Say("this is cut half way").Using(fakemodel.Usage{Input: 10, Output: 20, CacheRead: 30}).Failing(fakemodel.Fault{Kind: fakemodel.FaultCut}))
			path, body := shapes[name].ask(0, true)
			g := post(t, url+path, body)
			if g.err == nil {
				t.Errorf("the client saw nothing wrong: %s", g.body)
			}
			if !strings.Contains(g.body, "this") || strings.Contains(g.body, "way") {
				t.Errorf("the client got %s, want the first half", g.body)
			}
			until(t, func() bool { return !s.Log()[0].Whole && s.Log()[0].Did != "" })
			if got := s.Total(); got != want {
				t.Errorf("total is %+v, want %+v", got, want)
			}
		})
	}
}

func TestAnAnswerInOnePieceIsCutToo(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			s, url := serve(t, fakemodel.Say("x").Failing(fakemodel.Fault{Kind: fakemodel.FaultCut}))
			path, body := shape.ask(0, false)
			if g := post(t, url+path, body); g.err == nil {
				t.Errorf("the client saw nothing wrong: %s", g.body)
			}
			if got := s.Total(); got != (fakemodel.Usage{}) {
				t.Errorf("total is %+v, want none", got)
			}
		})
	}
}

func TestAHangLastsUntilTheClientLeaves(t *testing.T) {
	for _, kind := range []fakemodel.FaultKind{fakemodel.FaultHang, fakemodel.FaultStall} {
		s, url := serve(t, fakemodel.Say("half of it").Failing(fakemodel.Fault{Kind: kind}))
		path, body := shapes["anthropic"].ask(0, true)
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if res, err := http.DefaultClient.Do(req); err == nil {
				_, _ = res.Body.Read(make([]byte, 1<<20))
				<-ctx.Done()
				_ = res.Body.Close()
			}
		}()
		until(t, func() bool { return len(s.Log()) == 1 && s.Log()[0].Did != "" })
		cancel()
		<-gone
		if s.Log()[0].Whole {
			t.Errorf("after a %s the answer is whole", kind)
		}
	}
}

func TestAFlakyTurnFailsAFewTimes(t *testing.T) {
	s, url := serve(t, fakemodel.Say("at last").Failing(fakemodel.Fault{Status: 503, Times: 2}))
	path, body := shapes["chat"].ask(0, false)
	for i, want := range []int{503, 503, 200, 200} {
		if g := post(t, url+path, body); g.status != want {
			t.Errorf("attempt %d is %d, want %d", i, g.status, want)
		}
	}
	s.Reset()
	if g := post(t, url+path, body); g.status != 503 {
		t.Errorf("after a reset it is %d", g.status)
	}
}

func TestALieIsPrintedAsItStands(t *testing.T) {
	lies := fakemodel.Lie{Input: "-5", Output: "1e309", CacheRead: "NaN", CacheWrite: `"9223372036854775808"`}
	for name, want := range map[string][]string{
		"anthropic": {`"input_tokens":-5`, `"output_tokens":1e309`, `"cache_read_input_tokens":NaN`, `"cache_creation_input_tokens":"9223372036854775808"`},
		"chat":      {`"prompt_tokens":-5`, `"completion_tokens":1e309`, `"cached_tokens":NaN`},
		"responses": {`"input_tokens":-5`, `"output_tokens":1e309`, `"cached_tokens":NaN`},
		"gemini":    {`"promptTokenCount":-5`, `"candidatesTokenCount":1e309`, `"cachedContentTokenCount":NaN`},
	} {
		for _, stream := range []bool{false, true} {
			s, url := serve(t, fakemodel.Say("x").Lying(lies), fakemodel.Say("x").Lying(fakemodel.Lie{Missing: true}))
			path, body := shapes[name].ask(0, stream)
			g := post(t, url+path, body)
			for _, w := range want {
				if !strings.Contains(g.body, w) {
					t.Errorf("%s, stream %t: no %s in %s", name, stream, w, g.body)
				}
			}
			path, body = shapes[name].ask(1, stream)
			if g := post(t, url+path, body); strings.Contains(strings.ToLower(g.body), "tokens\":") || strings.Contains(g.body, "TokenCount") {
				t.Errorf("%s, stream %t: usage in %s", name, stream, g.body)
			}
			if got := s.Total(); got != (fakemodel.Usage{}) {
				t.Errorf("%s, stream %t: total is %+v, want none", name, stream, got)
			}
		}
	}
}

func TestAFloodIsMoreThanIsReported(t *testing.T) {
	for name, shape := range shapes {
		_, url := serve(t, fakemodel.Turn{Say: "end", Flood: 100_000, Usage: &fakemodel.Usage{Input: 1, Output: 1}})
		path, body := shape.ask(0, true)
		g := post(t, url+path, body)
		if len(g.body) < 400_000 || len(g.events) < 50 {
			t.Errorf("%s: %d bytes in %d events", name, len(g.body), len(g.events))
		}
	}
}

// until waits for something that another goroutine does next.
func until(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("it did not happen")
		}
	}
}
