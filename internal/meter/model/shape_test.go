package model

import (
	"bytes"
	"compress/gzip"
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
