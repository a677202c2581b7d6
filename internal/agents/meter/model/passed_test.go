package model

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/modelcalls"
)

func TestAnAnswerPassesByteForByteAndIsCounted(t *testing.T) {
	for name, rec := range modelcalls.Answers {
		for how, handler := range map[string]http.HandlerFunc{
			"at once":      says(rec.Body),
			"unannounced":  unannounced(rec.Body),
			"packed":       packed(rec.Body),
			"byte by byte": dripped(rec.Body),
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				r := start(t, rec.Provider, handler)
				got := r.post(rec.Path, rec.Ask)
				if got.status != http.StatusOK || got.err != nil || got.body != rec.Body {
					t.Errorf("got %d %v %q\nwant %q", got.status, got.err, got.body, rec.Body)
				}
				r.stop()
				total, models := r.Account.Total()
				if diff := cmp.Diff(rec.Want, total); diff != "" {
					t.Errorf("usage (-want +got)\n%s", diff)
				}
				if len(models) != 1 || models[0].Model != rec.Model || r.Account.Calls() != 1 {
					t.Errorf("models = %+v after %d calls, want one call of %s", models, r.Account.Calls(), rec.Model)
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

func TestTheUsageOfAChatIsAskedForAndNotShown(t *testing.T) {
	rec := modelcalls.Answers["OpenAI Chat Completions, stream"]
	var asked string
	r := start(t, modelapi.OpenAI, func(w http.ResponseWriter, req *http.Request) {
		b, _ := io.ReadAll(req.Body)
		asked = string(b)
		write(w, rec.Body)
	})
	for ask, dropped := range map[string]bool{
		`{"model":"m","stream":true,"messages":[{"content":"a < b"}]}`:                                                                    true,
		`{"model":"m","stream":true,"stream_options":{"include_usage":false},"messages":[{"content":"a < b"}]}`:                           true,
		`{"model":"m","stream":true,"stream_options":{"include_obfuscation":true,"include_usage":true},"messages":[{"content":"a < b"}]}`: false,
	} {
		got := r.post(rec.Path, ask)
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

func TestFieldsForThisMachineAndCookiesStayHere(t *testing.T) {
	to := http.Header{}
	newHider(secret).copyHeaders(to, http.Header{
		"Connection": {"close, x-mine"}, "X-Mine": {"a"}, "Keep-Alive": {"a"}, "Set-Cookie": {"a"}, "Content-Length": {"9"},
		"X-" + secret: {"a"}, "Content-Type": {"text/plain"}, "X-Two": {"a", "b " + secret},
	})
	want := http.Header{"Content-Type": {"text/plain"}, "X-Two": {"a", "b " + hiddenKey}}
	if d := cmp.Diff(want, to); d != "" {
		t.Errorf("header (-want +got):\n%s", d)
	}
}

func TestAnErrorThatCannotBeReadKeepsItsStatus(t *testing.T) {
	for name, c := range map[string]struct{ coding, length string }{"packed as nobody asked": {"br", "7"}, "cut": {"", "99"}} {
		t.Run(name, func(t *testing.T) {
			r := start(t, modelapi.OpenAI, func(w http.ResponseWriter, _ *http.Request) {
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
			r := start(t, modelapi.OpenAI, func(w http.ResponseWriter, _ *http.Request) {
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
