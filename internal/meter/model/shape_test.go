package model

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
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
		"Content-Type": {"text/plain"}, "X-Two": {"a", "b " + secret},
	})
	want := http.Header{"Content-Type": {"text/plain"}, "X-Two": {"a", "b " + hidden}}
	if d := cmp.Diff(want, to); d != "" {
		t.Errorf("header (-want +got):\n%s", d)
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
