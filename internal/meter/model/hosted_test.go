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

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/meter"
)

// calls are requests that ask a vendor for something of its own: one to each API
// and tool, by what allows them.
type hostedCall struct{ provider, path, body string }

const (
	messagesPath  = "/v1/messages"
	chatPath      = "/v1/chat/completions"
	responsesPath = "/v1/responses"
	geminiPath1   = "/v1beta/models/m:generateContent"
)

func inMessages(rest string) hostedCall {
	return hostedCall{Anthropic, messagesPath, `{"model":"m","max_tokens":5,` + rest + `}`}
}

func inMessage(block string) hostedCall {
	return inMessages(`"messages":[{"role":"user","content":[{"type":"text","text":"hi"},` + block + `]}]`)
}

func inChat(rest string) hostedCall {
	return hostedCall{OpenAI, chatPath, `{"model":"m",` + rest + `}`}
}

func inChatPart(part string) hostedCall {
	return inChat(`"messages":[{"role":"user","content":[` + part + `]}]`)
}

func inResponses(rest string) hostedCall {
	return hostedCall{OpenAI, responsesPath, `{"model":"m",` + rest + `}`}
}

func inItem(item string) hostedCall { return inResponses(`"input":[` + item + `]`) }

func inGemini(rest string) hostedCall { return hostedCall{Gemini, geminiPath1, `{` + rest + `}`} }

func inPart(part string) hostedCall { return inGemini(`"contents":[{"parts":[` + part + `]}]`) }

// hostedCalls are the ways to ask, by the name that allows them.
func hostedCalls() map[loop.ModelTool][]hostedCall {
	return map[loop.ModelTool][]hostedCall{
		loop.ToolWebSearch: {
			inMessages(`"tools":[{"type":"web_search_20250305","name":"web_search"}],"messages":[]`),
			inMessages(`"tools":[{"name":"mine","input_schema":{}},{"type":"web_search_20990101","name":"web_search"}],"messages":[]`),
			inMessages(`"tools":[{"name":"w","Type":"web_search_20250305"}],"messages":[]`),
			inMessages(`"tools":{"type":"web_search_20250305"},"messages":[]`),
			inMessages(`"tools":[{"t\u0079pe":"web_search_20250305"}],"messages":[]`),
			inMessage(`{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"type":"web_search_20250305","name":"web_search"}}}`),
			inMessage(`{"type":"tool_addition","definition":{"type":"web_search_20250305","name":"web_search"}}`),
			inMessages(`"messages":[{"role":"assistant","content":[{"type":"compaction","tool_changes":[{"type":"tool_addition","tool":{"type":"web_search_20250305"}}]}]}]`),
			inChat(`"web_search_options":{},"messages":[]`), inChat(`"search_parameters":{"mode":"on"},"messages":[]`),
			inChat(`"plugins":[{"id":"web"}],"messages":[]`), inChat(`"enable_search":true,"messages":[]`),
			inChat(`"Web_Search_Options":{},"messages":[]`),
			inChat(`"tools":[{"type":"web_search","web_search":{"enable":true}}],"messages":[]`),
			inChat(`"tools":[{"type":"builtin_function","function":{"name":"$web_search"}}],"messages":[]`),
			{OpenAI, chatPath, `{"model":"gpt-4o-search-preview","messages":[]}`},
			{OpenAI, chatPath, `{"model":"gpt-5-search-api-2025-10-14","messages":[]}`},
			{OpenAI, chatPath, `{"model":"openai/gpt-4o:online","messages":[]}`},
			{OpenAI, responsesPath, `{"model":"o3-deep-research","input":"x"}`},
			inResponses(`"tools":[{"type":"web_search"}]`), inResponses(`"tools":[{"type":"web_search_preview_2025_03_11"}]`),
			inResponses(`"tools":[{"type":"web_search","external_web_access":false}]`), inResponses(`"tools":[{"type":"x_search"}]`),
			inResponses(`"tools":[{"type":"namespace","name":"n","tools":[{"type":"web_search"}]}]`),
			inItem(`{"type":"additional_tools","tools":[{"type":"web_search"}]}`),
			inItem(`{"type":"tool_search_output","tools":[{"type":"web_search"}]}`),
			{OpenAI, "/v1/responses/input_tokens", `{"model":"m","tools":[{"type":"web_search"}]}`},
			inGemini(`"contents":[],"tools":[{"googleSearch":{}}]`), inGemini(`"contents":[],"tools":[{"google_search":{}}]`),
			inGemini(`"contents":[],"tools":{"googleSearch":{}}`), inGemini(`"contents":[],"Tools":[{"GoogleSearch":{}}]`),
			inGemini(`"contents":[],"tools":[{"functionDeclarations":[]},{"google_search_retrieval":{}}]`),
			inGemini(`"contents":[],"tools":[{"enterpriseWebSearch":{}}]`),
			{Gemini, "/v1beta/models/m:streamGenerateContent?alt=sse", `{"tools":[{"googleSearch":{}}]}`},
			{Gemini, "/v1beta/models/m:countTokens", `{"generateContentRequest":{"model":"models/m","tools":[{"google_search":{}}]}}`},
		},
		loop.ToolWebFetch: {
			inMessages(`"tools":[{"type":"web_fetch_20250910","name":"web_fetch"}],"messages":[]`),
			{Anthropic, "/v1/messages/count_tokens", `{"model":"m","tools":[{"type":"web_fetch_20250910"}],"messages":[]}`},
			inGemini(`"contents":[],"tools":[{"urlContext":{}}]`), inGemini(`"contents":[],"tools":[{"url_context":{}}]`),
		},
		loop.ToolCode: {
			inMessages(`"tools":[{"type":"code_execution_20250825","name":"code_execution"}],"messages":[]`),
			inMessages(`"container":"container_1","messages":[]`), inMessages(`"container":{"skills":[{"type":"anthropic","skill_id":"pdf"}]},"messages":[]`),
			inResponses(`"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]`),
			inResponses(`"tools":[{"type":"shell","environment":{"type":"container_auto"}}]`), inResponses(`"tools":[{"type":"shell"}]`),
			inGemini(`"contents":[],"tools":[{"code_execution":{}}]`), inPart(`{"executableCode":{"code":"x"}}`), inPart(`{"code_execution_result":{}}`),
		},
		loop.ToolSearch: {
			inResponses(`"tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]`), inGemini(`"contents":[],"tools":[{"fileSearch":{}}]`),
			inGemini(`"contents":[],"tools":[{"retrieval":{}}]`),
		},
		loop.ToolImages: {inResponses(`"tools":[{"type":"image_generation"}]`)},
		loop.ToolMaps:   {inGemini(`"contents":[],"tools":[{"googleMaps":{}}]`)},
		loop.ToolMCP: {
			inMessages(`"mcp_servers":[{"type":"url","url":"https://mcp.example.org","name":"x"}],"messages":[]`),
			inMessages(`"tools":[{"type":"mcp_toolset","mcp_server_name":"x"}],"messages":[]`),
			inResponses(`"tools":[{"type":"mcp","server_url":"https://mcp.example.org"}]`), inResponses(`"tools":[{"type":"mcp","connector_id":"connector_gmail"}]`),
			inGemini(`"contents":[],"tools":[{"mcpServers":[{}]}]`),
		},
		loop.ToolAdvisor: {inMessages(`"tools":[{"type":"advisor_20260301","name":"advisor","model":"x"}],"messages":[]`)},
		loop.ToolURLs: {
			inMessage(`{"type":"image","source":{"type":"url","url":"https://collect.example.org/?secret"}}`),
			inMessage(`{"type":"document","source":{"type":"url","url":"https://collect.example.org/x.pdf"}}`),
			inMessage(`{"type":"image","source":{"type":"base64","url":"https://collect.example.org"}}`),
			inMessage(`{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"url","url":"https://collect.example.org"}}]}`),
			inMessage(`{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"type":"url","url":"https://collect.example.org"}}]}}`),
			inMessages(`"system":[{"type":"image","source":{"type":"url","url":"https://collect.example.org"}}],"messages":[]`),
			inChatPart(`{"type":"image_url","image_url":{"url":"https://collect.example.org/?secret"}}`),
			inChatPart(`{"type":"image_url","image_url":"https://collect.example.org/?secret"}`),
			inChatPart(`{"type":"image_url","image_url":{"url":"//collect.example.org"}}`),
			inChatPart(`{"type":"video_url","video_url":{"url":"https://collect.example.org"}}`),
			inChatPart(`{"type":"file","file":{"filename":"x","file_data":"https://collect.example.org/x.pdf"}}`),
			inChatPart(`{"type":"input_audio","input_audio":{"data":"https://collect.example.org/x.wav"}}`),
			inItem(`{"role":"user","content":[{"type":"input_image","image_url":"https://collect.example.org"}]}`),
			inItem(`{"role":"user","content":[{"type":"input_file","file_url":"https://collect.example.org"}]}`),
			inItem(`{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"https://collect.example.org"}]}`),
			inItem(`{"type":"computer_call_output","output":{"type":"computer_screenshot","image_url":"https://collect.example.org"}}`),
			inPart(`{"fileData":{"fileUri":"https://collect.example.org/x"}}`), inPart(`{"file_data":{"file_uri":"gs://bucket/x"}}`),
			inPart(`{"functionResponse":{"name":"f","parts":[{"fileData":{"fileUri":"https://collect.example.org/x"}}]}}`),
			inGemini(`"contents":{"parts":{"fileData":{"fileUri":"https://collect.example.org/x"}}}`),
			inGemini(`"contents":[],"system_instruction":{"parts":[{"fileData":{"fileUri":"https://collect.example.org/x"}}]}`),
		},
		loop.ToolFiles: {
			inMessage(`{"type":"document","source":{"type":"file","file_id":"file_1"}}`), inMessage(`{"type":"container_upload","file_id":"file_1"}`),
			inMessage(`{"type":"document","source":{"type":"text","file_id":"file_1"}}`),
			inChatPart(`{"type":"file","file":{"file_id":"file-1"}}`), inItem(`{"role":"user","content":[{"type":"input_file","file_id":"file-1"}]}`),
			inItem(`{"role":"user","content":[{"type":"input_image","file_id":"file-1"}]}`),
			inPart(`{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/1"}}`),
		},
		loop.ToolStored: {
			inResponses(`"prompt":{"id":"pmpt_1"}`), inResponses(`"conversation":"conv_1"`), inResponses(`"previous_response_id":"resp_1"`),
			inItem(`{"type":"item_reference","id":"msg_1"}`), inGemini(`"contents":[],"cachedContent":"cachedContents/1"`),
			inGemini(`"contents":[],"cached_content":"cachedContents/1"`),
			{OpenAI, chatPath, `{"model":"@preset/mine","messages":[]}`},
			inChat(`"messages":[{"role":"assistant","audio":{"id":"audio_1"}}]`),
		},
		"type:custom\n":         {inMessages(`"tools":[{"type":"custom\n"}],"messages":[]`)},
		"type:function\n":       {inChat(`"tools":[{"type":"function\n"}],"messages":[]`)},
		"type:quantum_20270101": {inMessages(`"tools":[{"type":"quantum_20270101"}],"messages":[]`)},
		"type:teleport":         {inChat(`"tools":[{"type":"teleport"}],"messages":[]`), inGemini(`"contents":[],"tools":[{"teleport":{}}]`), inItem(`{"type":"teleport"}`), inMessage(`{"type":"teleport"}`), inMessage(`{"type":"image","source":{"type":"teleport"}}`)},
	}
}

// hostedNames are the other names of vendors' tools, and what such tools leave in a
// conversation, by the API that knows them.
var hostedNames = map[loop.ModelTool]struct{ messageBlocks, chatTools, items, geminiTools string }{
	loop.ToolWebSearch: {
		"web_search_tool_result", "browser_search x_search web_search_preview openrouter:web_search", "web_search_call x_search_call",
		"parallelAiSearch exaAiSearch",
	},
	loop.ToolWebFetch: {"web_fetch_tool_result", "web_extractor openrouter:web_fetch", "", ""},
	loop.ToolCode: {
		"code_execution_tool_result bash_code_execution_tool_result text_editor_code_execution_tool_result", "code_interpreter code_execution",
		"code_interpreter_call", "",
	},
	loop.ToolSearch:  {"", "collections_search retrieval", "file_search_call", ""},
	loop.ToolImages:  {"", "", "image_generation_call", ""},
	loop.ToolMCP:     {"mcp_tool_use mcp_tool_result", "mcp", "mcp_call mcp_list_tools mcp_approval_request mcp_approval_response", ""},
	loop.ToolAdvisor: {"advisor_tool_result", "", "", ""},
}

func TestAttack081EveryNameOfAVendorsToolBelongsToTheToolThatAllowsIt(t *testing.T) {
	for tool, names := range hostedNames {
		var calls []hostedCall
		for name := range strings.FieldsSeq(names.messageBlocks) {
			calls = append(calls, inMessage(`{"type":"`+name+`"}`))
		}
		for name := range strings.FieldsSeq(names.chatTools) {
			calls = append(calls, inChat(`"messages":[],"tools":[{"type":"`+name+`"}]`))
		}
		for name := range strings.FieldsSeq(names.items) {
			calls = append(calls, inItem(`{"type":"`+name+`"}`))
		}
		for name := range strings.FieldsSeq(names.geminiTools) {
			calls = append(calls, inGemini(`"tools":[{"`+name+`":{}}]`))
		}
		others := slices.DeleteFunc(loop.ModelTools(), func(o loop.ModelTool) bool { return o == tool })
		for _, c := range calls {
			to, ok := routeOf(c.provider, http.MethodPost, c.path)
			if !ok {
				t.Fatal(c.path)
			}
			if _, hosted, err := (&Endpoint{Provider: c.provider, Tools: []loop.ModelTool{tool}}).judge(to, []byte(c.body)); err != nil || !slices.Equal(hosted, []loop.ModelTool{tool}) {
				t.Errorf("allowed %s: %s asks for %v, %v", tool, c.body, hosted, err)
			}
			if _, _, err := (&Endpoint{Provider: c.provider, Tools: others}).judge(to, []byte(c.body)); err == nil {
				t.Errorf("without %s it passes: %s", tool, c.body)
			}
		}
	}
}

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
	for tool, calls := range hostedCalls() {
		for _, c := range calls {
			t.Run(string(tool)+" "+c.path+" "+c.body, func(t *testing.T) {
				seen := &vendor{}
				r := start(t, c.provider, seen.ServeHTTP)
				got := r.post(c.path, c.body)
				if seen.n != 0 {
					t.Fatalf("it arrived: %s", seen.body)
				}
				if got.status != http.StatusForbidden && got.status != http.StatusBadRequest || !strings.Contains(got.body, "pawl: ") ||
					!strings.Contains(got.body, "model_tools") && tool.Known() && !strings.HasPrefix(string(tool), "type:") {
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
			t.Run("allowed "+string(tool)+" "+c.path+" "+c.body, func(t *testing.T) {
				seen := &vendor{}
				r := start(t, c.provider, seen.ServeHTTP, func(e *Endpoint) { e.Tools = []loop.ModelTool{tool} })
				if got := r.post(c.path, c.body); got.status != http.StatusOK || seen.n != 1 {
					t.Errorf("answer %d %s, arrived %d", got.status, got.body, seen.n)
				}
				others := slices.DeleteFunc(loop.ModelTools(), func(o loop.ModelTool) bool { return o == tool })
				r = start(t, c.provider, seen.ServeHTTP, func(e *Endpoint) { e.Tools = others })
				if got := r.post(c.path, c.body); seen.n != 1 {
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
			r := start(t, Anthropic, seen.ServeHTTP)
			status, told := http.StatusForbidden, []loop.Reason{meter.ReasonRequest}
			if !json.Valid([]byte(body)) {
				status, told = http.StatusBadRequest, nil
			}
			if got := r.post(messagesPath, body); seen.n != 0 || got.status != status {
				t.Errorf("answer %d %s, arrived %d, want %d", got.status, got.body, seen.n, status)
			}
			wantTold(t, r, told...)
		})
	}
}

func TestAttack081WhateverTheProgramCallsItsBodyTheVendorReadsJSON(t *testing.T) {
	seen := &vendor{}
	r := start(t, Anthropic, seen.ServeHTTP)
	for _, kind := range []string{"application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=utf-7"} {
		req := r.request(t.Context(), http.MethodPost, messagesPath, `{"model":"m","max_tokens":5,"messages":[]}`)
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

// ordinary are requests as the agents' programs make them, and harmless ones that
// look like the others.
var ordinary = map[string]hostedCall{
	"Claude Code": inMessages(`"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}],"thinking":{"type":"enabled","budget_tokens":3},
		"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"metadata":{"user_id":"u"},"stream":true,
		"tools":[{"name":"WebSearch","description":"d","input_schema":{"type":"object","properties":{"type":{"const":"web_search_20250305"},"tools":{"type":"array"},"url":{"type":"string"}}}},
		{"type":"bash_20250124","name":"bash"},{"type":"text_editor_20250728","name":"str_replace_based_edit_tool"},{"type":"computer_20251124","name":"computer"},
		{"type":"memory_20250818","name":"memory"},{"type":"custom","name":"c","input_schema":{}},{"type":"tool_search_tool_regex_20251119","name":"tool_search_tool_regex"}],
		"messages":[{"role":"user","content":"web_search mcp_servers"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"t","name":"Task","input":{"tools":[{"type":"web_search_20250305"}],"source":{"type":"url","url":"https://x.test"},"file_id":"f"}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"{\"tools\":[]}"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},{"type":"tool_reference","tool_name":"x"}]}]},
		{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"see https://x.test"}},{"type":"search_result","source":"https://x.test","title":"t","content":[{"type":"text","text":"x"}]}]}]`),
	"Codex": inResponses(`"stream":true,"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"k","client_metadata":{"x":"y"},"reasoning":{"summary":"auto"},
		"tools":[{"type":"function","name":"exec_command","parameters":{"properties":{"url":{}}}},{"type":"custom","name":"apply_patch","format":{"type":"grammar"}},{"type":"local_shell"},
		{"type":"shell","environment":{"type":"local"}},{"type":"apply_patch"},{"type":"namespace","name":"mcp__x","tools":[{"type":"function","name":"f"}]},{"type":"tool_search","execution":"client"}],
		"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"x"}]},{"type":"reasoning","summary":[{"type":"summary_text","text":"x"}],"content":null,"encrypted_content":"e"},
		{"type":"function_call","name":"exec_command","arguments":"{\"tools\":[{\"type\":\"web_search\"}]}","call_id":"c"},{"type":"function_call_output","call_id":"c","output":"https://x.test"},
		{"type":"local_shell_call","action":{"type":"exec","command":["curl"]}},{"type":"shell_call_output","output":[{"stdout":"x","stderr":"","outcome":{"type":"exit","exit_code":0}}]},
		{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,aGk=","detail":"auto"},{"type":"input_file","filename":"x","file_data":"data:application/pdf;base64,aGk="}]}]`),
	"Gemini CLI": inGemini(`"systemInstruction":{"parts":[{"text":"x"}],"role":"user"},"generationConfig":{"temperature":1,"thinkingConfig":{"includeThoughts":true}},
		"tools":[{"functionDeclarations":[{"name":"google_web_search","parametersJsonSchema":{"properties":{"googleSearch":{},"fileUri":{}}}}]}],"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},
		"contents":[{"role":"user","parts":[{"text":"https://x.test"},{"inlineData":{"mimeType":"image/png","data":"aGk="}}]},
		{"role":"model","parts":[{"text":"t","thought":true,"thoughtSignature":"s"},{"functionCall":{"name":"f","args":{"fileUri":"https://x.test","tools":[{"googleSearch":{}}]}}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"fileData":{"fileUri":"x"}}}}]}]`),
	"qwen, opencode, goose": inChat(`"stream":true,"stream_options":{"include_usage":true},"temperature":0,"tool_choice":"auto","store":false,"max_tokens":5,
		"tools":[{"type":"function","function":{"name":"web_search","parameters":{"properties":{"image_url":{}}}}},{"type":"custom","custom":{"name":"x"}}],
		"messages":[{"role":"system","content":"x"},{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}},
		{"type":"input_audio","input_audio":{"data":"aGk=","format":"wav"}},{"type":"file","file":{"filename":"x","file_data":"data:application/pdf;base64,aGk="}}]},
		{"role":"assistant","content":null,"reasoning_content":"t","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"file_id\":1}"}}]},
		{"role":"tool","tool_call_id":"c","content":"https://x.test"}]`),
	"fields that say nothing":   inChat(`"tools":null,"web_search_options":null,"store":null,"messages":[{"role":"user","content":null,"type":null}]`),
	"Gemini's that say nothing": inGemini(`"cachedContent":null,"tools":[{"googleSearch":null}],"contents":[{"parts":[{"text":"x","executableCode":null,"fileData":{"mimeType":"x","fileUri":null}}]}]`),
	"a tool by its name":        inMessage(`{"type":"tool_addition","tool":"mine"}`),
	"a local server":            inChat(`"tools":[],"top_k":3,"min_p":0.1,"repeat_penalty":1,"chat_template_kwargs":{"enable_thinking":false},"num_ctx":4096,"keep_alive":"5m","messages":[]`),
}

func TestWhatAProgramDoesByItselfPassesAsItIsWritten(t *testing.T) {
	for name, c := range ordinary {
		t.Run(name, func(t *testing.T) {
			seen := &vendor{}
			r := start(t, c.provider, seen.ServeHTTP)
			got := r.post(c.path, c.body)
			if got.status != http.StatusOK || seen.n != 1 || seen.body != c.body {
				t.Errorf("answer %d %s; arrived: %s", got.status, got.body, seen.body)
			}
			wantTold(t, r)
		})
	}
}

func TestAFieldThatIsNotKnownIsLeftOutAndTheRestIsForwarded(t *testing.T) {
	seen := &vendor{}
	r := start(t, Anthropic, seen.ServeHTTP)
	for range 3 {
		got := r.post(messagesPath, `{"model":"m","max_tokens":5,"messages":[],"speed":"fast","fallbacks":1,"Tools":[{"type":"web_search_20250305"}],"n":12345678901234567890}`)
		if got.status != http.StatusOK || seen.body != `{"max_tokens":5,"messages":[],"model":"m"}` {
			t.Fatalf("answer %d %s; arrived: %s", got.status, got.body, seen.body)
		}
	}
	wantTold(t, r, ReasonLeftOut, ReasonLeftOut, ReasonLeftOut, ReasonLeftOut)
	google := start(t, Gemini, seen.ServeHTTP)
	if google.post(geminiPath1, `{"contents":[],"speed":"fast"}`); seen.body != `{"contents":[]}` {
		t.Errorf("arrived: %s", seen.body)
	}
	wantTold(t, google, ReasonLeftOut)
}

func TestOnlyHeadersOfTheListReachAVendor(t *testing.T) {
	programs := map[string]map[string]string{
		Anthropic: {
			"Anthropic-Version": "2023-06-01", "X-App": "cli", "X-Claude-Code-Session-Id": "s", "X-Stainless-Lang": "js",
			"Anthropic-Beta": "interleaved-thinking-2025-05-14,context-management-2025-06-27,claude-code-20250219,thinking-token-count-2026-05-13,thinking-display-updates-2026-08-18",
		},
		OpenAI: {
			"Originator": "pawl", "Session-Id": "s", "Thread-Id": "t", "X-Client-Request-Id": "r", "X-Codex-Beta-Features": "remote_compaction_v2",
			"X-Codex-Turn-Metadata": "{}", "X-Codex-Window-Id": "w", "X-Session-Affinity": "a", "Agent-Session-Id": "g",
		},
		Gemini: {"X-Goog-Api-Client": "google-genai-sdk/1.30.0", "X-Server-Timeout": "600"},
	}
	for _, name := range []string{
		"Openai-Beta", "Version", "Session_id", "Conversation_id", "X-Codex-Turn-State", "X-Codex-Installation-Id", "X-Codex-Parent-Thread-Id",
		"X-Codex-Root-Turn-Id", "X-Openai-Subagent", "X-Session-Id", "Http-Referer", "X-Title", "X-Dashscope-Cachecontrol", "X-Dashscope-Useragent",
		"X-Dashscope-Authtype",
	} {
		programs[OpenAI][name] = "v"
	}
	programs[OpenAI]["Openai-Beta"] = "responses=experimental"
	for _, known := range programs {
		for _, name := range []string{"Accept", "Accept-Language", "User-Agent", "X-Client-Request-Id"} {
			known[name] = "v"
		}
	}
	for provider, known := range programs {
		t.Run(provider, func(t *testing.T) {
			seen := &vendor{}
			r := start(t, provider, seen.ServeHTTP)
			path := map[string]string{Anthropic: messagesPath, OpenAI: chatPath, Gemini: geminiPath1}[provider]
			req := r.request(t.Context(), http.MethodPost, path, `{"model":"m","max_tokens":5,"messages":[]}`)
			if provider == Gemini {
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
		r := start(t, Anthropic, seen.ServeHTTP, func(e *Endpoint) { e.Tools = tools })
		for range 2 {
			req := r.request(t.Context(), http.MethodPost, messagesPath, `{"model":"m","max_tokens":5,"messages":[]}`)
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

func TestEachFeatureOfAVendorsToolBelongsToIt(t *testing.T) {
	for feature, want := range map[string]loop.ModelTool{
		"web-search-2025-03-05": loop.ToolWebSearch, "web-fetch-2025-09-10": loop.ToolWebFetch, "code-execution-2025-08-25": loop.ToolCode,
		"skills-2025-10-02": loop.ToolCode, "mcp-client-2025-11-20": loop.ToolMCP, "mcp-servers-2025-12-04": loop.ToolMCP,
		"files-api-2025-04-14": loop.ToolFiles, "advisor-tool-2026-03-01": loop.ToolAdvisor,
	} {
		if tool, known := featureOf(features["Anthropic-Beta"], feature); !known || tool != want {
			t.Errorf("%s belongs to %q, %t, want %q", feature, tool, known, want)
		}
	}
}

func TestARefusedToolNeitherEndsTheTurnsModelNorCountsAsTheVendorsFailure(t *testing.T) {
	r := start(t, Anthropic, says(`{"model":"m","usage":{"input_tokens":1,"output_tokens":1}}`))
	search := hostedCalls()[loop.ToolWebSearch][0]
	for range 5 {
		r.post(search.path, search.body)
	}
	select {
	case <-r.Rejected():
		t.Error("the vendor is taken for one that refuses every call")
	case <-time.After(10 * time.Millisecond):
	}
	if !r.Stuck() {
		t.Error("a turn that ends on a refused call ended like any other")
	}
	r.post(messagesPath, `{"model":"m","max_tokens":5,"messages":[],"tools":[{"name":"x","input_schema":{}}]}`)
	if _, recovered := r.LastFailure(); !recovered || r.Stuck() {
		t.Error("the turn went on, and the refused call still counts")
	}
}

func FuzzJudge(f *testing.F) {
	for _, calls := range hostedCalls() {
		for _, c := range calls {
			f.Add(c.body)
		}
	}
	for _, c := range ordinary {
		f.Add(c.body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, c := range []hostedCall{{Anthropic, messagesPath, body}, {OpenAI, chatPath, body}, {OpenAI, responsesPath, body}, {Gemini, geminiPath1, body}} {
			to, ok := routeOf(c.provider, http.MethodPost, c.path)
			if !ok {
				t.Fatal(c.path)
			}
			forward, _, err := (&Endpoint{Provider: c.provider}).judge(to, []byte(body))
			if err != nil {
				continue
			}
			// What is forwarded is judged alike once more, and every reader sees one value.
			again, _, err := (&Endpoint{Provider: c.provider}).judge(to, forward)
			if err != nil || string(again) != string(forward) {
				t.Fatalf("%s: forwarded %s, and then %s, %v", c.path, forward, again, err)
			}
			for _, word := range []string{`"googleSearch"`, `"web_search_20250305"`} {
				var top struct{ Tools []map[string]json.RawMessage }
				_ = json.Unmarshal(forward, &top)
				for _, tool := range top.Tools {
					if (c.provider == Gemini && tool["googleSearch"] != nil && string(tool["googleSearch"]) != "null") || (c.provider == Anthropic && string(tool["type"]) == word) {
						t.Fatalf("%s passed: %s", word, forward)
					}
				}
			}
		}
	})
}
