package model

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/meter"
	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/modelcalls"
)

func TestACallWhoseClientDiesIsChargedForWhatCame(t *testing.T) {
	text := strings.Repeat("hello ", 100)
	for name, c := range map[string]struct {
		ask    string
		answer string // that comes before the client dies
		output int64
	}{
		"half-way through a stream":   {askChat, chatStream("", text), modelapi.EstimateTokens(int64(len(text)))},
		"before the answer":           {askChat, "", 0},
		"before the answer was whole": {`{"model":"m","messages":[{"content":"hello"}]}`, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			started, gone := make(chan struct{}), make(chan struct{})
			r := start(t, modelapi.OpenAI, func(w http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body)
				if c.answer != "" {
					write(w, strings.TrimSuffix(c.answer, "data: [DONE]\n\n"))
					_ = http.NewResponseController(w).Flush()
				}
				close(started)
				<-req.Context().Done()
				close(gone)
			})
			ctx, kill := context.WithCancel(t.Context())
			defer kill()
			go func() {
				<-started
				if c.answer != "" {
					eventually(t, "the stream is counted", func() bool { return r.Account.Used().Output >= c.output })
				}
				kill()
			}()
			r.do(r.request(ctx, http.MethodPost, "/v1/chat/completions", c.ask))
			select {
			case <-gone:
			case <-time.After(long):
				t.Error("the provider is still at work")
			}
			r.stop()
			total, _ := r.Account.Total()
			if total.Input < modelapi.EstimateTokens(int64(len(c.ask))) || total.Output != c.output || total.Source != loop.UsageEstimated {
				t.Errorf("usage = %+v, want %d tokens of output", total, c.output)
			}
			if r.Account.Calls() != 1 {
				t.Errorf("%d calls were charged", r.Account.Calls())
			}
			if f, _ := r.LastFailure(); f.Class != "" {
				t.Errorf("the provider is blamed: %+v", f)
			}
		})
	}
}

// Whoever finds a run dead knows what was saved of it: a call that its model may
// have read must not be missing there.
func TestACallThatIsUnderWayIsInTheTotalBeforeItsAnswer(t *testing.T) {
	asked, goOn := make(chan struct{}), make(chan struct{})
	r := start(t, modelapi.OpenAI, func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		close(asked)
		<-goOn
		http.Error(w, `{"error":{"message":"slow down"}}`, http.StatusTooManyRequests)
	})
	done := make(chan reply, 1)
	go func() { done <- r.post("/v1/chat/completions", askChat) }()
	<-asked
	total, models := r.Account.Total()
	if want := (loop.Usage{Input: modelapi.EstimateTokens(int64(len(askChat))), Source: loop.UsageEstimated}); total != want || len(models) != 1 || models[0].Model != "m" {
		t.Errorf("under way: %+v of %+v, want %+v", total, models, want)
	}
	close(goOn)
	<-done
	r.stop()
	if total, _ := r.Account.Total(); !total.Zero() {
		t.Errorf("it was turned down, and charged %+v", total)
	}
}

// A program that is ended may have a call under way whose answer is there, or
// nearly: seen with Qwen Code, whose call beside the turn had been answered.
func TestWhatAProviderSaysJustAfterTheClientLeftIsCounted(t *testing.T) {
	answer := chatStream(`{"prompt_tokens":500,"completion_tokens":70}`, "hello")
	first, _, _ := strings.Cut(answer, "\n\n")
	for name, c := range map[string]struct{ ask, before, after string }{
		"half-way through a stream": {askChat, first + "\n\n", strings.TrimPrefix(answer, first+"\n\n")},
		"before the answer":         {askChat, "", answer},
		"before a whole answer": {
			`{"model":"m","messages":[{"content":"hello"}]}`, "",
			`{"model":"m","choices":[{"message":{"content":"hello"}}],"usage":{"prompt_tokens":500,"completion_tokens":70}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked, left := make(chan struct{}), make(chan struct{})
			r := start(t, modelapi.OpenAI, func(w http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body)
				if c.before != "" {
					write(w, c.before)
					_ = http.NewResponseController(w).Flush()
				}
				close(asked)
				<-left
				write(w, c.after)
			}, func(e *Endpoint) { e.Limits.Rest = long })
			go func() {
				<-asked
				r.stop()
			}()
			if got := r.post("/v1/chat/completions", c.ask); got.err == nil {
				t.Errorf("the client has the answer: %q", got.body)
			}
			close(left)
			r.stop()
			want := loop.Usage{Input: 500, Output: 70, Source: loop.UsageMetered}
			if total, _ := r.Account.Total(); total != want || r.Account.Calls() != 1 {
				t.Errorf("usage = %+v of %d calls, want %+v", total, r.Account.Calls(), want)
			}
		})
	}
}

// Nobody waits for an answer any more that a provider may give as late as it
// likes, and what it says then is not a failure of a turn.
func TestWhoeverLeavesIsToldOfNoFailure(t *testing.T) {
	asked, left := make(chan struct{}), make(chan struct{})
	r := start(t, modelapi.OpenAI, func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		close(asked)
		<-left
		http.Error(w, `{"error":{"message":"slow down"}}`, http.StatusTooManyRequests)
	}, func(e *Endpoint) { e.Limits.Rest = long })
	go func() {
		<-asked
		r.stop()
	}()
	r.post("/v1/chat/completions", askChat)
	close(left)
	r.stop()
	if f, _ := r.LastFailure(); f.Class != "" {
		t.Errorf("failure = %+v", f)
	}
	if total, _ := r.Account.Total(); !total.Zero() {
		t.Errorf("usage = %+v of a call that was turned down", total)
	}
}

func TestAStreamIsCountedWhileItRuns(t *testing.T) {
	proceed := make(chan struct{})
	r := start(t, modelapi.Anthropic, func(w http.ResponseWriter, _ *http.Request) {
		write(w, modelcalls.EventStream(
			true, `{"type":"message_start","message":{"model":"m","usage":{"input_tokens":90,"cache_read_input_tokens":5,"output_tokens":1}}}`,
			`{"type":"content_block_delta","delta":{"type":"text_delta","text":"123456789"}}`,
		))
		_ = http.NewResponseController(w).Flush()
		<-proceed
		_, _ = io.WriteString(w, modelcalls.EventStream(true, `{"type":"message_delta","usage":{"output_tokens":2}}`))
	})
	resp, err := http.DefaultClient.Do(r.request(t.Context(), http.MethodPost, "/v1/messages", `{"model":"m","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	for line := ""; !strings.Contains(line, "123456789"); {
		if line, err = in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	live, _ := r.Account.Total()
	if want := (loop.Usage{Input: 90, CacheRead: 5, Output: 4, Source: loop.UsageEstimated}); live != want {
		t.Errorf("while it runs: %+v, want %+v", live, want)
	}
	close(proceed)
	if _, err := io.Copy(io.Discard, in); err != nil {
		t.Error(err)
	}
	r.stop()
	if total, _ := r.Account.Total(); total != (loop.Usage{Input: 90, CacheRead: 5, Output: 2, Source: loop.UsageMetered}) {
		t.Errorf("in the end: %+v", total)
	}
}

func TestAnAnswerThatTheProviderCutsDoesNotLookWhole(t *testing.T) {
	for name, c := range map[string]struct{ ask, answer string }{
		"stream": {askChat, chatStream("", strings.Repeat("hello ", 100))},
		"whole":  {`{"model":"m"}`, `{"model":"m","choices":[{"message":{"content":"hello`},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, modelapi.OpenAI, func(w http.ResponseWriter, _ *http.Request) {
				write(w, c.answer)
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			})
			got := r.post("/v1/chat/completions", c.ask)
			if got.err == nil {
				t.Errorf("got %d %q", got.status, got.body)
			}
			r.stop()
			if total, _ := r.Account.Total(); total.Input == 0 || total.Output == 0 || total.Source != loop.UsageEstimated {
				t.Errorf("usage = %+v", total)
			}
			if f, _ := r.LastFailure(); f.Class != loop.FailureServer {
				t.Errorf("failure = %+v", f)
			}
		})
	}
}

func TestAnAnswerIsChargedFromItsFirstByteOn(t *testing.T) {
	half := `data: {"choices":[{"delta":{"content":"` + strings.Repeat("x", 30_000)
	for name, c := range map[string]struct {
		ask, kind, answer string
		output            int64
	}{
		"a stream without a byte":  {askChat, "text/event-stream", "", 0},
		"an answer without a byte": {`{"model":"m"}`, "application/json", "", 0},
		"half an event":            {askChat, "text/event-stream", half, modelapi.EstimateTokens(30_000)},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, modelapi.OpenAI, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				w.Header().Set("Content-Length", "100000")
				_, _ = io.WriteString(w, c.answer)
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			})
			if got := r.post("/v1/chat/completions", c.ask); got.err == nil {
				t.Errorf("got %d %q", got.status, got.body)
			}
			r.stop()
			total, _ := r.Account.Total()
			if calls := r.Account.Calls(); calls != min(c.output, 1) || total.Output < c.output || c.output == 0 && !total.Zero() {
				t.Errorf("%d calls are charged with %+v, want %d tokens of output", calls, total, c.output)
			}
		})
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		t.Errorf("somebody else got %v", req.Header)
	}))
	defer elsewhere.Close()
	r := start(t, modelapi.OpenAI, func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	got := r.post("/v1/chat/completions", askChat)
	if got.status != http.StatusBadGateway || !strings.Contains(got.body, "redirects") || got.header.Get("Location") != "" {
		t.Errorf("got %d %v %s", got.status, got.header, got.body)
	}
	if f, _ := r.LastFailure(); f.Class != loop.FailureRequest || f.Status != http.StatusTemporaryRedirect {
		t.Errorf("failure = %+v", f)
	}
}

func TestWhatIsNoModelCallIsToldAndNotForwarded(t *testing.T) {
	r := start(t, modelapi.Anthropic, func(_ http.ResponseWriter, req *http.Request) { t.Errorf("the provider got %s", req.URL) })
	got := r.post("/api/event_logging/batch", `{"events":[]}`)
	var said struct {
		Error struct{ Message string }
	}
	if err := json.Unmarshal([]byte(got.body), &said); err != nil || got.status != http.StatusNotFound {
		t.Fatalf("got %d %s: %v", got.status, got.body, err)
	}
	if m := said.Error.Message; !strings.HasPrefix(m, "pawl: ") || !strings.Contains(m, "is not a model call") || strings.Contains(m, "\n") {
		t.Errorf("it says %q", m)
	}
	wantTold(t, r, ReasonNoCall)
}

func TestAProviderThatCannotBeReachedCostsNothing(t *testing.T) {
	r := start(t, modelapi.Gemini, nil, func(e *Endpoint) {
		e.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }
	})
	got := r.post("/v1beta/models/m:generateContent", `{}`)
	if got.status != http.StatusBadGateway || !strings.Contains(got.body, "UNAVAILABLE") {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if total, _ := r.Account.Total(); !total.Zero() {
		t.Errorf("usage = %+v", total)
	}
	if f, _ := r.LastFailure(); f.Class != loop.FailureServer {
		t.Errorf("failure = %+v", f)
	}
}

func TestACallThatCannotBeSentCostsNothing(t *testing.T) {
	r := start(t, modelapi.OpenAI, func(http.ResponseWriter, *http.Request) { t.Error("the provider was asked") })
	plan, err := fault.Parse("meter.model.send.before=EIO")
	if err != nil {
		t.Fatal(err)
	}
	got := httptest.NewRecorder()
	r.ServeHTTP(got, r.request(fault.With(t.Context(), plan), http.MethodPost, "/v1/chat/completions", askChat))
	if got.Code != http.StatusBadGateway || !strings.Contains(got.Body.String(), "cannot be reached") {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
	if total, _ := r.Account.Total(); !total.Zero() {
		t.Errorf("usage = %+v", total)
	}
}

func TestAProviderThatSaysNothingIsLeftAfterAWhile(t *testing.T) {
	var asked atomic.Bool
	for idle := 50 * time.Millisecond; !asked.Load(); idle *= 2 { // A busy machine may not even reach it in time.
		r := start(t, modelapi.OpenAI, func(_ http.ResponseWriter, req *http.Request) {
			asked.Store(true)
			_, _ = io.Copy(io.Discard, req.Body)
			<-req.Context().Done()
		}, func(e *Endpoint) { e.Limits.Idle = idle })
		got := r.post("/v1/chat/completions", askChat)
		if !asked.Load() {
			continue
		}
		if got.status != http.StatusBadGateway || !strings.Contains(got.body, "too long") {
			t.Errorf("got %d %s", got.status, got.body)
		}
		// It was at work, for all that is known.
		if total, _ := r.Account.Total(); total.Input == 0 {
			t.Errorf("usage = %+v", total)
		}
	}
}

func TestBodiesHaveACap(t *testing.T) {
	r := start(t, modelapi.OpenAI, says(chatStream("", strings.Repeat("x", 1000))), func(e *Endpoint) {
		e.Limits.Request, e.Limits.Response = 300, 500
	})
	if got := r.post("/v1/chat/completions", `{"model":"`+strings.Repeat("m", 300)+`"}`); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large request: %d %s", got.status, got.body)
	}
	wantTold(t, r, meter.ReasonSent)
	if got := r.post("/v1/chat/completions", askChat); got.err == nil {
		t.Errorf("a large response passed: %d bytes", len(got.body))
	}
	r.stop()
	if total, _ := r.Account.Total(); total.Zero() {
		t.Error("it was not charged")
	}
}

func TestABodyThatDoesNotComeAsItIsIsNotForwarded(t *testing.T) {
	r := start(t, modelapi.OpenAI, func(http.ResponseWriter, *http.Request) { t.Error("the provider was called") })
	packed := r.request(t.Context(), http.MethodPost, "/v1/chat/completions", `{"model":"m"}`)
	packed.Header.Set("Content-Encoding", "gzip")
	if got := r.do(packed); got.status != http.StatusUnsupportedMediaType || !strings.Contains(got.body, `packed as \"gzip\"`) {
		t.Errorf("packed: %d %s", got.status, got.body)
	}
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{\"model\":\"m\"}"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 400 ") || !strings.Contains(string(got), "read the request: unexpected EOF") {
		t.Errorf("cut: %q, %v", got, err)
	}
}

func TestRequestsThatCannotBeReadAreNotForwarded(t *testing.T) {
	r := start(t, modelapi.OpenAI, func(_ http.ResponseWriter, req *http.Request) { t.Errorf("the provider got %s", req.URL) })
	for _, body := range []string{"", "null", "[]", "{", `{"messages":[]}`, `{"model":7}`} {
		if got := r.post("/v1/chat/completions", body); got.status != http.StatusBadRequest {
			t.Errorf("%q: %d %s", body, got.status, got.body)
		}
	}
	for _, body := range []string{"", "null", "[]", "{"} {
		if got := r.post("/v1/responses/input_tokens", body); got.status != http.StatusBadRequest {
			t.Errorf("a count of tokens, %q: %d %s", body, got.status, got.body)
		}
	}
	req := r.request(t.Context(), http.MethodPost, "/v1/chat/completions", "packed")
	req.Header.Set("Content-Encoding", "zstd")
	if got := r.do(req); got.status != http.StatusUnsupportedMediaType {
		t.Errorf("packed: %d %s", got.status, got.body)
	}
}

func TestACountOfTokensThatIsTurnedDownIsPassedOnAsItIs(t *testing.T) {
	const no = `{"type":"error","error":{"type":"rate_limit_error","message":"too fast"}}`
	r := start(t, modelapi.Anthropic, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, no)
	})
	if got := r.post("/v1/messages/count_tokens", `{"model":"m","messages":[]}`); got.status != http.StatusTooManyRequests || got.body != no || got.err != nil {
		t.Errorf("got %d %q, %v", got.status, got.body, got.err)
	}
}

func TestServeEndsCallsAndChargesThem(t *testing.T) {
	started := make(chan struct{})
	r := start(t, modelapi.OpenAI, func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		write(w, strings.TrimSuffix(chatStream("", "hello"), "data: [DONE]\n\n"))
		_ = http.NewResponseController(w).Flush()
		close(started)
		<-req.Context().Done()
	})
	done := make(chan reply, 1)
	go func() { done <- r.post("/v1/chat/completions", askChat) }()
	<-started
	eventually(t, "the stream is counted", func() bool { return r.Account.Used().Output > 0 })
	r.stop()
	if total, _ := r.Account.Total(); total.Output != 2 || r.Account.Calls() != 1 {
		t.Errorf("usage = %+v of %d calls", total, r.Account.Calls())
	}
	if got := <-done; got.err == nil {
		t.Errorf("the answer looks whole: %q", got.body)
	}
}

func TestConnectionsBeyondTheCapWait(t *testing.T) {
	r := start(t, modelapi.OpenAI, says(`{"data":[]}`), func(e *Endpoint) { e.Limits.Connections = 1 })
	var d net.Dialer
	first, err := d.DialContext(t.Context(), "tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan reply, 1)
	// The first connection has to be accepted before the second.
	if _, err := io.WriteString(first, "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(first).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: long}
	go func() {
		resp, err := client.Do(r.request(context.WithoutCancel(t.Context()), http.MethodGet, "/v1/models", ""))
		if err != nil {
			got <- reply{err: err}
			return
		}
		_ = resp.Body.Close()
		got <- reply{status: resp.StatusCode}
	}()
	select {
	case <-got:
		t.Error("the second did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	_ = first.Close()
	if g := <-got; g.status != http.StatusOK {
		t.Errorf("the second: %d %v", g.status, g.err)
	}
}
