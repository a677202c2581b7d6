// Package modelcalls holds calls of models and their answers in the published
// formats of the vendors, for the tests of whoever reads them.
package modelcalls

import (
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Answer is a call and the answer to it.
type Answer struct {
	Provider string
	Path     string
	Ask      string // body of the call
	Body     string // of the answer
	Model    string // that answered
	Want     loop.Usage
}

// IsStream reports whether the answer is a stream.
func (a Answer) IsStream() bool { return !strings.HasPrefix(a.Body, "{") }

// EventStream returns a stream of server-sent events, with names if named.
func EventStream(named bool, data ...string) string {
	var b strings.Builder
	for _, d := range data {
		if _, rest, ok := strings.Cut(d, `"type":"`); ok && named {
			name, _, _ := strings.Cut(rest, `"`)
			b.WriteString("event: " + name + "\n")
		}
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// Answers are one of each shape, whole and as a stream.
var Answers = map[string]Answer{
	"Anthropic Messages, whole": {
		Provider: "anthropic", Path: "/v1/messages",
		Ask: `{"model":"claude-sonnet-4-5","max_tokens":1024,"messages":[{"role":"user","content":"Hello, world"}]}`,
		Body: `{"id":"msg_01XFDUDYJgAACzvnptvVoYEL","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929",` +
			`"content":[{"type":"text","text":"Hi! My name is Claude."}],"stop_reason":"end_turn","stop_sequence":null,` +
			`"usage":{"input_tokens":2095,"cache_creation_input_tokens":2051,"cache_read_input_tokens":51,` +
			`"cache_creation":{"ephemeral_5m_input_tokens":51,"ephemeral_1h_input_tokens":2000},"output_tokens":503,"service_tier":"standard"}}`,
		Model: "claude-sonnet-4-5-20250929",
		Want:  loop.Usage{Input: 2095, Output: 503, CacheRead: 51, CacheWrite: 2051, CacheWrite1h: 2000, Source: loop.UsageMetered},
	},
	"Anthropic Messages, stream": {
		Provider: "anthropic", Path: "/v1/messages",
		Ask: `{"model":"claude-sonnet-4-5","max_tokens":1024,"stream":true,"messages":[{"role":"user","content":"What is the weather?"}]}`,
		Body: EventStream(
			true,
			`{"type":"message_start","message":{"id":"msg_014p7gG3wDgGV9EUtLvnow3U","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","stop_sequence":null,"usage":{"input_tokens":472,"output_tokens":2,"cache_creation_input_tokens":0,"cache_read_input_tokens":188086},"content":[],"stop_reason":null}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"ping"}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Okay, let's check the weather in Zürich \"now\""}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_01T1x1fJ34qAmk2tNTrN7Up6","name":"get_weather","input":{}}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"location\": \"San Francisco\"}"}}`,
			`{"type":"content_block_stop","index":1}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":89}}`,
			`{"type":"message_stop"}`,
		),
		Model: "claude-sonnet-4-5-20250929",
		Want:  loop.Usage{Input: 472, Output: 89, CacheRead: 188086, Source: loop.UsageMetered},
	},
	"Anthropic Messages, stream whose end counts all": {
		Provider: "anthropic", Path: "/v1/messages?beta=true",
		Ask: `{"model":"claude-opus-4-5","max_tokens":2048,"stream":true,"messages":[]}`,
		Body: EventStream(
			true,
			`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-5-20251101","content":[],"usage":{"input_tokens":2679,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":3}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me solve this step by step"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":10682,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":510,"server_tool_use":{"web_search_requests":1}}}`,
			`{"type":"message_stop"}`,
		),
		Model: "claude-opus-4-5-20251101",
		Want:  loop.Usage{Input: 10682, Output: 510, WebSearches: 1, Source: loop.UsageMetered},
	},
	"OpenAI Chat Completions, whole": {
		Provider: "openai", Path: "/v1/chat/completions",
		Ask: `{"model":"gpt-4.1","messages":[{"role":"user","content":"Hello!"}]}`,
		Body: `{"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion","created":1741569952,"model":"gpt-4.1-2025-04-14",` +
			`"choices":[{"index":0,"message":{"role":"assistant","content":"Hello! How can I assist you today?","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],` +
			`"usage":{"prompt_tokens":2006,"completion_tokens":300,"total_tokens":2306,"prompt_tokens_details":{"cached_tokens":1920,"audio_tokens":0},` +
			`"completion_tokens_details":{"reasoning_tokens":256,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default"}`,
		Model: "gpt-4.1-2025-04-14",
		Want:  loop.Usage{Input: 86, Output: 300, CacheRead: 1920, Reasoning: 256, Source: loop.UsageMetered},
	},
	"OpenAI Chat Completions, stream": {
		Provider: "openai", Path: "/v1/chat/completions",
		Ask: `{"model":"gpt-4o-mini","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Hello!"}]}`,
		Body: EventStream(
			false,
			`{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null}`,
			`{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","choices":[{"index":0,"delta":{"content":"Hello"},"logprobs":null,"finish_reason":null}],"usage":null}`,
			`{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]},"finish_reason":null}],"usage":null}`,
			`{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}`,
			`{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","choices":[],"usage":{"prompt_tokens":1117,"completion_tokens":46,"total_tokens":1163,"prompt_tokens_details":{"cached_tokens":1024}}}`,
			`[DONE]`,
		),
		Model: "gpt-4o-mini",
		Want:  loop.Usage{Input: 93, Output: 46, CacheRead: 1024, Source: loop.UsageMetered},
	},
	"OpenAI Responses, whole": {
		Provider: "openai", Path: "/v1/responses",
		Ask: `{"model":"gpt-5.1-codex","input":"Tell me a three sentence bedtime story about a unicorn."}`,
		Body: `{"id":"resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b","object":"response","created_at":1741476542,"status":"completed","error":null,` +
			`"incomplete_details":null,"model":"gpt-5.1-codex","output":[{"type":"message","id":"msg_1","status":"completed","role":"assistant",` +
			`"content":[{"type":"output_text","text":"In a peaceful grove beneath a silver moon, a unicorn named Lumina discovered a hidden pool.","annotations":[]}]}],` +
			`"usage":{"input_tokens":36,"input_tokens_details":{"cached_tokens":6},"output_tokens":87,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":123},"metadata":{}}`,
		Model: "gpt-5.1-codex",
		Want:  loop.Usage{Input: 30, Output: 87, CacheRead: 6, Source: loop.UsageMetered},
	},
	"OpenAI Responses, stream": {
		Provider: "openai", Path: "/v1/responses",
		Ask: `{"model":"gpt-5.1-codex","stream":true,"input":[{"role":"user","content":"hi"}]}`,
		Body: EventStream(
			true,
			`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"model":"gpt-5.1-codex","output":[],"usage":null}}`,
			`{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"**Thinking about it**"}`,
			`{"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}`,
			`{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"Hi there"}`,
			`{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"cmd\":\"ls\"}"}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hi there","annotations":[]}]}}`,
			`{"type":"response.completed","sequence_number":9,"response":{"id":"resp_1","object":"response","status":"completed","error":null,"model":"gpt-5.1-codex-2025-11-13","output":[{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi there"}]}],"usage":{"input_tokens":3700,"input_tokens_details":{"cached_tokens":3072,"cache_write_tokens":128},"output_tokens":411,"output_tokens_details":{"reasoning_tokens":384},"total_tokens":4111}}}`,
		),
		Model: "gpt-5.1-codex-2025-11-13",
		Want:  loop.Usage{Input: 500, Output: 411, CacheRead: 3072, CacheWrite: 128, Reasoning: 384, Source: loop.UsageMetered},
	},
	"Gemini generateContent, whole": {
		Provider: "gemini", Path: "/v1beta/models/gemini-2.5-pro:generateContent",
		Ask: `{"contents":[{"parts":[{"text":"How does AI work?"}]}]}`,
		Body: `{"candidates":[{"content":{"parts":[{"text":"AI works by learning patterns."}],"role":"model"},"finishReason":"STOP","index":0}],` +
			`"usageMetadata":{"promptTokenCount":4108,"cachedContentTokenCount":4000,"candidatesTokenCount":100,"thoughtsTokenCount":640,"totalTokenCount":4848,` +
			`"promptTokensDetails":[{"modality":"TEXT","tokenCount":4108}]},"modelVersion":"gemini-2.5-pro","responseId":"x"}`,
		Model: "gemini-2.5-pro",
		Want:  loop.Usage{Input: 108, Output: 740, CacheRead: 4000, Reasoning: 640, Source: loop.UsageMetered},
	},
	"Gemini streamGenerateContent": {
		Provider: "gemini", Path: "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
		Ask: `{"contents":[{"parts":[{"text":"How does AI work?"}]}],"generationConfig":{"maxOutputTokens":4096}}`,
		Body: strings.ReplaceAll(EventStream(
			false,
			`{"candidates":[{"content":{"parts":[{"text":"AI works","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":1008,"totalTokenCount":1108,"thoughtsTokenCount":100},"modelVersion":"gemini-2.5-pro"}`,
			`{"candidates":[{"content":{"parts":[{"text":" by learning"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":1008,"candidatesTokenCount":4,"totalTokenCount":1112,"thoughtsTokenCount":100},"modelVersion":"gemini-2.5-pro"}`,
			`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"write_file","args":{"path":"a"}}}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1008,"toolUsePromptTokenCount":10,"candidatesTokenCount":40,"totalTokenCount":1158,"thoughtsTokenCount":100},"modelVersion":"gemini-2.5-pro"}`,
		), "\n", "\r\n"),
		Model: "gemini-2.5-pro",
		Want:  loop.Usage{Input: 1018, Output: 140, Reasoning: 100, Source: loop.UsageMetered},
	},
}
