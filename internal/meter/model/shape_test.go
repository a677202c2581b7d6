package model

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/loop"
)

func (rec recording) streamed() bool { return !strings.HasPrefix(rec.answer, "{") }

func TestAnAnswerPassesByteForByteAndIsCounted(t *testing.T) {
	for name, rec := range recordings {
		for how, handler := range map[string]http.HandlerFunc{
			"at once":      says(rec.answer),
			"unannounced":  unannounced(rec.answer),
			"packed":       packed(rec.answer),
			"byte by byte": dripped(rec.answer),
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				r := start(t, rec.provider, handler)
				got := r.post(rec.path, rec.ask)
				if got.status != http.StatusOK || got.err != nil || got.body != rec.answer {
					t.Errorf("got %d %v %q\nwant %q", got.status, got.err, got.body, rec.answer)
				}
				r.stop()
				total, models := r.Account.Total()
				if diff := cmp.Diff(rec.want, total); diff != "" {
					t.Errorf("usage (-want +got)\n%s", diff)
				}
				if len(models) != 1 || models[0].Model != rec.model || r.Account.Calls() != 1 {
					t.Errorf("models = %+v after %d calls, want one call of %s", models, r.Account.Calls(), rec.model)
				}
				wantTold(t, r)
			})
		}
	}
}

// unannounced is an answer that does not say whether it is a stream.
func unannounced(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, body)
	}
}

func packed(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			http.Error(w, "it cannot be packed for "+r.Header.Get("Accept-Encoding"), http.StatusNotAcceptable)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		var b strings.Builder
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, body)
		_ = z.Close()
		if !strings.HasPrefix(body, "{") {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		_, _ = io.WriteString(w, b.String())
	}
}

func dripped(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasPrefix(body, "{") {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		for i := range len(body) {
			_, _ = io.WriteString(w, body[i:i+1])
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// read takes a stream apart and reads its usage.
func read(s *shape, in io.Reader) (t tally, raw []byte, err error) {
	for e := newEvents(in); err == nil; {
		var text, data []byte
		text, data, err = e.next()
		raw = append(raw, text...)
		if len(data) > 0 && !bytes.Equal(data, endOfChat) {
			s.event(&t, data)
		}
	}
	return t, raw, err
}

func TestAStreamReadsTheSameWhereverItIsSplit(t *testing.T) {
	for name, rec := range recordings {
		if !rec.streamed() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			q := asked(t, rec)
			for i := range len(rec.answer) {
				split := io.MultiReader(strings.NewReader(rec.answer[:i]), strings.NewReader(rec.answer[i:]))
				got, raw, err := read(rec.shape, split)
				if !errors.Is(err, io.EOF) || string(raw) != rec.answer {
					t.Fatalf("split at %d: %v, %q", i, err, raw)
				}
				if u, note := got.usage(q); u != rec.want || note != "" {
					t.Fatalf("split at %d: usage = %+v %q, want %+v", i, u, note, rec.want)
				}
			}
		})
	}
}

func asked(tb testing.TB, rec recording) *request {
	tb.Helper()
	path, _, _ := strings.Cut(rec.path, "?")
	to, ok := routeOf(rec.provider, http.MethodPost, path)
	if !ok {
		tb.Fatalf("%s does not pass", path)
	}
	q, err := readRequest(to, []byte(rec.ask))
	if err != nil {
		tb.Fatal(err)
	}
	return q
}

// A stream may never end an event: what is kept of it has an end all the same.
func TestAnEventHasAnEnd(t *testing.T) {
	for name, piece := range map[string]string{"in one line": "data: xxxxxxxx", "in many lines": "data: xxxxxxxx\n"} {
		in := newEvents(strings.NewReader(strings.Repeat(piece, 2*mostEvent/len(piece))))
		raw, _, err := in.next()
		if !errors.Is(err, errHugeEvent) || len(raw) > mostEvent+64<<10 {
			t.Errorf("%s: %d bytes are kept, %v", name, len(raw), err)
		}
	}
}

func TestACutStreamIsChargedWithWhatItSaidAndStreamed(t *testing.T) {
	for name, rec := range recordings {
		if !rec.streamed() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			q := asked(t, rec)
			for i := range len(rec.answer) {
				got, _, _ := read(rec.shape, strings.NewReader(rec.answer[:strings.LastIndex(rec.answer[:i]+"\n", "\n")]))
				u, _ := got.usage(q)
				if u.Input+u.CacheRead+u.CacheWrite == 0 {
					t.Fatalf("cut at %d: no input in %+v", i, u)
				}
				if got.written() > 0 && u.Output == 0 {
					t.Fatalf("cut at %d: no output in %+v after %d bytes", i, u, got.written())
				}
			}
		})
	}
}

func TestAListOfPiecesIsAnAnswerToo(t *testing.T) {
	var got tally
	generate.whole(&got, []byte(`[{"candidates":[{"content":{"parts":[{"text":"AI"}]}}]},
{"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":2}}]`))
	if u, _ := got.usage(&request{plain: 100, input: 33}); u != (loop.Usage{Input: 8, Output: 2, Source: loop.UsageMetered}) {
		t.Errorf("usage = %+v", u)
	}
}

func TestTheUsageOfAChatIsAskedForAndNotShown(t *testing.T) {
	rec := recordings["OpenAI Chat Completions, stream"]
	var asked string
	r := start(t, OpenAI, func(w http.ResponseWriter, req *http.Request) {
		b, _ := io.ReadAll(req.Body)
		asked = string(b)
		write(w, rec.answer)
	})
	for ask, dropped := range map[string]bool{
		`{"model":"m","stream":true,"messages":[{"content":"a < b"}]}`:                                                                    true,
		`{"model":"m","stream":true,"stream_options":{"include_usage":false},"messages":[{"content":"a < b"}]}`:                           true,
		`{"model":"m","stream":true,"stream_options":{"include_obfuscation":true,"include_usage":true},"messages":[{"content":"a < b"}]}`: false,
	} {
		got := r.post(rec.path, ask)
		if !strings.Contains(asked, `"include_usage":true`) || !strings.Contains(asked, `[{"content":"a < b"}]`) {
			t.Errorf("the provider was asked %s", asked)
		}
		if shows := strings.Contains(got.body, `"prompt_tokens"`); shows == dropped {
			t.Errorf("asked %s, got %q", ask, got.body)
		}
		if !strings.HasSuffix(got.body, "data: [DONE]\n\n") || !strings.Contains(got.body, `"finish_reason":"stop"`) {
			t.Errorf("got %q", got.body)
		}
	}
	r.stop()
	if total, _ := r.Account.Total(); total.Output != 3*46 || total.Source != loop.UsageMetered {
		t.Errorf("total = %+v", total)
	}
}

func TestTheLengthOfATextIsThatOfWhatItStandsFor(t *testing.T) {
	for text, want := range map[string]length{
		`"ab"`: 2, `""`: 0, `"a\nb"`: 3, `"\\\""`: 2, `"\u00e9x"`: 4, "null": 0, "12": 2, `{"a":1}`: 7,
	} {
		var got length
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s has %d bytes, %v, want %d", text, got, err, want)
		}
	}
}

func TestAPictureIsNotCountedAsText(t *testing.T) {
	for size, files := range map[int]int64{longRun - 1: 0, longRun: leastFile, 400_000: 4000} {
		ask := `{"model":"m","messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"` + strings.Repeat("A", size) + `"}}]}]}`
		q, err := readRequest(route{shape: messages}, []byte(ask))
		if err != nil {
			t.Fatal(err)
		}
		text := int64(len(ask))
		if files > 0 {
			text -= int64(size)
		}
		if q.plain != text || q.input != tokens(text)+files {
			t.Errorf("%d bytes of a picture: %d bytes of text and %d tokens, want %d and %d", size, q.plain, q.input, text, tokens(text)+files)
		}
	}
}

func TestAnEventOfManyLinesIsJoinedByLineFeeds(t *testing.T) {
	_, data, err := newEvents(strings.NewReader("event: x\ndata: a\r\ndata:b\ndata:  c\n\ndata: d\n\n")).next()
	if string(data) != "a\nb\n c" || err != nil {
		t.Errorf("data = %q, %v", data, err)
	}
}

func TestThoughtsBesideTheOutputAreCountedOnce(t *testing.T) {
	n := func(n int64) loop.Count { return loop.Count{N: n, Set: true} }
	for name, c := range map[string]struct {
		said  said
		total loop.Count
		want  int64
	}{
		"the total is the sum":                     {said{input: n(10), output: n(5)}, n(15), 0},
		"the total is more":                        {said{input: n(10), output: n(5)}, n(18), 3},
		"the total is one more":                    {said{input: n(10), output: n(5)}, n(16), 1},
		"one thought more than the output":         {said{input: n(10), output: n(5), reasoning: n(6)}, n(15), 6},
		"the total is less":                        {said{input: n(10), output: n(5)}, n(12), 0},
		"there is no total":                        {said{input: n(10), output: n(5)}, loop.Count{}, 0},
		"the total is none":                        {said{input: n(10), output: n(5)}, loop.Count{N: 18, Set: true, Bad: true}, 0},
		"the rest is what was cached":              {said{input: n(10), output: n(5), cacheRead: n(2), cacheWrite: n(1)}, n(18), 0},
		"it is that, and the thoughts":             {said{input: n(10), output: n(5), cacheRead: n(3), reasoning: n(3)}, n(18), 3},
		"thoughts that only their own number says": {said{input: n(10), output: n(5), reasoning: n(9)}, n(15), 9},
		"thoughts within the output":               {said{input: n(10), output: n(5), reasoning: n(5)}, n(15), 0},
		"no output":                                {said{input: n(10), reasoning: n(9)}, n(18), 0},
		"an implausible output":                    {said{input: n(10), output: loop.Count{N: 5, Set: true, Bad: true}}, n(18), 0},
	} {
		if got := beside(c.said, c.total); got != c.want {
			t.Errorf("%s: %d tokens beside, want %d", name, got, c.want)
		}
	}
}

func TestFieldsForThisMachineAndCookiesStayHere(t *testing.T) {
	to := http.Header{}
	newHider(secret).header(to, http.Header{
		"Connection": {"close, x-mine"}, "X-Mine": {"a"}, "Keep-Alive": {"a"}, "Set-Cookie": {"a"}, "Content-Length": {"9"},
		"X-" + secret: {"a"}, "Content-Type": {"text/plain"}, "X-Two": {"a", "b " + secret},
	})
	want := http.Header{"Content-Type": {"text/plain"}, "X-Two": {"a", "b " + hidden}}
	if d := cmp.Diff(want, to); d != "" {
		t.Errorf("header (-want +got):\n%s", d)
	}
}

func TestAnErrorThatCannotBeReadKeepsItsStatus(t *testing.T) {
	for name, c := range map[string]struct{ coding, length string }{"packed as nobody asked": {"br", "7"}, "cut": {"", "99"}} {
		t.Run(name, func(t *testing.T) {
			r := start(t, OpenAI, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", c.coding)
				w.Header().Set("Content-Length", c.length)
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, "garbled")
			})
			got := r.post("/v1/chat/completions", `{"model":"m"}`)
			if got.status != http.StatusUnauthorized || got.body != "" || got.header.Get("Content-Encoding") != "" || got.err != nil {
				t.Errorf("got %+v, want the status alone", got)
			}
			if f, _ := r.LastFailure(); f.Class != loop.FailureAuth {
				t.Errorf("failure = %+v", f)
			}
		})
	}
}

func TestAnAnswerThatCannotBePassedOnIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		coding string
		want   string
	}{
		"another success": {201, "", "it answered 201"}, "a choice": {300, "", "redirects"}, "nothing new": {304, "", "redirects"},
		"packed as nobody asked": {200, "br", "packed"}, "not packed": {200, "identity", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, OpenAI, func(w http.ResponseWriter, _ *http.Request) {
				if c.coding != "" {
					w.Header().Set("Content-Encoding", c.coding)
				}
				w.WriteHeader(c.status)
				if c.status == http.StatusOK {
					_, _ = io.WriteString(w, `{"choices":[]}`)
				}
			})
			got := r.post("/v1/chat/completions", `{"model":"m"}`)
			if ok := got.status == http.StatusOK; ok != (c.want == "") || !ok && got.status != http.StatusBadGateway || !strings.Contains(got.body, c.want) {
				t.Errorf("got %d %s, want %q", got.status, got.body, c.want)
			}
		})
	}
}

// Each number and each text of a report stands alone, so that whatever is left out
// of the sums shows.
func TestEveryNumberAndTextOfAnAnswerIsCounted(t *testing.T) {
	number := regexp.MustCompile(`_?[tT]oken[A-Za-z_]*":\d+|_requests":\d+`)
	chatUsage := `"usage":{"prompt_tokens":1000,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":20,"cache_write_tokens":3},` +
		`"prompt_cache_hit_tokens":10,"cached_tokens":15,"completion_tokens_details":{"reasoning_tokens":7},"total_tokens":1100,"server_tool_use":{"web_search_requests":4}}`
	responsesUsage := `"usage":{"input_tokens":1000,"output_tokens":100,"input_tokens_details":{"cached_tokens":20,"cache_write_tokens":3},"output_tokens_details":{"reasoning_tokens":7},"total_tokens":1100}`
	openAI := loop.Usage{Input: 977, Output: 100, CacheRead: 20, CacheWrite: 3, Reasoning: 7}
	searched := openAI
	searched.WebSearches = 4
	for name, c := range map[string]struct {
		read   func(*tally, []byte)
		answer string
		counts loop.Usage
		text   int64
	}{
		"Messages": {
			messages.whole, `{"model":"m","content":[{"text":"1"},{"thinking":"12"},{"partial_json":"1234"},{"input":{}},{"input":{"a":2}}],"usage":{"input_tokens":1000,"output_tokens":100,` +
				`"cache_read_input_tokens":20,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_1h_input_tokens":5},"output_tokens_details":{"thinking_tokens":7},"server_tool_use":{"web_search_requests":4}}}`,
			loop.Usage{Input: 1000, Output: 100, CacheRead: 20, CacheWrite: 30, CacheWrite1h: 5, Reasoning: 7, WebSearches: 4},
			1 + 2 + 4 + 7,
		},
		"Messages, in two passes": {
			messages.whole, `{"model":"m","usage":{"input_tokens":1,"output_tokens":1,"cache_read_input_tokens":1,"cache_creation_input_tokens":1,"cache_creation":{"ephemeral_1h_input_tokens":1},"iterations":[` +
				`{"input_tokens":1000,"output_tokens":100,"cache_read_input_tokens":20,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_1h_input_tokens":5}},` +
				`{"input_tokens":2000,"output_tokens":200,"cache_read_input_tokens":40,"cache_creation_input_tokens":60,"cache_creation":{"ephemeral_1h_input_tokens":10}}]}}`,
			loop.Usage{Input: 3000, Output: 300, CacheRead: 60, CacheWrite: 90, CacheWrite1h: 15},
			0,
		},
		"Messages, whose passes alone are counted": {
			messages.whole, `{"model":"m","usage":{"iterations":[{"input_tokens":1000,"output_tokens":100}]}}`, loop.Usage{Input: 1000, Output: 100}, 0,
		},
		"Messages, the start of a stream": {
			func(t *tally, data []byte) { messages.event(t, data) }, `{"message":{"model":"m","usage":{"input_tokens":1000,"output_tokens":100,"cache_read_input_tokens":20}},"delta":{"text":"1"},"content_block":{"text":"12"}}`,
			loop.Usage{Input: 1000, Output: 100, CacheRead: 20},
			3,
		},
		"Messages, the end of a stream": {
			func(t *tally, data []byte) { messages.event(t, data) }, `{"message":{"model":"m"},"usage":{"input_tokens":1000,"output_tokens":100,"cache_creation_input_tokens":20}}`,
			loop.Usage{Input: 1000, Output: 100, CacheWrite: 20},
			0,
		},
		"Chat": {
			chat.whole, `{"model":"m","choices":[{"message":{"content":"1","reasoning_content":"12","reasoning":"1","refusal":"1234","tool_calls":[{"function":{"name":"12345678","arguments":"1234567890123456"}}],` +
				`"function_call":{"name":"12345678901234567890123456789012","arguments":"` + strings.Repeat("x", 64) + `"}},"delta":{"content":"` + strings.Repeat("x", 128) + `"},"text":"` + strings.Repeat("x", 256) + `"}],` + chatUsage + `}`,
			searched, 1 + 2 + 4 + 8 + 16 + 32 + 64 + 128 + 256,
		},
		"Responses": {
			responses.whole, `{"model":"m","output":[{"content":[{"text":"1"},{"refusal":"12"}],"arguments":"1234","input":"12345678"}],` + responsesUsage + `}`, openAI, 15,
		},
		"Responses, the end of a stream": {
			func(t *tally, data []byte) { responses.event(t, data) }, `{"type":"response.completed","response":{"model":"m","output":[{"content":[{"text":"1"}]}],` + responsesUsage + `}}`, openAI, 1,
		},
		"Gemini": {
			generate.whole, `{"modelVersion":"m","candidates":[{"content":{"parts":[{"text":"1"},{"functionCall":{}},{"executableCode":"1234"}]},"groundingMetadata":{"webSearchQueries":["a","b"]}},` +
				`{"content":{"parts":[{"text":"12345678"}]}}],"usageMetadata":{"promptTokenCount":1000,"cachedContentTokenCount":20,"candidatesTokenCount":93,"thoughtsTokenCount":7,"toolUsePromptTokenCount":40}}`,
			loop.Usage{Input: 1020, Output: 100, CacheRead: 20, Reasoning: 7, WebSearches: 2},
			1 + 2 + 4 + 8,
		},
	} {
		var got tally
		c.read(&got, []byte(c.answer))
		if d := cmp.Diff(c.counts, got.counts); d != "" || got.bad || !got.inSaid || !got.outSaid || got.written() != c.text || got.model != "m" {
			t.Errorf("%s: bad %v, said %v %v, %d bytes of %q, want %d; counts (-want +got):\n%s", name, got.bad, got.inSaid, got.outSaid, got.written(), got.model, c.text, d)
		}
		for _, at := range number.FindAllStringIndex(c.answer, -1) {
			field, _, _ := strings.Cut(c.answer[at[0]:at[1]], ":")
			for _, bad := range []string{"-1", `"5"`, "0.5"} {
				var odd tally
				c.read(&odd, []byte(c.answer[:at[0]]+field+":"+bad+c.answer[at[1]:]))
				if !odd.bad && !strings.HasPrefix(c.answer[at[0]:], "_tokens\":1100") {
					t.Errorf("%s: %s in place of %s is believed", name, bad, c.answer[at[0]-10:at[1]])
				}
			}
		}
		var half tally
		c.read(&half, []byte(c.answer[:len(c.answer)-1]))
		if !half.bad || half.text != int64(len(c.answer)-1) {
			t.Errorf("%s: half an answer counts as %d bytes, bad %v; want all of it", name, half.text, half.bad)
		}
	}
	for _, shape := range []*shape{messages, chat, responses, generate} {
		got := tally{model: "m"}
		if shape.event(&got, []byte(`{}`)) || got.model != "m" || shape.event(&got, []byte(`{`)) || got.model != "m" {
			t.Errorf("an event without a model makes it %q, or has nothing but usage", got.model)
		}
	}
	for answer, shape := range map[string]*shape{`{"usage":%s}`: messages, `{ "usage":%s}`: chat, `{"usage": %s}`: responses, `{"usageMetadata":%s}`: generate} {
		for usage, bad := range map[string]bool{`[]`: true, `"x"`: true, `5`: true, `null`: false, `{}`: false} {
			var got tally
			if shape.whole(&got, fmt.Appendf(nil, answer, usage)); got.bad != bad || got.inSaid || got.outSaid {
				t.Errorf("%s of %s is bad: %v, said: %v %v", usage, answer, got.bad, got.inSaid, got.outSaid)
			}
		}
	}
}

func TestACountIsBelievedUpToItsBound(t *testing.T) {
	for name, c := range map[string]struct {
		asked, in, wrote, out int64
		want                  oddity
	}{
		"as few tokens of input as can be": {256_000, 1000, 0, 5, ""}, "one less": {256_000, 999, 0, 5, oddInput},
		"as few tokens of output as can be": {9, 9, 32_000, 1000, ""}, "one less of them": {9, 9, 32_000, 999, oddOutput},
		"a trifle of input": {256, 1, 0, 5, ""}, "a little more": {65_536, 255, 0, 5, oddInput}, "nothing of it": {1, 0, 0, 5, oddInput},
		"a trifle of output": {9, 9, 256, 1, ""}, "a little more of it": {9, 9, 257, 7, oddOutput}, "as much as that": {9, 9, 257, 8, ""}, "no output": {9, 9, 1, 0, oddOutput},
	} {
		got := tally{text: c.wrote, ended: true}
		count := func(n int64) loop.Count { return loop.Count{N: n, Set: true} }
		got.take(said{input: count(c.in), output: count(c.out)})
		u, odd := got.usage(&request{plain: c.asked, input: 90_000})
		if odd != c.want || (odd == "") != (u.Source == loop.UsageMetered) {
			t.Errorf("%s: %q of %+v, want %q", name, odd, u, c.want)
		}
	}
}

func TestValuesAreFoundWhateverIsBetweenThem(t *testing.T) {
	for text, want := range map[string]string{
		`[1,2]`: "1 2", "[ 1 ,\t2\r\n]": "1 2", "{ \"a\" :\r1 ,\n\"b\": [ 2 ] }": `"a" 1 "b" [ 2 ]`, `[]`: "", `[ ]`: "", `{}`: "", `["] ,"]`: `"] ,"`,
	} {
		var got []string
		for v := range node(text).values() {
			got = append(got, string(v))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s has the values %q, want %s", text, got, want)
		}
	}
}

func TestARequestSaysWhatItsVendorIsToCache(t *testing.T) {
	rec := recordings["Anthropic Messages, whole"]
	for mark, want := range map[string][2]bool{
		``:                                      {},
		`,"cache_control":{"type":"ephemeral"}`: {true, false},
		`,"cache_control":{"type":"ephemeral","ttl":"1h"}`: {true, true},
	} {
		rec.ask = `{"model":"m","max_tokens":7` + mark + `}`
		q := asked(t, rec)
		if c := q.call(); c.Input != q.input || c.Output != 7 || [2]bool{c.CacheWrite, c.CacheWrite1h} != want {
			t.Errorf("%q is the call %+v", mark, c)
		}
	}
}
