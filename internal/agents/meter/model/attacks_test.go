package model

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/agents/spend"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/modelcalls"
)

// chatStream is a stream of text with a usage at its end.
func chatStream(usage string, texts ...string) string {
	var list []string
	for _, text := range texts {
		list = append(list, fmt.Sprintf(`{"model":"m","choices":[{"index":0,"delta":{"content":%q}}]}`, text))
	}
	if usage != "" {
		list = append(list, fmt.Sprintf(`{"model":"m","choices":[],"usage":%s}`, usage))
	}
	return modelcalls.EventStream(false, append(list, "[DONE]")...)
}

const askChat = `{"model":"m","stream":true,"max_tokens":5000,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hello"}]}`

func TestAttack095OneTokenIsReportedForAHundredThousand(t *testing.T) {
	text := strings.Repeat("four score and seven years ago ", 13000) // About 100,000 tokens.
	lies := map[string]struct{ provider, path, ask, answer string }{
		"Messages, stream": {modelapi.Anthropic, "/v1/messages", `{"model":"m","max_tokens":64000,"stream":true}`, modelcalls.EventStream(
			true,
			`{"type":"message_start","message":{"model":"m","usage":{"input_tokens":9,"output_tokens":1}}}`,
			fmt.Sprintf(`{"type":"content_block_delta","delta":{"type":"text_delta","text":%q}}`, text),
			`{"type":"message_delta","usage":{"output_tokens":1}}`,
		)},
		"Messages, whole": {modelapi.Anthropic, "/v1/messages", `{"model":"m","max_tokens":64000}`, fmt.Sprintf(
			`{"model":"m","content":[{"type":"text","text":%q}],"usage":{"input_tokens":9,"output_tokens":1}}`, text,
		)},
		"Chat": {modelapi.OpenAI, "/v1/chat/completions", askChat, chatStream(`{"prompt_tokens":9,"completion_tokens":1}`, text)},
		"Responses": {modelapi.OpenAI, "/v1/responses", `{"model":"m","stream":true}`, modelcalls.EventStream(
			true,
			fmt.Sprintf(`{"type":"response.output_text.delta","delta":%q}`, text),
			`{"type":"response.completed","response":{"model":"m","usage":{"input_tokens":9,"output_tokens":1}}}`,
		)},
		"Responses, only finished items": {modelapi.OpenAI, "/v1/responses", `{"model":"m","stream":true}`, modelcalls.EventStream(
			true,
			fmt.Sprintf(`{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":%q}]}}`, text),
			`{"type":"response.completed","response":{"model":"m","usage":{"input_tokens":9,"output_tokens":1}}}`,
		)},
		"Gemini": {modelapi.Gemini, "/v1beta/models/m:streamGenerateContent?alt=sse", `{"contents":[]}`, modelcalls.EventStream(
			false,
			fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"text":%q}]}}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":1}}`, text),
		)},
	}
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			r := start(t, lie.provider, says(lie.answer))
			r.post(lie.path, lie.ask)
			r.stop()
			total, _ := r.Account.Total()
			if want := modelapi.EstimateTokens(int64(len(text))); total.Output < want || total.Source != loop.UsageEstimated {
				t.Errorf("usage = %+v, want an estimate of %d or more tokens of output", total, want)
			}
			wantTold(t, r, ReasonBadUsage)
		})
	}
}

func TestAttack095TheStreamIsCutAtTheCap(t *testing.T) {
	const grant = 2000
	piece := strings.Repeat("x", 300)
	var pieces []string
	for range 1000 {
		pieces = append(pieces, piece)
	}
	r := start(t, modelapi.OpenAI, says(chatStream(`{"prompt_tokens":9,"completion_tokens":1}`, pieces...)), func(e *Endpoint) {
		e.Account = &spend.Account{Grant: loop.Amount{Tokens: grant}}
	})
	got := r.post("/v1/chat/completions", askChat)
	if got.err == nil {
		t.Errorf("the answer looks whole: %d bytes", len(got.body))
	}
	r.stop()
	if n := strings.Count(got.body, piece); n == 0 || n > grant*modelapi.BytesPerToken/len(piece) {
		t.Errorf("%d pieces arrived", n)
	}
	if used := r.Account.Used(); used.Tokens <= grant-200 || used.Tokens > grant+200 {
		t.Errorf("used %+v of %d", used, grant)
	}
	select {
	case <-r.Account.Exhausted():
	default:
		t.Error("the account is not exhausted")
	}
	if f, ok := errors.AsType[*loop.Fault](r.Account.Cause()); !ok || f.Exit != loop.ExitBudget {
		t.Errorf("cause = %v", r.Account.Cause())
	}
	wantTold(t, r, ReasonBudget)
}

func TestAttack095NothingIsForwardedAfterTheCap(t *testing.T) {
	calls := 0
	r := start(t, modelapi.OpenAI, func(w http.ResponseWriter, _ *http.Request) {
		calls++
		write(w, `{"model":"m","choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":9000,"completion_tokens":1}}`)
	}, func(e *Endpoint) { e.Account = &spend.Account{Grant: loop.Amount{Tokens: 4000}} })
	const ask = `{"model":"m","max_tokens":100,"messages":[]}`
	if got := r.post("/v1/chat/completions", ask); got.status != http.StatusOK {
		t.Fatalf("first call: %d %s", got.status, got.body)
	}
	for range 3 {
		got := r.post("/v1/chat/completions", ask)
		if got.status != http.StatusForbidden || !strings.Contains(got.body, "the budget of the run is used up: 9001 of 4000 tokens are used") {
			t.Errorf("later call: %d %s", got.status, got.body)
		}
		if got.header.Get("X-Should-Retry") != "false" {
			t.Error("the client may try again")
		}
	}
	if calls != 1 {
		t.Errorf("the provider was called %d times", calls)
	}
}

func TestAttack097NumbersThatAreNoneAreChargedPessimistically(t *testing.T) {
	for _, bad := range []string{`-1`, `9223372036854775808`, `1e309`, `NaN`, `1.5`, `"5"`, `1e30`, `[1]`, `{}`, `true`, `99999999999999`} {
		for name, usage := range map[string]string{
			"output": `{"prompt_tokens":9,"completion_tokens":` + bad + `}`,
			"input":  `{"prompt_tokens":` + bad + `,"completion_tokens":5}`,
			"cached": `{"prompt_tokens":9,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":` + bad + `}}`,
		} {
			for how, answer := range map[string]string{
				"stream": chatStream(usage, "hello there"),
				"whole":  `{"model":"m","choices":[{"message":{"content":"hello there"}}],"usage":` + usage + `}`,
			} {
				t.Run(name+" "+bad+" "+how, func(t *testing.T) { wantPessimistic(t, answer) })
			}
		}
	}
	for name, usage := range map[string]string{
		"more cached than there is": `{"prompt_tokens":9,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":10}}`,
		"a text":                    `"plenty"`,
		"a list":                    `[9,5]`,
	} {
		t.Run(name, func(t *testing.T) { wantPessimistic(t, chatStream(usage, "hello there")) })
	}
}

func wantPessimistic(t *testing.T, answer string) {
	t.Helper()
	r := start(t, modelapi.OpenAI, says(answer))
	r.post("/v1/chat/completions", askChat)
	r.stop()
	total, _ := r.Account.Total()
	want := loop.Usage{Input: modelapi.EstimateTokens(int64(len(askChat))), Output: 5000, Source: loop.UsageEstimated}
	if total != want {
		t.Errorf("usage = %+v, want all that was held: %+v", total, want)
	}
	wantTold(t, r, ReasonBadUsage)
}

func TestAttack097AMissingUsageIsEstimated(t *testing.T) {
	text := strings.Repeat("hello ", 100)
	for name, answer := range map[string]string{
		"stream":          chatStream("", text),
		"stream, null":    chatStream("null", text),
		"stream, empty":   chatStream("{}", text),
		"whole":           fmt.Sprintf(`{"model":"m","choices":[{"message":{"content":%q}}]}`, text),
		"whole, zeros":    fmt.Sprintf(`{"model":"m","choices":[{"message":{"content":%q}}],"usage":{"prompt_tokens":0,"completion_tokens":0}}`, text),
		"no JSON at all":  text,
		"stream, no JSON": "data: " + text + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, modelapi.OpenAI, says(answer))
			r.post("/v1/chat/completions", askChat)
			r.stop()
			total, _ := r.Account.Total()
			if total.Input < modelapi.EstimateTokens(int64(len(askChat))) || total.Output < 200 || total.Source != loop.UsageEstimated {
				t.Errorf("usage = %+v", total)
			}
		})
	}
}

func TestAttack077NoKeyIsInsideAndAReflectedKeyIsHidden(t *testing.T) {
	spellings := map[string]string{
		"plain": secret, "base64": base64.StdEncoding.EncodeToString([]byte(secret)), "hex": hex.EncodeToString([]byte(secret)),
		"URL": url.QueryEscape(secret), "JSON": strings.ReplaceAll(secret, "/", `\/`),
	}
	for provider, path := range map[string]string{
		modelapi.Anthropic: "/v1/messages", modelapi.OpenAI: "/v1/chat/completions", modelapi.Gemini: "/v1beta/models/m:generateContent",
	} {
		for how, spelled := range spellings {
			for _, status := range []int{200, 400, 401, 500, 302} {
				for _, stream := range []bool{false, true} {
					t.Run(fmt.Sprint(provider, " ", how, " ", status, " ", stream), func(t *testing.T) {
						r := start(t, provider, func(w http.ResponseWriter, req *http.Request) {
							if !strings.Contains(fmt.Sprint(req.Header), secret) || strings.Contains(fmt.Sprint(req.Header, req.URL), "placeholder") {
								t.Errorf("the provider got %v %v", req.URL, req.Header)
							}
							w.Header().Set("X-Reflected", "key="+spelled)
							w.Header().Set("Location", "https://elsewhere.test/?key="+spelled)
							w.Header().Set("Set-Cookie", "key="+spelled)
							body := `{"error":{"message":"bad key ` + spelled + `"},"content":[{"text":"` + spelled + `"}]}`
							if stream {
								w.Header().Set("Content-Type", "text/event-stream")
								body = "data: " + body + "\n\n"
							}
							w.WriteHeader(status)
							_, _ = w.Write([]byte(body))
						})
						got := r.post(path+"?key=placeholder", `{"model":"m","max_tokens":5}`)
						all := fmt.Sprint(got.header, got.body)
						if strings.Contains(all, spelled) || strings.Contains(all, secret[:20]) {
							t.Errorf("the key came back: %d %s", got.status, all)
						}
						if f, _ := r.LastFailure(); strings.Contains(f.Text, spelled) {
							t.Errorf("the key is in %+v", f)
						}
						for _, d := range r.denials {
							if strings.Contains(d.String(), spelled) {
								t.Errorf("the key is in %s", d)
							}
						}
					})
				}
			}
		}
	}
}

func TestOnlyTheKeyIsTakenOutOfWhatAModelWrote(t *testing.T) {
	// It has the form of a secret, as an example in code has.
	const other = `ghp_0123456789abcdefghijABCDEFGHIJ012345`
	answer := chatStream(`{"prompt_tokens":9,"completion_tokens":50}`, "token = "+other+"; key = "+secret)
	r := start(t, modelapi.OpenAI, says(answer))
	got := r.post("/v1/chat/completions", askChat)
	if want := strings.ReplaceAll(answer, secret, hiddenKey); got.body != want {
		t.Errorf("got %q, want %q", got.body, want)
	}
	for key, want := range map[string]string{"keyless": "a keyless one", "k3yl3ss!": "a " + hiddenKey + " one"} {
		if got := string(newHider(key).hideKey([]byte("a " + key + " one"))); got != want {
			t.Errorf("with the key %s the text is %q, want %q", key, got, want)
		}
	}
}

func TestWhatAClientSendsAsACredentialStaysHere(t *testing.T) {
	seen := make(chan *http.Request, 1)
	r := start(t, modelapi.Anthropic, func(w http.ResponseWriter, req *http.Request) {
		seen <- req.Clone(req.Context())
		write(w, `{"model":"m","usage":{"input_tokens":1,"output_tokens":1}}`)
	})
	req := r.request(t.Context(), http.MethodPost, "/v1/messages?beta=true&key=placeholder&x=placeholder", `{"model":"m"}`)
	for _, name := range []string{
		"X-Api-Key", "X-Goog-Api-Key", "Api-Key", "Authorization", "Proxy-Authorization", "Cookie", "X-Amz-Security-Token", "X-Forwarded-For",
	} {
		req.Header.Set(name, "placeholder")
	}
	req.Header.Set("Anthropic-Beta", "fine-grained-tool-streaming-2025-05-14")
	req.Header.Set("Connection", "X-Hop")
	req.Header.Set("X-Hop", "placeholder")
	r.do(req)
	got := <-seen
	var all bytes.Buffer
	if err := got.Header.Write(&all); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(all.String()+got.RequestURI, "placeholder") || got.RequestURI != "/v1/messages?beta=true" {
		t.Errorf("the provider got %s\n%s", got.RequestURI, &all)
	}
	if got.Header.Get("Anthropic-Beta") != "fine-grained-tool-streaming-2025-05-14" || got.Header.Get("X-Api-Key") != secret || got.Header.Get("Authorization") != "" {
		t.Errorf("the provider got\n%s", &all)
	}
}

func TestTheCredentialIsPutWhereTheProviderReadsIt(t *testing.T) {
	for name, c := range map[string]struct {
		provider, key string
		bearer        bool
		field, value  string
	}{
		"a key of Anthropic":   {modelapi.Anthropic, "k", false, "X-Api-Key", "k"},
		"a token of Anthropic": {modelapi.Anthropic, "k", true, "Authorization", "Bearer k"},
		"a key of OpenAI":      {modelapi.OpenAI, "k", false, "Authorization", "Bearer k"},
		"a key of Gemini":      {modelapi.Gemini, "k", false, "X-Goog-Api-Key", "k"},
		"a token of Gemini":    {modelapi.Gemini, "k", true, "Authorization", "Bearer k"},
		"none":                 {modelapi.OpenAI, "", false, "Authorization", ""},
	} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan http.Header, 1)
			r := start(t, c.provider, func(w http.ResponseWriter, req *http.Request) {
				seen <- req.Header
				write(w, `{"data":[]}`)
			}, func(e *Endpoint) { e.Key, e.Bearer = c.key, c.bearer })
			path := map[string]string{modelapi.Anthropic: "/v1/models", modelapi.OpenAI: "/v1/models", modelapi.Gemini: "/v1beta/models"}[c.provider]
			if got := r.do(r.request(t.Context(), http.MethodGet, path, "")); got.status != http.StatusOK {
				t.Fatalf("got %d %s", got.status, got.body)
			}
			header := <-seen
			for _, field := range []string{"X-Api-Key", "Authorization", "X-Goog-Api-Key"} {
				want := ""
				if field == c.field {
					want = c.value
				}
				if got := header.Get(field); got != want {
					t.Errorf("%s = %q, want %q", field, got, want)
				}
			}
		})
	}
}
