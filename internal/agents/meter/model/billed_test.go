package model

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/agents/spend"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/rules/price"
)

// listPrice is what a call costs by the built-in table.
func listPrice(model string, u loop.Usage) (int64, bool) {
	return plan.CallCost(model, u, price.BuiltIn())
}

func lastEvent(kind, data string) string {
	return "event: " + kind + "\ndata: " + data + "\n\n"
}

// Each answer is in the vendor's own words, and each sum was worked out by hand from
// its list of prices, in millionths of a US dollar.
func TestAnAnswerIsBilledToTheMicroDollar(t *testing.T) {
	for name, c := range map[string]struct {
		provider, path, model, answer string
		want                          int64
	}{
		// 12·4 + 40,000·0.20 + 1,000·5 + 2,000·8 + 500·20 = 48 + 8,000 + 5,000 + 16,000 + 10,000
		"Anthropic, a cache of both lengths": {
			modelapi.Anthropic, "/v1/messages", "claude-opus-5-5",
			`{"model":"claude-opus-5-5","content":[{"type":"text","text":"ok"}],"usage":{"input_tokens":12,"cache_read_input_tokens":40000,` +
				`"cache_creation_input_tokens":3000,"cache_creation":{"ephemeral_5m_input_tokens":1000,"ephemeral_1h_input_tokens":2000},"output_tokens":500}}`,
			39_048,
		},
		// The passes are (180,000 + 23,000)·4 + (3,500 + 1,000)·20 = 812,000 + 90,000
		"Anthropic, a conversation that was compacted on the way": {
			modelapi.Anthropic, "/v1/messages", "claude-opus-5-5",
			`{"model":"claude-opus-5-5","content":[{"type":"text","text":"ok"}],"usage":{"input_tokens":23000,"output_tokens":1000,` +
				`"iterations":[{"type":"compaction","input_tokens":180000,"output_tokens":3500},{"type":"message","input_tokens":23000,"output_tokens":1000}]}}`,
			902_000,
		},
		// 5,000·1 + 300·5 + 3·10,000
		"Anthropic, three searches of the web": {
			modelapi.Anthropic, "/v1/messages", "claude-haiku-4-5",
			`{"model":"claude-haiku-4-5-20251001","content":[{"type":"text","text":"ok"}],"usage":{"input_tokens":5000,"output_tokens":300,"server_tool_use":{"web_search_requests":3,"web_fetch_requests":1}}}`,
			36_500,
		},
		// 2,000·2 + 8,000·0.10 + 400·10: the 300 thoughts are in the 400.
		"OpenAI Responses, thoughts in the output": {
			modelapi.OpenAI, "/v1/responses", "gpt-6.1-sol",
			`{"model":"gpt-6.1-sol","status":"completed","output":[],"usage":{"input_tokens":10000,"input_tokens_details":{"cached_tokens":8000},"output_tokens":400,"output_tokens_details":{"reasoning_tokens":300},"total_tokens":10400}}`,
			8_800,
		},
		// 1,000·2 + 100·10 + 2 searches·10,000 + 1 search of files·2,500. A page that is only opened has no fee.
		"OpenAI Responses, searches": {
			modelapi.OpenAI, "/v1/responses", "gpt-6.1-sol",
			`{"model":"gpt-6.1-sol","status":"completed","output":[{"type":"web_search_call","action":{"type":"search","query":"a"}},{"type":"web_search_call","action":{"type":"search","query":"b"}},` +
				`{"type":"web_search_call","action":{"type":"open_page","url":"u"}},{"type":"file_search_call","queries":["c"]}],"usage":{"input_tokens":1000,"output_tokens":100,"total_tokens":1100}}`,
			25_500,
		},
		// 272,001·4 + 100·15 = 1,088,004 + 1,500
		"OpenAI Responses, long input": {
			modelapi.OpenAI, "/v1/responses", "gpt-6.1-sol",
			`{"model":"gpt-6.1-sol","status":"completed","output":[],"usage":{"input_tokens":272001,"output_tokens":100,"total_tokens":272101}}`,
			1_089_504,
		},
		// 100·2 + 50·6 + 250·6: the total has 250 thoughts that completion_tokens leaves out.
		"xAI over Chat Completions, thoughts beside the output": {
			modelapi.OpenAI, "/v1/chat/completions", "grok-4.5",
			`{"model":"grok-4.5","choices":[{"message":{"content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":400,"completion_tokens_details":{"reasoning_tokens":250}}}`,
			2_000,
		},
		// 1,000·1.32 + 64,000·0.044 + 500·3.96 = 1,320 + 2,816 + 1,980
		"DeepSeek over Chat Completions, with its own name for cached input": {
			modelapi.OpenAI, "/v1/chat/completions", "deepseek-v4-pro",
			`{"model":"deepseek-v4-pro","choices":[{"message":{"content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":65000,"prompt_cache_hit_tokens":64000,"prompt_cache_miss_tokens":1000,"completion_tokens":500,"total_tokens":65500}}`,
			6_116,
		},
		// 10,000·0.95 + 50,000·0.16 + 2,500·4 = 9,500 + 8,000 + 10,000
		"Moonshot over Chat Completions, cached input at the top": {
			modelapi.OpenAI, "/v1/chat/completions", "kimi-k2.6",
			`{"model":"kimi-k2.6","choices":[{"message":{"content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":60000,"cached_tokens":50000,"completion_tokens":2500,"total_tokens":62500}}`,
			27_500,
		},
		// (2,000 + 10)·2 + 4,000·0.20 + (200 + 100)·12 = 4,020 + 800 + 3,600
		"Gemini, thoughts and what a tool said": {
			modelapi.Gemini, "/v1beta/models/gemini-3.1-pro-preview:generateContent", "",
			`{"modelVersion":"gemini-3.1-pro-preview","candidates":[{"content":{"parts":[{"text":"ok"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":6000,"cachedContentTokenCount":4000,"toolUsePromptTokenCount":10,"candidatesTokenCount":200,"thoughtsTokenCount":100,"totalTokenCount":6310}}`,
			8_420,
		},
		// 7,777·0.30 + 111·2.50 + 2·14,000 = 2,333.1 + 277.5 + 28,000
		"Gemini, two searches": {
			modelapi.Gemini, "/v1beta/models/gemini-3.5-flash-lite:generateContent", "",
			`{"modelVersion":"gemini-3.5-flash-lite","candidates":[{"content":{"parts":[{"text":"ok"}]},"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["a","b"]}}],"usageMetadata":{"promptTokenCount":7777,"candidatesTokenCount":111,"totalTokenCount":7888}}`,
			30_611,
		},
		// 200,001·4 + 1,000·18 = 800,004 + 18,000
		"Gemini, long input, as a stream": {
			modelapi.Gemini, "/v1beta/models/gemini-3.1-pro-preview:streamGenerateContent?alt=sse", "",
			`data: {"modelVersion":"gemini-3.1-pro-preview","candidates":[{"content":{"parts":[{"text":"ok"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":200001,"candidatesTokenCount":1000}}` + "\n\n",
			818_004,
		},
		// 900·2.50 + 100·0.50 + 40·7.50 = 2,250 + 50 + 300
		"Qwen over Chat Completions, as a stream": {
			modelapi.OpenAI, "/v1/chat/completions", "qwen3.7-max",
			`data: {"model":"qwen3.7-max","choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}` + "\n\n" +
				`data: {"model":"qwen3.7-max","choices":[],"usage":{"prompt_tokens":1000,"prompt_tokens_details":{"cached_tokens":100},"completion_tokens":40,"total_tokens":1040}}` + "\n\ndata: [DONE]\n\n",
			2_600,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, c.provider, says(c.answer), func(e *Endpoint) { e.Account = &spend.Account{Price: listPrice} })
			ask := `{"generationConfig":{"maxOutputTokens":4000}}`
			if c.model != "" {
				most := "max_tokens"
				if strings.HasSuffix(c.path, "/responses") {
					most = "max_output_tokens"
				}
				ask = fmt.Sprintf(`{"model":%q,%q:4000,"stream":%v}`, c.model, most, strings.HasPrefix(c.answer, "data:"))
			}
			if got := r.post(c.path, ask); got.status != http.StatusOK {
				t.Fatalf("got %d %s", got.status, got.body)
			}
			r.stop()
			_, models := r.Account.Total()
			_, cost := plan.PriceModels(models, price.BuiltIn())
			if cost.MicroUSD != c.want || len(cost.Unpriced) != 0 {
				t.Errorf("billed are %d millionths of a dollar, want %d: %+v", cost.MicroUSD, c.want, models)
			}
			wantTold(t, r)
		})
	}
}

// Two calls of 200,000 tokens cost what each costs, and not what one of 400,000
// would.
func TestLongInputIsPricedByTheCall(t *testing.T) {
	r := start(t, modelapi.OpenAI, says(`{"model":"gpt-6.1-sol","status":"completed","output":[],"usage":{"input_tokens":200000,"output_tokens":100}}`), func(e *Endpoint) {
		e.Account = &spend.Account{Price: listPrice}
	})
	for range 2 {
		r.post("/v1/responses", `{"model":"gpt-6.1-sol"}`)
	}
	r.stop()
	_, models := r.Account.Total()
	// 2·(200,000·2 + 100·10)
	if _, cost := plan.PriceModels(models, price.BuiltIn()); cost.MicroUSD != 802_000 {
		t.Errorf("billed are %d, want 802,000", cost.MicroUSD)
	}
}

// A program that is turned away has spent nothing, however often it tries.
func TestACallThatTheProviderTurnedDownCostsNothing(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 429, 500, 503, 529} {
		r := start(t, modelapi.Anthropic, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, `{"type":"error","error":{"type":"some_error","message":"no"}}`)
		}, func(e *Endpoint) {
			e.Account = &spend.Account{Grant: loop.Amount{MicroUSD: 10_000_000}, Price: listPrice}
		})
		for range 5 {
			r.post("/v1/messages", `{"model":"claude-opus-5-5","max_tokens":32000}`)
		}
		r.stop()
		if total, models := r.Account.Total(); !total.Zero() || len(models) != 0 || !r.Asked() || !r.Account.Committed().Zero() {
			t.Errorf("%d: charged are %+v", status, total)
		}
	}
}

// One gateway that broke off each answer in the middle ate the cap of a day: a
// broken event was taken for a usage that is none, for which the whole reservation
// is charged, 32,000 tokens of output at each of five tries.
func TestAStreamThatIsCutIsChargedWithWhatWasSentAndWhatCame(t *testing.T) {
	begun := lastEvent("message_start", `{"type":"message_start","message":{"model":"claude-opus-5-5","usage":{"input_tokens":1000,"output_tokens":1}}}`) +
		lastEvent("content_block_delta", `{"type":"content_block_delta","delta":{"type":"text_delta","text":"`+strings.Repeat("word ", 60)+`"}}`)
	for name, c := range map[string]struct {
		answer string
		broken bool // the connection breaks, too
		output int64
	}{
		"in the middle of an event":     {begun + "event: content_block_delta\ndata: {\"type\":\"content_", true, 101 + 8},
		"with a word of the gateway":    {begun + "data: upstream connect error\n\n", false, 101 + 10},
		"with that, and broken":         {begun + "data: upstream connect error\n\n", true, 101 + 10},
		"between two events":            {begun, true, 101},
		"before the model said a thing": {"", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, modelapi.Anthropic, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = fmt.Fprint(w, c.answer)
				_ = http.NewResponseController(w).Flush()
				if c.broken {
					panic(http.ErrAbortHandler)
				}
			}, func(e *Endpoint) {
				e.Account = &spend.Account{Grant: loop.Amount{MicroUSD: 100_000_000}, Price: listPrice}
			})
			const tries = 5
			for range tries {
				r.post("/v1/messages", `{"model":"claude-opus-5-5","max_tokens":32000,"stream":true}`)
			}
			r.stop()
			total, models := r.Account.Total()
			input := int64(1000)
			if c.output == 0 {
				input = 0
			}
			if total.Input != tries*input || total.Output > tries*c.output || total.Output < tries*(c.output-10) {
				t.Errorf("charged are %+v (%+v), want %d and at most %d", total, models, tries*input, tries*c.output)
			}
			if left := r.Account.Committed(); left.MicroUSD > tries*(input*4+c.output*20) {
				t.Errorf("%+v is held or spent", left)
			}
		})
	}
}

// What is beside the output in the total and is not a thought is not billed as one.
