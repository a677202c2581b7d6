package model

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/agents/spend"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestASmallGrantMakesAWholeAnswerShorter(t *testing.T) {
	for name, c := range map[string]struct{ provider, path, ask, want string }{
		"Messages":          {modelapi.Anthropic, "/v1/messages", `{"max_tokens":5000,"model":"m"}`, `"max_tokens":100`},
		"Chat":              {modelapi.OpenAI, "/v1/chat/completions", `{"max_tokens":5000,"model":"m"}`, `"max_tokens":100`},
		"Chat, new":         {modelapi.OpenAI, "/v1/chat/completions", `{"model":"m"}`, `"max_completion_tokens":100`},
		"Chat, two":         {modelapi.OpenAI, "/v1/chat/completions", `{"max_completion_tokens":5000,"model":"m","n":2}`, `"max_completion_tokens":50`},
		"Responses":         {modelapi.OpenAI, "/v1/responses", `{"model":"m"}`, `"max_output_tokens":100`},
		"Gemini":            {modelapi.Gemini, "/v1beta/models/m:generateContent", `{"generationConfig":{"temperature":0,"maxOutputTokens":5000}}`, `"generationConfig":{"maxOutputTokens":100,"temperature":0}`},
		"Gemini, as a list": {modelapi.Gemini, "/v1beta/models/m:streamGenerateContent", `{}`, `{"generationConfig":{"maxOutputTokens":100}}`},
		"Gemini, two": {
			modelapi.Gemini, "/v1beta/models/m:generateContent", `{"generationConfig":{"candidateCount":2,"maxOutputTokens":5000}}`, `"maxOutputTokens":50}`,
		},
		"Gemini, two in the other spelling": {
			modelapi.Gemini, "/v1beta/models/m:generateContent", `{"generation_config":{"candidate_count":2}}`, `"maxOutputTokens":50`,
		},
		"Gemini, one spelling without a value": {
			modelapi.Gemini, "/v1beta/models/m:generateContent", `{"generationConfig":null,"generation_config":{"max_output_tokens":5000}}`, `"generation_config":{"maxOutputTokens":100}`,
		},
		"Gemini, in the other spelling": {
			modelapi.Gemini, "/v1beta/models/m:generateContent", `{"generation_config":{"max_output_tokens":5000}}`, `"generation_config":{"maxOutputTokens":100}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var asked string
			r := start(t, c.provider, func(w http.ResponseWriter, req *http.Request) {
				b, _ := io.ReadAll(req.Body)
				asked = string(b)
				write(w, `{}`)
			}, func(e *Endpoint) { e.Account = &spend.Account{Grant: loop.Amount{Output: 100}} })
			r.post(c.path, c.ask)
			if !strings.Contains(asked, c.want) {
				t.Errorf("the provider was asked %s, want %s", asked, c.want)
			}
		})
	}
}

func TestThoughtsThatDoNotFitAreNotBegun(t *testing.T) {
	r := start(t, modelapi.Anthropic, func(_ http.ResponseWriter, req *http.Request) { t.Errorf("the provider got %s", req.URL) }, func(e *Endpoint) {
		e.Account = &spend.Account{Grant: loop.Amount{Output: 2000}}
	})
	got := r.post("/v1/messages", `{"model":"m","max_tokens":5000,"thinking":{"type":"enabled","budget_tokens":4000}}`)
	if got.status != http.StatusForbidden || !strings.Contains(got.body, "2000 output tokens are left") || r.Account.Cause() == nil {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

func TestACallThatCannotBeMadeAsShortAsWhatIsLeftIsNotMade(t *testing.T) {
	for name, c := range map[string]struct {
		provider, path, ask string
		left                int64
		made                bool
	}{
		"Responses, of which the API takes no less than 16": {modelapi.OpenAI, "/v1/responses", `{"model":"m"}`, 15, false},
		"Responses with just that":                          {modelapi.OpenAI, "/v1/responses", `{"model":"m"}`, 16, true},
		"Chat with more answers than tokens":                {modelapi.OpenAI, "/v1/chat/completions", `{"model":"m","n":11}`, 10, false},
		"Chat with as many":                                 {modelapi.OpenAI, "/v1/chat/completions", `{"model":"m","n":10}`, 10, true},
		"Gemini with more answers than tokens":              {modelapi.Gemini, "/v1beta/models/m:generateContent", `{"generationConfig":{"candidateCount":11}}`, 10, false},
		"Gemini with as many":                               {modelapi.Gemini, "/v1beta/models/m:generateContent", `{"generationConfig":{"candidateCount":10}}`, 10, true},
	} {
		t.Run(name, func(t *testing.T) {
			seen := &vendor{}
			r := start(t, c.provider, seen.ServeHTTP, func(e *Endpoint) { e.Account = &spend.Account{Grant: loop.Amount{Output: c.left}} })
			got := r.post(c.path, c.ask)
			if made := seen.n == 1; made != c.made || made != (got.status == http.StatusOK) {
				t.Errorf("made: %t, got %d %s", made, got.status, got.body)
			}
		})
	}
}

func TestTheRefusalIsOneThatNoProgramRepeats(t *testing.T) {
	for path, want := range map[string]int{"/v1/chat/completions": http.StatusForbidden, "/v1/responses": http.StatusBadRequest} {
		r := start(t, modelapi.OpenAI, nil, func(e *Endpoint) { e.Account = &spend.Account{Grant: loop.Amount{Tokens: 1}} })
		if got := r.post(path, `{"model":"m"}`); got.status != want || !strings.Contains(got.body, `"code":"budget_exhausted"`) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
		wantTold(t, r, ReasonBudget)
	}
}

func TestAModelWithoutAPriceIsAFailureThatSaysWhatToDo(t *testing.T) {
	r := start(t, modelapi.OpenAI, nil, func(e *Endpoint) { e.Account = &spend.Account{Grant: loop.Amount{MicroUSD: 1}} })
	if got := r.post("/v1/chat/completions", askChat); got.status != http.StatusForbidden || !strings.Contains(got.body, "add a price") {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if f, _ := r.LastFailure(); f.Class != loop.ReasonPriceUnknown || !strings.Contains(f.Text, "add a price") {
		t.Errorf("failure = %+v", f)
	}
	wantTold(t, r, loop.ReasonPriceUnknown)
}
