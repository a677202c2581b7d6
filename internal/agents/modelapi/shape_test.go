package modelapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/modelcalls"
)

// read takes a stream apart and reads its usage.
func read(s *Shape, in io.Reader) (t Tally, raw []byte, err error) {
	for e := NewEventReader(in); err == nil; {
		var text, data []byte
		text, data, err = e.Next()
		raw = append(raw, text...)
		t.AddEvent(s, data, false)
	}
	return t, raw, err
}

func TestAStreamReadsTheSameWhereverItIsSplit(t *testing.T) {
	for name, rec := range modelcalls.Answers {
		if !rec.IsStream() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			q := asked(t, rec)
			for i := range len(rec.Body) {
				split := io.MultiReader(strings.NewReader(rec.Body[:i]), strings.NewReader(rec.Body[i:]))
				got, raw, err := read(shapeOf(rec.Path), split)
				if !errors.Is(err, io.EOF) || string(raw) != rec.Body {
					t.Fatalf("split at %d: %v, %q", i, err, raw)
				}
				if u, note := got.Usage(q); u != rec.Want || note != "" {
					t.Fatalf("split at %d: usage = %+v %q, want %+v", i, u, note, rec.Want)
				}
			}
		})
	}
}

var shapeNames = map[*Shape]string{Messages: "Messages", Chat: "Chat", Responses: "Responses", Generate: "Gemini"}

// shapeOf is the shape of a path.
func shapeOf(path string) *Shape {
	switch {
	case strings.Contains(path, "/messages"):
		return Messages
	case strings.Contains(path, "/chat/completions"):
		return Chat
	case strings.Contains(path, "/responses"):
		return Responses
	}
	return Generate
}

func asked(tb testing.TB, rec modelcalls.Answer) *Request {
	tb.Helper()
	q, err := ReadRequest(shapeOf(rec.Path), "path-model", rec.IsStream(), []byte(rec.Ask))
	if err != nil {
		tb.Fatal(err)
	}
	return q
}

// A stream may never end an event: what is kept of it has an end all the same.
func TestAnEventHasAnEnd(t *testing.T) {
	for name, piece := range map[string]string{"in one line": "data: xxxxxxxx", "in many lines": "data: xxxxxxxx\n"} {
		in := NewEventReader(strings.NewReader(strings.Repeat(piece, 2*mostEvent/len(piece))))
		raw, _, err := in.Next()
		if !errors.Is(err, ErrHugeEvent) || len(raw) > mostEvent+64<<10 {
			t.Errorf("%s: %d bytes are kept, %v", name, len(raw), err)
		}
	}
}

func TestACutStreamIsChargedWithWhatItSaidAndStreamed(t *testing.T) {
	for name, rec := range modelcalls.Answers {
		if !rec.IsStream() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			q := asked(t, rec)
			for i := range len(rec.Body) {
				got, _, _ := read(shapeOf(rec.Path), strings.NewReader(rec.Body[:strings.LastIndex(rec.Body[:i]+"\n", "\n")]))
				u, _ := got.Usage(q)
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
	var got Tally
	Generate.readWhole(&got, []byte(`[{"candidates":[{"content":{"parts":[{"text":"AI"}]}}]},
{"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":2}}]`))
	if u, _ := got.Usage(&Request{plain: 100, Input: 33}); u != (loop.Usage{Input: 8, Output: 2, Source: loop.UsageMetered}) {
		t.Errorf("usage = %+v", u)
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
		q, err := ReadRequest(Messages, "", false, []byte(ask))
		if err != nil {
			t.Fatal(err)
		}
		text := int64(len(ask))
		if files > 0 {
			text -= int64(size)
		}
		if q.plain != text || q.Input != EstimateTokens(text)+files {
			t.Errorf("%d bytes of a picture: %d bytes of text and %d tokens, want %d and %d", size, q.plain, q.Input, text, EstimateTokens(text)+files)
		}
	}
}

func TestAnEventOfManyLinesIsJoinedByLineFeeds(t *testing.T) {
	_, data, err := NewEventReader(strings.NewReader("event: x\ndata: a\r\ndata:b\ndata:  c\n\ndata: d\n\n")).Next()
	if string(data) != "a\nb\n c" || err != nil {
		t.Errorf("data = %q, %v", data, err)
	}
}

func TestThoughtsBesideTheOutputAreCountedOnce(t *testing.T) {
	n := func(n int64) loop.Count { return loop.Count{N: n, Set: true} }
	for name, c := range map[string]struct {
		report reported
		total  loop.Count
		want   int64
	}{
		"the total is the sum":                     {reported{input: n(10), output: n(5)}, n(15), 0},
		"the total is more":                        {reported{input: n(10), output: n(5)}, n(18), 3},
		"the total is one more":                    {reported{input: n(10), output: n(5)}, n(16), 1},
		"one thought more than the output":         {reported{input: n(10), output: n(5), reasoning: n(6)}, n(15), 6},
		"the total is less":                        {reported{input: n(10), output: n(5)}, n(12), 0},
		"there is no total":                        {reported{input: n(10), output: n(5)}, loop.Count{}, 0},
		"the total is none":                        {reported{input: n(10), output: n(5)}, loop.Count{N: 18, Set: true, Bad: true}, 0},
		"the rest is what was cached":              {reported{input: n(10), output: n(5), cacheRead: n(2), cacheWrite: n(1)}, n(18), 0},
		"it is that, and the thoughts":             {reported{input: n(10), output: n(5), cacheRead: n(3), reasoning: n(3)}, n(18), 3},
		"thoughts that only their own number says": {reported{input: n(10), output: n(5), reasoning: n(9)}, n(15), 9},
		"thoughts within the output":               {reported{input: n(10), output: n(5), reasoning: n(5)}, n(15), 0},
		"no output":                                {reported{input: n(10), reasoning: n(9)}, n(18), 0},
		"an implausible output":                    {reported{input: n(10), output: loop.Count{N: 5, Set: true, Bad: true}}, n(18), 0},
	} {
		if got := uncountedOutput(c.report, c.total); got != c.want {
			t.Errorf("%s: %d tokens beside, want %d", name, got, c.want)
		}
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
		read   func(*Tally, []byte)
		answer string
		counts loop.Usage
		text   int64
	}{
		"Messages": {
			Messages.readWhole, `{"model":"m","content":[{"text":"1"},{"thinking":"12"},{"partial_json":"1234"},{"input":{}},{"input":{"a":2}}],"usage":{"input_tokens":1000,"output_tokens":100,` +
				`"cache_read_input_tokens":20,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_1h_input_tokens":5},"output_tokens_details":{"thinking_tokens":7},"server_tool_use":{"web_search_requests":4}}}`,
			loop.Usage{Input: 1000, Output: 100, CacheRead: 20, CacheWrite: 30, CacheWrite1h: 5, Reasoning: 7, WebSearches: 4},
			1 + 2 + 4 + 7,
		},
		"Messages, in two passes": {
			Messages.readWhole, `{"model":"m","usage":{"input_tokens":1,"output_tokens":1,"cache_read_input_tokens":1,"cache_creation_input_tokens":1,"cache_creation":{"ephemeral_1h_input_tokens":1},"iterations":[` +
				`{"input_tokens":1000,"output_tokens":100,"cache_read_input_tokens":20,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_1h_input_tokens":5}},` +
				`{"input_tokens":2000,"output_tokens":200,"cache_read_input_tokens":40,"cache_creation_input_tokens":60,"cache_creation":{"ephemeral_1h_input_tokens":10}}]}}`,
			loop.Usage{Input: 3000, Output: 300, CacheRead: 60, CacheWrite: 90, CacheWrite1h: 15},
			0,
		},
		"Messages, whose passes alone are counted": {
			Messages.readWhole, `{"model":"m","usage":{"iterations":[{"input_tokens":1000,"output_tokens":100}]}}`, loop.Usage{Input: 1000, Output: 100}, 0,
		},
		"Messages, the start of a stream": {
			func(t *Tally, data []byte) { Messages.readEvent(t, data) }, `{"message":{"model":"m","usage":{"input_tokens":1000,"output_tokens":100,"cache_read_input_tokens":20}},"delta":{"text":"1"},"content_block":{"text":"12"}}`,
			loop.Usage{Input: 1000, Output: 100, CacheRead: 20},
			3,
		},
		"Messages, the end of a stream": {
			func(t *Tally, data []byte) { Messages.readEvent(t, data) }, `{"message":{"model":"m"},"usage":{"input_tokens":1000,"output_tokens":100,"cache_creation_input_tokens":20}}`,
			loop.Usage{Input: 1000, Output: 100, CacheWrite: 20},
			0,
		},
		"Chat": {
			Chat.readWhole, `{"model":"m","choices":[{"message":{"content":"1","reasoning_content":"12","reasoning":"1","refusal":"1234","tool_calls":[{"function":{"name":"12345678","arguments":"1234567890123456"}}],` +
				`"function_call":{"name":"12345678901234567890123456789012","arguments":"` + strings.Repeat("x", 64) + `"}},"delta":{"content":"` + strings.Repeat("x", 128) + `"},"text":"` + strings.Repeat("x", 256) + `"}],` + chatUsage + `}`,
			searched, 1 + 2 + 4 + 8 + 16 + 32 + 64 + 128 + 256,
		},
		"Responses": {
			Responses.readWhole, `{"model":"m","output":[{"content":[{"text":"1"},{"refusal":"12"}],"arguments":"1234","input":"12345678"}],` + responsesUsage + `}`, openAI, 15,
		},
		"Responses, the end of a stream": {
			func(t *Tally, data []byte) { Responses.readEvent(t, data) }, `{"type":"response.completed","response":{"model":"m","output":[{"content":[{"text":"1"}]}],` + responsesUsage + `}}`, openAI, 1,
		},
		"Gemini": {
			Generate.readWhole, `{"modelVersion":"m","candidates":[{"content":{"parts":[{"text":"1"},{"functionCall":{}},{"executableCode":"1234"}]},"groundingMetadata":{"webSearchQueries":["a","b"]}},` +
				`{"content":{"parts":[{"text":"12345678"}]}}],"usageMetadata":{"promptTokenCount":1000,"cachedContentTokenCount":20,"candidatesTokenCount":93,"thoughtsTokenCount":7,"toolUsePromptTokenCount":40}}`,
			loop.Usage{Input: 1020, Output: 100, CacheRead: 20, Reasoning: 7, WebSearches: 2},
			1 + 2 + 4 + 8,
		},
	} {
		var got Tally
		c.read(&got, []byte(c.answer))
		if d := cmp.Diff(c.counts, got.counts); d != "" || got.bad || !got.inSaid || !got.outSaid || got.written() != c.text || got.Model != "m" {
			t.Errorf("%s: bad %v, said %v %v, %d bytes of %q, want %d; counts (-want +got):\n%s", name, got.bad, got.inSaid, got.outSaid, got.written(), got.Model, c.text, d)
		}
		for _, at := range number.FindAllStringIndex(c.answer, -1) {
			field, _, _ := strings.Cut(c.answer[at[0]:at[1]], ":")
			for _, bad := range []string{"-1", `"5"`, "0.5"} {
				var odd Tally
				c.read(&odd, []byte(c.answer[:at[0]]+field+":"+bad+c.answer[at[1]:]))
				if !odd.bad && !strings.HasPrefix(c.answer[at[0]:], "_tokens\":1100") {
					t.Errorf("%s: %s in place of %s is believed", name, bad, c.answer[at[0]-10:at[1]])
				}
			}
		}
		var half Tally
		c.read(&half, []byte(c.answer[:len(c.answer)-1]))
		if !half.bad || half.text != int64(len(c.answer)-1) {
			t.Errorf("%s: half an answer counts as %d bytes, bad %v; want all of it", name, half.text, half.bad)
		}
	}
	for _, shape := range []*Shape{Messages, Chat, Responses, Generate} {
		got := Tally{Model: "m"}
		if shape.readEvent(&got, []byte(`{}`)) || got.Model != "m" || shape.readEvent(&got, []byte(`{`)) || got.Model != "m" {
			t.Errorf("an event without a model makes it %q, or has nothing but usage", got.Model)
		}
	}
	for answer, shape := range map[string]*Shape{`{"usage":%s}`: Messages, `{ "usage":%s}`: Chat, `{"usage": %s}`: Responses, `{"usageMetadata":%s}`: Generate} {
		for usage, bad := range map[string]bool{`[]`: true, `"x"`: true, `5`: true, `null`: false, `{}`: false} {
			var got Tally
			if shape.readWhole(&got, fmt.Appendf(nil, answer, usage)); got.bad != bad || got.inSaid || got.outSaid {
				t.Errorf("%s of %s is bad: %v, said: %v %v", usage, answer, got.bad, got.inSaid, got.outSaid)
			}
		}
	}
}

func TestACountIsBelievedUpToItsBound(t *testing.T) {
	for name, c := range map[string]struct {
		asked, in, wrote, out int64
		want                  Oddity
	}{
		"as few tokens of input as can be": {256_000, 1000, 0, 5, ""}, "one less": {256_000, 999, 0, 5, oddInput},
		"as few tokens of output as can be": {9, 9, 32_000, 1000, ""}, "one less of them": {9, 9, 32_000, 999, oddOutput},
		"a trifle of input": {256, 1, 0, 5, ""}, "a little more": {65_536, 255, 0, 5, oddInput}, "nothing of it": {1, 0, 0, 5, oddInput},
		"a trifle of output": {9, 9, 256, 1, ""}, "a little more of it": {9, 9, 257, 7, oddOutput}, "as much as that": {9, 9, 257, 8, ""}, "no output": {9, 9, 1, 0, oddOutput},
	} {
		got := Tally{text: c.wrote, ended: true}
		count := func(n int64) loop.Count { return loop.Count{N: n, Set: true} }
		got.add(reported{input: count(c.in), output: count(c.out)})
		u, odd := got.Usage(&Request{plain: c.asked, Input: 90_000})
		if odd != c.want || (odd == "") != (u.Source == loop.UsageMetered) {
			t.Errorf("%s: %q of %+v, want %q", name, odd, u, c.want)
		}
	}
}

func TestInputThatIsNotBelievedWasNeitherCachedNorRead(t *testing.T) {
	for name, c := range map[string]struct {
		said Tally
		want loop.Usage
	}{
		"it says nothing": {Tally{}, loop.Usage{Input: 89_000, CacheRead: 1000}},
		"it says too little": {
			Tally{counts: loop.Usage{CacheRead: 1, CacheWrite: 2, CacheWrite1h: 2}, inSaid: true}, loop.Usage{Input: 90_000},
		},
	} {
		c.said.ended, c.said.outSaid = true, true
		c.want.Source = loop.UsageEstimated
		if u, _ := c.said.Usage(&Request{plain: 256_000, Input: 90_000, Cached: 1000}); u != c.want {
			t.Errorf("%s: usage = %+v, want %+v", name, u, c.want)
		}
	}
}

func TestAnEventIsAFailureByItsTypeAlone(t *testing.T) {
	for event, want := range map[string]bool{
		`{"type":"error","error":{"type":"overloaded_error","message":"m"}}`: true,
		`{"type":"ping","error":{"type":"overloaded_error","message":"m"}}`:  false,
	} {
		var got Tally
		if Messages.readEvent(&got, []byte(event)); (got.Failure != nil) != want {
			t.Errorf("%s: failure = %+v", event, got.Failure)
		}
	}
	failed := Tally{Failure: &VendorError{}}
	if Messages.readEvent(&failed, []byte(`{"type":"error"}`)); failed.Failure == nil {
		t.Error("an event that names no error takes the one away that was there")
	}
}

func TestEachEndOfAResponseIsOne(t *testing.T) {
	for _, event := range []string{"response.completed", "response.incomplete", "response.failed"} {
		var got Tally
		if Responses.readEvent(&got, []byte(`{"type":"`+event+`"}`)); !got.ended {
			t.Errorf("after %s the answer goes on", event)
		}
	}
}

func TestABodyThatIsNotAnObjectIsNotACall(t *testing.T) {
	for _, body := range []string{``, `null`, `[1]`, `{"model":`} {
		if q, err := ReadRequest(Messages, "m", false, []byte(body)); q != nil || err == nil {
			t.Errorf("%q: %+v, %v", body, q, err)
		}
	}
}

func TestARequestSaysWhatItsVendorIsToCache(t *testing.T) {
	rec := modelcalls.Answers["Anthropic Messages, whole"]
	for mark, want := range map[string][2]bool{
		``:                                      {},
		`,"cache_control":{"type":"ephemeral"}`: {true, false},
		`,"cache_control":{"type":"ephemeral","ttl":"1h"}`: {true, true},
	} {
		rec.Ask = `{"model":"m","max_tokens":7` + mark + `}`
		q := asked(t, rec)
		if write, hour := q.CacheWrite(); q.Output != 7 || [2]bool{write, hour} != want {
			t.Errorf("%q asks to cache %t, for an hour %t", mark, write, hour)
		}
	}
}

func TestGeminiMultipliesTheMostOutputByTheAnswersThatAreAskedFor(t *testing.T) {
	for answers, want := range map[string]int64{`0`: 10, `1`: 10, `3`: 30, `128`: 1280, `129`: 1280, `100000`: 1280} {
		q, err := ReadRequest(Generate, "m", false, []byte(`{"generationConfig":{"maxOutputTokens":10,"candidateCount":`+answers+`}}`))
		if err != nil || q.Output != want {
			t.Errorf("%s answers of 10 tokens have at most %+v, %v, want %d", answers, q, err, want)
		}
	}
}

func TestOnlyACallOfChatThatMaySearchIsChargedASearchThatNobodyCounted(t *testing.T) {
	for shape, fee := range map[*Shape]int64{Chat: 1, Messages: 0, Responses: 0, Generate: 0} {
		for may, want := range map[bool]int64{true: fee, false: 0} {
			if u, _ := (&Tally{}).Usage(&Request{Shape: shape, Searches: may, Input: 1}); u.WebSearches != want {
				t.Errorf("%s, which may search: %t: %d searches, want %d", shapeNames[shape], may, u.WebSearches, want)
			}
		}
	}
}

func TestTokensThatAreCachedBesideTheInputAreNoOutput(t *testing.T) {
	var got Tally
	got.addCompletion([]byte(`{"usage":{"prompt_tokens":5000,"completion_tokens":50,"total_tokens":9050,"prompt_tokens_details":{"cached_tokens":4000}}}`))
	if u, _ := got.Usage(&Request{plain: 100, Input: 33}); u.Output != 50 {
		t.Errorf("usage = %+v", u)
	}
}

func TestThoughtsThatOnlyTheirOwnNumberTellsAreOutput(t *testing.T) {
	var got Tally
	got.addCompletion([]byte(`{"usage":{"prompt_tokens":500,"completion_tokens":50,"completion_tokens_details":{"reasoning_tokens":300}}}`))
	if u, _ := got.Usage(&Request{plain: 100, Input: 33}); u.Output != 350 || u.Reasoning != 300 {
		t.Errorf("usage = %+v", u)
	}
}
