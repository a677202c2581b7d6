package fakemodel_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// shape is how the tests ask for one turn, as the vendor's documents say.
type shape struct {
	path, streamPath string
	tools            string // that write files and run commands
	result           string // a tool's result, as a message of the conversation
	conversation     string // the name of the list of messages
	stream           string // fields that ask for a stream
}

var shapes = map[string]shape{
	"anthropic": {
		path: "/v1/messages", streamPath: "/v1/messages", conversation: "messages", stream: `,"stream":true`,
		tools:  `[{"name":"Write","input_schema":{"type":"object","properties":{"file_path":{},"content":{}}}},{"name":"Bash","input_schema":{"properties":{"command":{}}}}]`,
		result: `{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"fine"}]}`,
	},
	"chat": {
		path: "/v1/chat/completions", streamPath: "/v1/chat/completions", conversation: "messages",
		stream: `,"stream":true,"stream_options":{"include_usage":true}`,
		tools:  `[{"type":"function","function":{"name":"write","parameters":{"properties":{"path":{},"content":{}}}}},{"type":"function","function":{"name":"bash","parameters":{"properties":{"command":{}}}}}]`,
		result: `{"role":"tool","tool_call_id":"x","content":"fine"}`,
	},
	"responses": {
		path: "/v1/responses", streamPath: "/v1/responses", conversation: "input", stream: `,"stream":true`,
		tools:  `[{"type":"custom","name":"apply_patch"},{"type":"function","name":"shell","parameters":{"properties":{"command":{"type":"array"}}}}]`,
		result: `{"type":"function_call_output","call_id":"x","output":"fine"}`,
	},
	"gemini": {
		path: "/v1beta/models/m-1:generateContent", streamPath: "/v1beta/models/m-1:streamGenerateContent?alt=sse", conversation: "contents",
		tools:  `[{"functionDeclarations":[{"name":"write_file","parametersJsonSchema":{"properties":{"file_path":{},"content":{}}}},{"name":"run_shell_command","parameters":{"properties":{"command":{}}}}]}]`,
		result: `{"role":"user","parts":[{"functionResponse":{"name":"x","response":{"output":"fine"}}}]}`,
	},
}

// ask is a request after some results of tools.
func (s shape) ask(results int, stream bool) (path, body string) {
	path, extra := s.path, ""
	if stream {
		path, extra = s.streamPath, s.stream
	}
	said := strings.TrimSuffix(strings.Repeat(s.result+",", results), ",")
	return path, fmt.Sprintf(`{"model":"m-1","tools":%s,%q:[%s]%s}`, s.tools, s.conversation, said, extra)
}

// got is one response.
type got struct {
	status int
	header http.Header
	body   string
	events []event
	err    error
}

type event struct {
	name string
	data map[string]any
}

func post(t *testing.T, url, body string) got {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return got{err: err}
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	g := got{status: res.StatusCode, header: res.Header, body: string(text), err: err}
	if res.Header.Get("Content-Type") == "text/event-stream" {
		g.events = events(t, text)
	}
	return g
}

func events(t *testing.T, text []byte) []event {
	t.Helper()
	var all []event
	var e event
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		switch name, value, _ := strings.Cut(s.Text(), ": "); name {
		case "event":
			e.name = value
		case "data":
			if value != "[DONE]" {
				_ = json.Unmarshal([]byte(value), &e.data) // A lie need not be JSON.
			}
			all, e = append(all, e), event{}
		}
	}
	return all
}

func serve(t *testing.T, turns ...fakemodel.Turn) (*fakemodel.Server, string) {
	t.Helper()
	s := fakemodel.New(fakemodel.Script{Turns: turns})
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return s, h.URL
}

// dig follows names and indexes into a value.
func dig(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			a, _ := v.([]any)
			if p >= len(a) {
				return nil
			}
			v = a[p]
		}
	}
	return v
}

func names(all []event) []string {
	var out []string
	for _, e := range all {
		if len(out) == 0 || out[len(out)-1] != e.name {
			out = append(out, e.name)
		}
	}
	return out
}

func TestAScriptIsPlayedTurnByTurnInEveryShape(t *testing.T) {
	for name, shape := range shapes {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stream %t", name, stream), func(t *testing.T) {
				s, url := serve(t, fakemodel.Write("a.txt", "hello\n"), fakemodel.Shell("true"), fakemodel.Say("all is done"))
				for step, want := range []string{"a.txt", "true", "all is done", "all is done"} {
					path, body := shape.ask(step, stream)
					g := post(t, url+path, body)
					if g.err != nil || g.status != http.StatusOK {
						t.Fatalf("turn %d is %d %s, %v", step, g.status, g.body, g.err)
					}
					if e := s.Log()[step]; !e.Whole || e.Side || e.Step != step || e.Model != "m-1" || !strings.Contains(e.Did, want) || e.Shape != name {
						t.Errorf("turn %d is logged as %+v, want %q done", step, e, want)
					}
				}
				if got, want := s.Total(), (fakemodel.Usage{Input: 1000 + 1100 + 1200 + 1300, Output: 50 + 51 + 52 + 53}); got != want {
					t.Errorf("total is %+v, want %+v", got, want)
				}
			})
		}
	}
}

func TestAnthropicStreamsAsPublished(t *testing.T) {
	_, url := serve(t, fakemodel.Write("a.txt", "hello\n").Using(fakemodel.Usage{Input: 10, Output: 20, CacheRead: 30, CacheWrite: 40}))
	path, body := shapes["anthropic"].ask(0, true)
	g := post(t, url+path, body)
	want := []string{
		"message_start", "content_block_start", "ping", "content_block_delta", "content_block_stop", "message_delta", "message_stop",
	}
	if diff := cmp.Diff(want, names(g.events)); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
	var input strings.Builder
	for _, e := range g.events {
		if e.name != e.data["type"] {
			t.Errorf("event %s has type %v", e.name, e.data["type"])
		}
		if s, ok := dig(e.data, "delta", "partial_json").(string); ok {
			input.WriteString(s)
		}
	}
	if got, want := input.String(), `{"content":"hello\n","file_path":"a.txt"}`; got != want {
		t.Errorf("input is %s, want %s", got, want)
	}
	end := g.events[len(g.events)-2].data
	if got := dig(end, "delta", "stop_reason"); got != "tool_use" {
		t.Errorf("stop reason is %v", got)
	}
	for field, want := range map[string]float64{
		"input_tokens": 10, "output_tokens": 20, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 40,
	} {
		if got := dig(end, "usage", field); got != want {
			t.Errorf("%s is %v, want %v", field, got, want)
		}
	}
}

func TestResponsesStreamsAsPublished(t *testing.T) {
	_, url := serve(t, fakemodel.Write("a.txt", "hello\n").Using(fakemodel.Usage{Input: 10, Output: 20, CacheRead: 30}), fakemodel.Say("fine"))
	path, body := shapes["responses"].ask(0, true)
	g := post(t, url+path, body)
	want := []string{
		"response.created", "response.output_item.added", "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done",
		"response.output_item.done", "response.completed",
	}
	if diff := cmp.Diff(want, names(g.events)); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
	for i, e := range g.events {
		if dig(e.data, "sequence_number") != float64(i) {
			t.Errorf("event %d is number %v", i, dig(e.data, "sequence_number"))
		}
	}
	end := g.events[len(g.events)-1].data
	if got, want := dig(end, "response", "output", 0, "input"), "*** Begin Patch\n*** Add File: a.txt\n+hello\n*** End Patch"; got != want {
		t.Errorf("patch is %q, want %q", got, want)
	}
	if in, cached := dig(end, "response", "usage", "input_tokens"), dig(end, "response", "usage", "input_tokens_details", "cached_tokens"); in != 40.0 || cached != 30.0 {
		t.Errorf("%v tokens of which %v are cached, want 40 of which 30", in, cached)
	}
	path, body = shapes["responses"].ask(1, true)
	want = []string{
		"response.created", "response.output_item.added", "response.content_part.added", "response.output_text.delta",
		"response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed",
	}
	if diff := cmp.Diff(want, names(post(t, url+path, body).events)); diff != "" {
		t.Errorf("events of a text (-want +got):\n%s", diff)
	}
}

func TestChatTellsUsageInAStreamOnlyIfAsked(t *testing.T) {
	s, url := serve(t, fakemodel.Say("fine").Using(fakemodel.Usage{Input: 10, Output: 20, CacheRead: 30, CacheWrite: 5}))
	path, body := shapes["chat"].ask(0, true)
	g := post(t, url+path, body)
	if !strings.HasSuffix(g.body, "data: [DONE]\n\n") {
		t.Errorf("the stream ends with %q", g.body[max(0, len(g.body)-40):])
	}
	usage := g.events[len(g.events)-2].data
	if got := dig(usage, "usage", "prompt_tokens"); got != 45.0 {
		t.Errorf("prompt tokens are %v, want 45", got)
	}
	if n := len(dig(usage, "choices").([]any)); n != 0 {
		t.Errorf("the chunk with the usage has %d choices", n)
	}
	if got, want := s.Total(), (fakemodel.Usage{Input: 15, Output: 20, CacheRead: 30}); got != want {
		t.Errorf("total is %+v, want %+v", got, want)
	}
	s.Reset()
	post(t, url+path, strings.Replace(body, `"include_usage":true`, `"include_usage":false`, 1))
	if got := s.Total(); got != (fakemodel.Usage{}) {
		t.Errorf("total is %+v where nothing was reported", got)
	}
}

func TestGeminiStreamsAsPublished(t *testing.T) {
	_, url := serve(t, fakemodel.Write("a.txt", "hello\n").Using(fakemodel.Usage{Input: 10, Output: 20, CacheRead: 30}))
	path, body := shapes["gemini"].ask(0, true)
	last := post(t, url+path, body).events[0].data
	if got := dig(last, "candidates", 0, "content", "parts", 0, "functionCall", "args", "file_path"); got != "a.txt" {
		t.Errorf("the call is of %v", got)
	}
	if got := dig(last, "candidates", 0, "finishReason"); got != "STOP" {
		t.Errorf("it finished for %v", got)
	}
	if got := dig(last, "usageMetadata", "promptTokenCount"); got != 40.0 {
		t.Errorf("prompt tokens are %v, want 40", got)
	}
}

func TestARequestWithoutToolsDoesNotDisturbTheScript(t *testing.T) {
	s, url := serve(t, fakemodel.Write("a.txt", "hello\n").Failing(fakemodel.Fault{Status: 500, Times: 1}))
	g := post(t, url+"/v1/messages", `{"model":"small","messages":[{"role":"user","content":"a title, please"}]}`)
	if got := dig(decode(t, g.body), "content", 0, "text"); got != "A side call" {
		t.Errorf("the side call says %v", got)
	}
	path, body := shapes["anthropic"].ask(0, false)
	if g := post(t, url+path, body); g.status != http.StatusInternalServerError {
		t.Errorf("the script begins with %d, want its own failure", g.status)
	}
	if log := s.Log(); !log[0].Side || log[1].Side || s.Total() != (fakemodel.Usage{Input: 120, Output: 4}) {
		t.Errorf("the log is %+v", log)
	}
	if n := len(s.Turns()); n != 1 {
		t.Errorf("%d turns took part, want 1", n)
	}
}

func TestAPathChoosesTheScript(t *testing.T) {
	s, url := serve(t, fakemodel.Say("the usual"))
	s.Set("mine", fakemodel.Script{Turns: []fakemodel.Turn{fakemodel.Say("{}")}, Bare: true})
	s.Set("later", fakemodel.Script{Turns: []fakemodel.Turn{fakemodel.Say("again")}, Skip: 3, Model: "m-1"})
	bare := `{"model":"m-1","messages":[{"role":"user","content":"judge"}]}`
	if got := dig(decode(t, post(t, url+"/s/mine/v1/messages", bare).body), "content", 0, "text"); got != "{}" {
		t.Errorf("the script says %v", got)
	}
	path, body := shapes["chat"].ask(3, false)
	post(t, url+"/s/later"+path, body)
	post(t, url+"/s/later"+path, strings.Replace(body, "m-1", "m-2", 1))
	if log := s.Log(); log[1].Did != "again" || log[1].Step != 0 || !log[2].Side {
		t.Errorf("the log is %+v", log[1:])
	}
	if g := post(t, url+"/s/none"+path, body); g.status != http.StatusNotFound {
		t.Errorf("a script that is not there is %d", g.status)
	}
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return m
}
