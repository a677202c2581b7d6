package model

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/meter"
	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/modelcalls"
)

// vendor counts what arrives and keeps the last body.
type vendor struct {
	mu   sync.Mutex
	n    int
	body string
	head http.Header
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	v.mu.Lock()
	v.n, v.body, v.head = v.n+1, string(body), r.Header.Clone()
	v.mu.Unlock()
	write(w, `{"usage":{"input_tokens":2000,"output_tokens":1}}`)
}

func TestAttack081NoneOfTheVendorsOwnToolsIsAskedForByTheModelEndpoint(t *testing.T) {
	for tool, calls := range modelcalls.HostedCalls() {
		for _, c := range calls {
			t.Run(string(tool)+" "+c.Path+" "+c.Body, func(t *testing.T) {
				seen := &vendor{}
				r := start(t, c.Provider, seen.ServeHTTP)
				got := r.post(c.Path, c.Body)
				if seen.n != 0 {
					t.Fatalf("it arrived: %s", seen.body)
				}
				if got.status != http.StatusForbidden && got.status != http.StatusBadRequest || !strings.Contains(got.body, "pawl: ") ||
					!strings.Contains(got.body, "model_tools") && tool.IsKnown() && !strings.HasPrefix(string(tool), "type:") {
					t.Errorf("answer %d %s", got.status, got.body)
				}
				if got.header.Get("X-Should-Retry") != "false" || !json.Valid([]byte(got.body)) || !strings.Contains(got.body, `"error"`) {
					t.Errorf("the answer is not an error of the vendor's shape that ends the call: %v %s", got.header, got.body)
				}
				wantTold(t, r, ReasonModelTool)
				if f, _ := r.LastFailure(); f.Class != loop.FailureDenied {
					t.Errorf("failure %+v, want one of pawl's own", f)
				}
				if used, _ := r.Account.Total(); !used.Zero() || r.Account.Calls() != 0 {
					t.Errorf("a refused call was charged: %+v", used)
				}
			})
			t.Run("allowed "+string(tool)+" "+c.Path+" "+c.Body, func(t *testing.T) {
				seen := &vendor{}
				r := start(t, c.Provider, seen.ServeHTTP, func(e *Endpoint) { e.Tools = []loop.ModelTool{tool} })
				if got := r.post(c.Path, c.Body); got.status != http.StatusOK || seen.n != 1 {
					t.Errorf("answer %d %s, arrived %d", got.status, got.body, seen.n)
				}
				others := slices.DeleteFunc(loop.ModelTools(), func(o loop.ModelTool) bool { return o == tool })
				r = start(t, c.Provider, seen.ServeHTTP, func(e *Endpoint) { e.Tools = others })
				if got := r.post(c.Path, c.Body); seen.n != 1 {
					t.Errorf("with every other tool it arrived: %d", got.status)
				}
			})
		}
	}
}

func TestAttack081ARequestThatCanBeReadInTwoWaysIsNotForwarded(t *testing.T) {
	search := `[{"type":"web_search_20250305","name":"web_search"}]`
	for name, body := range map[string]string{
		"the last of two fields is harmless":   `{"model":"m","max_tokens":5,"messages":[],"tools":` + search + `,"tools":[]}`,
		"the first of two fields is harmless":  `{"model":"m","max_tokens":5,"messages":[],"tools":[],"tools":` + search + `}`,
		"one of two is written with escapes":   `{"model":"m","max_tokens":5,"messages":[],"tools":[],"t\u006fols":` + search + `}`,
		"two types of one tool":                `{"model":"m","max_tokens":5,"messages":[],"tools":[{"name":"x","type":"web_search_20250305","type":"custom"}]}`,
		"two types of one source":              `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x.test","type":"base64"}}]}]}`,
		"two models, of which one is paid for": `{"model":"m","model":"dearer","max_tokens":5,"messages":[]}`,
		"two lengths, of which one is held":    `{"model":"m","max_tokens":5,"max_tokens":64000,"messages":[]}`,
		"deeper than anybody needs":            `{"model":"m","max_tokens":5,"messages":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`,
		"bytes that are no text":               "{\"model\":\"m\xff\",\"max_tokens\":5,\"messages\":[]}",
		"a mark before it":                     "\ufeff" + `{"model":"m","max_tokens":5,"messages":[],"tools":[]}`,
		"another value behind it":              `{"model":"m","max_tokens":5,"messages":[]}{"tools":` + search + `}`,
		"more parts than anybody needs":        `{"model":"m","max_tokens":5,"messages":[` + strings.Repeat("0,", 2<<20) + `0]}`,
	} {
		t.Run(name, func(t *testing.T) {
			seen := &vendor{}
			r := start(t, modelapi.Anthropic, seen.ServeHTTP)
			status, told := http.StatusForbidden, []loop.Reason{meter.ReasonRequest}
			if !json.Valid([]byte(body)) {
				status, told = http.StatusBadRequest, nil
			}
			if got := r.post(modelcalls.MessagesPath, body); seen.n != 0 || got.status != status {
				t.Errorf("answer %d %s, arrived %d, want %d", got.status, got.body, seen.n, status)
			}
			wantTold(t, r, told...)
		})
	}
}

func TestAttack081WhateverTheProgramCallsItsBodyTheVendorReadsJSON(t *testing.T) {
	seen := &vendor{}
	r := start(t, modelapi.Anthropic, seen.ServeHTTP)
	for _, kind := range []string{"application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=utf-7"} {
		req := r.request(t.Context(), http.MethodPost, modelcalls.MessagesPath, `{"model":"m","max_tokens":5,"messages":[]}`)
		req.Header.Set("Content-Type", kind)
		if r.do(req); seen.head.Get("Content-Type") != "application/json" {
			t.Errorf("%s arrived as %q", kind, seen.head.Get("Content-Type"))
		}
	}
	req := r.request(t.Context(), http.MethodGet, "/v1/models", `{"tools":[]}`)
	if r.do(req); seen.body != "" {
		t.Errorf("a list of models was asked for with the body %s", seen.body)
	}
}

func TestWhatAProgramDoesByItselfPassesAsItIsWritten(t *testing.T) {
	for name, c := range modelcalls.Ordinary {
		t.Run(name, func(t *testing.T) {
			seen := &vendor{}
			r := start(t, c.Provider, seen.ServeHTTP)
			got := r.post(c.Path, c.Body)
			if got.status != http.StatusOK || seen.n != 1 || seen.body != c.Body {
				t.Errorf("answer %d %s; arrived: %s", got.status, got.body, seen.body)
			}
			wantTold(t, r)
		})
	}
}

func TestAFieldThatIsNotKnownIsLeftOutAndTheRestIsForwarded(t *testing.T) {
	seen := &vendor{}
	r := start(t, modelapi.Anthropic, seen.ServeHTTP)
	for range 3 {
		got := r.post(modelcalls.MessagesPath, `{"model":"m","max_tokens":5,"messages":[],"speed":"fast","fallbacks":1,"Tools":[{"type":"web_search_20250305"}],"n":12345678901234567890}`)
		if got.status != http.StatusOK || seen.body != `{"max_tokens":5,"messages":[],"model":"m"}` {
			t.Fatalf("answer %d %s; arrived: %s", got.status, got.body, seen.body)
		}
	}
	wantTold(t, r, ReasonLeftOut, ReasonLeftOut, ReasonLeftOut, ReasonLeftOut)
	google := start(t, modelapi.Gemini, seen.ServeHTTP)
	if google.post(modelcalls.GeminiPath, `{"contents":[],"speed":"fast"}`); seen.body != `{"contents":[]}` {
		t.Errorf("arrived: %s", seen.body)
	}
	wantTold(t, google, ReasonLeftOut)
}

func TestFieldsThatAreLeftOutAreToldAHundredTimesAtMost(t *testing.T) {
	r := start(t, modelapi.Anthropic, (&vendor{}).ServeHTTP)
	for from := range 3 {
		fields := make([]string, 51)
		for i := range fields {
			fields[i] = fmt.Sprintf(`"unknown_%d":1`, from*len(fields)+i)
		}
		r.post(modelcalls.MessagesPath, `{"model":"m","max_tokens":5,"messages":[],`+strings.Join(fields, ",")+`}`)
	}
	wantTold(t, r, slices.Repeat([]loop.Reason{ReasonLeftOut}, 100)...)
}

func TestOnlyHeadersOfTheListReachAVendor(t *testing.T) {
	programs := map[string]map[string]string{
		modelapi.Anthropic: {
			"Anthropic-Version": "2023-06-01", "X-App": "cli", "X-Claude-Code-Session-Id": "s", "X-Stainless-Lang": "js",
			"Anthropic-Beta": "interleaved-thinking-2025-05-14,context-management-2025-06-27,claude-code-20250219,thinking-token-count-2026-05-13,thinking-display-updates-2026-08-18",
		},
		modelapi.OpenAI: {
			"Originator": "pawl", "Session-Id": "s", "Thread-Id": "t", "X-Client-Request-Id": "r", "X-Codex-Beta-Features": "remote_compaction_v2",
			"X-Codex-Turn-Metadata": "{}", "X-Codex-Window-Id": "w", "X-Session-Affinity": "a", "Agent-Session-Id": "g",
		},
		modelapi.Gemini: {"X-Goog-Api-Client": "google-genai-sdk/1.30.0", "X-Server-Timeout": "600"},
	}
	for _, name := range []string{
		"Openai-Beta", "Version", "Session_id", "Conversation_id", "X-Codex-Turn-State", "X-Codex-Installation-Id", "X-Codex-Parent-Thread-Id",
		"X-Codex-Root-Turn-Id", "X-Openai-Subagent", "X-Session-Id", "Http-Referer", "X-Title", "X-Dashscope-Cachecontrol", "X-Dashscope-Useragent",
		"X-Dashscope-Authtype",
	} {
		programs[modelapi.OpenAI][name] = "v"
	}
	programs[modelapi.OpenAI]["Openai-Beta"] = "responses=experimental"
	for _, known := range programs {
		for _, name := range []string{"Accept", "Accept-Language", "User-Agent", "X-Client-Request-Id"} {
			known[name] = "v"
		}
	}
	for provider, known := range programs {
		t.Run(provider, func(t *testing.T) {
			seen := &vendor{}
			r := start(t, provider, seen.ServeHTTP)
			path := map[string]string{modelapi.Anthropic: modelcalls.MessagesPath, modelapi.OpenAI: modelcalls.ChatPath, modelapi.Gemini: modelcalls.GeminiPath}[provider]
			req := r.request(t.Context(), http.MethodPost, path, `{"model":"m","max_tokens":5,"messages":[]}`)
			if provider == modelapi.Gemini {
				req = r.request(t.Context(), http.MethodPost, path, `{"contents":[]}`)
			}
			for name, value := range known {
				req.Header.Set(name, value)
			}
			strange := []string{
				"X-Http-Method-Override", "OpenAI-Organization", "OpenAI-Project", "X-Goog-User-Project", "X-Unknown", "Origin", "Forwarded", "Via",
				"X-Original-Url", "Anthropic-Workspace-Id", "Content-Language",
			}
			for _, name := range strange {
				req.Header.Set(name, "strange")
			}
			r.do(req)
			for name, value := range known {
				if got := seen.head.Get(name); got != value {
					t.Errorf("%s: %q arrived as %q", name, value, got)
				}
			}
			if all := fmt.Sprint(seen.head); strings.Contains(all, "strange") {
				t.Errorf("the vendor got %s", all)
			}
		})
	}
}

func TestFeaturesAreSwitchedOnByTheListAndVendorsToolsByTheDefinition(t *testing.T) {
	const beta = "claude-code-20250219, ,web-search-2025-03-05,,mcp-client-2025-11-20,skills-2025-10-02,files-api-2025-04-14,never-seen-2030-01-01"
	for want, tools := range map[string][]loop.ModelTool{
		"claude-code-20250219":                       nil,
		"claude-code-20250219,web-search-2025-03-05": {loop.ToolWebSearch},
		"claude-code-20250219,mcp-client-2025-11-20": {loop.ToolMCP},
		"claude-code-20250219,skills-2025-10-02":     {loop.ToolCode},
		"claude-code-20250219,files-api-2025-04-14":  {loop.ToolFiles},
	} {
		seen := &vendor{}
		r := start(t, modelapi.Anthropic, seen.ServeHTTP, func(e *Endpoint) { e.Tools = tools })
		for range 2 {
			req := r.request(t.Context(), http.MethodPost, modelcalls.MessagesPath, `{"model":"m","max_tokens":5,"messages":[]}`)
			req.Header.Set("Anthropic-Beta", beta)
			r.do(req)
		}
		if got := seen.head.Get("Anthropic-Beta"); got != want {
			t.Errorf("with %v the vendor got %q, want %q", tools, got, want)
		}
		if n := len(r.told()); n != 5-len(tools) {
			t.Errorf("with %v it was told %d times, want once for each of %d", tools, n, 5-len(tools))
		}
	}
}

func TestARefusedToolNeitherEndsTheTurnsModelNorCountsAsTheVendorsFailure(t *testing.T) {
	r := start(t, modelapi.Anthropic, says(`{"model":"m","usage":{"input_tokens":1,"output_tokens":1}}`))
	search := modelcalls.HostedCalls()[loop.ToolWebSearch][0]
	for range 5 {
		r.post(search.Path, search.Body)
	}
	select {
	case <-r.Rejected():
		t.Error("the vendor is taken for one that refuses every call")
	case <-time.After(10 * time.Millisecond):
	}
	if !r.Stuck() {
		t.Error("a turn that ends on a refused call ended like any other")
	}
	r.post(modelcalls.MessagesPath, `{"model":"m","max_tokens":5,"messages":[],"tools":[{"name":"x","input_schema":{}}]}`)
	if _, recovered := r.LastFailure(); !recovered || r.Stuck() {
		t.Error("the turn went on, and the refused call still counts")
	}
}
