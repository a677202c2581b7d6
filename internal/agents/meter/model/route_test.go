package model

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/modelapi"
)

func TestOnlyModelCallsPass(t *testing.T) {
	const post, get = http.MethodPost, http.MethodGet
	for name, c := range map[string]struct {
		provider, base, method, path, query string
		want                                string // empty: it does not pass
	}{
		"Anthropic":                      {modelapi.Anthropic, "https://api.anthropic.com", post, "/v1/messages", "", "https://api.anthropic.com/v1/messages"},
		"Anthropic, base with version":   {modelapi.Anthropic, "https://proxy.test/a/v1/", post, "/v1/messages", "", "https://proxy.test/a/v1/messages"},
		"Anthropic, count":               {modelapi.Anthropic, "https://api.anthropic.com", post, "/v1/messages/count_tokens", "beta=true", "https://api.anthropic.com/v1/messages/count_tokens?beta=true"},
		"Anthropic, below a prefix":      {modelapi.Anthropic, "https://api.anthropic.com", post, "/s/x/v1/messages", "", "https://api.anthropic.com/v1/messages"},
		"Anthropic, models":              {modelapi.Anthropic, "https://api.anthropic.com", get, "/v1/models", "limit=5&key=k", "https://api.anthropic.com/v1/models?limit=5"},
		"Anthropic, a model":             {modelapi.Anthropic, "https://api.anthropic.com", get, "/v1/models/claude-opus-4-5", "", "https://api.anthropic.com/v1/models/claude-opus-4-5"},
		"Anthropic, telemetry":           {modelapi.Anthropic, "https://api.anthropic.com", post, "/api/event_logging/batch", "", ""},
		"Anthropic, greeting":            {modelapi.Anthropic, "https://api.anthropic.com", http.MethodHead, "/api/hello", "", ""},
		"Anthropic, batches":             {modelapi.Anthropic, "https://api.anthropic.com", post, "/v1/messages/batches", "", ""},
		"Anthropic, files":               {modelapi.Anthropic, "https://api.anthropic.com", post, "/v1/files", "", ""},
		"Anthropic, a message is read":   {modelapi.Anthropic, "https://api.anthropic.com", get, "/v1/messages", "", ""},
		"Anthropic, another's call":      {modelapi.Anthropic, "https://api.anthropic.com", post, "/v1/chat/completions", "", ""},
		"Anthropic, a path that goes up": {modelapi.Anthropic, "https://api.anthropic.com", get, "/v1/models/..", "", ""},
		"Anthropic, root":                {modelapi.Anthropic, "https://api.anthropic.com", get, "/", "", ""},
		"OpenAI, chat":                   {modelapi.OpenAI, "https://api.openai.com", post, "/v1/chat/completions", "", "https://api.openai.com/v1/chat/completions"},
		"OpenAI, chat without version":   {modelapi.OpenAI, "https://api.openai.com/v1", post, "/chat/completions", "", "https://api.openai.com/v1/chat/completions"},
		"OpenAI, base with a path":       {modelapi.OpenAI, "https://host.test/openai/v1", post, "/v1/chat/completions", "", "https://host.test/openai/v1/chat/completions"},
		"OpenAI, base with a query":      {modelapi.OpenAI, "https://host.test/openai?api-version=1", post, "/v1/responses", "api-version=2&api-key=k", "https://host.test/openai/responses?api-version=1"},
		"OpenAI, on this machine":        {modelapi.OpenAI, "http://127.0.0.1:11434", post, "/v1/chat/completions", "", "http://127.0.0.1:11434/v1/chat/completions"},
		"OpenAI, responses":              {modelapi.OpenAI, "https://api.openai.com", post, "/v1/responses", "", "https://api.openai.com/v1/responses"},
		"OpenAI, a response is read":     {modelapi.OpenAI, "https://api.openai.com", get, "/v1/responses/resp_1", "", ""},
		"OpenAI, web socket":             {modelapi.OpenAI, "https://api.openai.com", get, "/v1/responses", "", ""},
		"OpenAI, a model with a slash":   {modelapi.OpenAI, "https://host.test/v1", get, "/v1/models/meta/llama-3:free", "", "https://host.test/v1/models/meta/llama-3:free"},
		"OpenAI, a model that goes up":   {modelapi.OpenAI, "https://host.test/v1", get, "/v1/models/../files", "", ""},
		"OpenAI, embeddings":             {modelapi.OpenAI, "https://api.openai.com", post, "/v1/embeddings", "", ""},
		"OpenAI, files":                  {modelapi.OpenAI, "https://api.openai.com", post, "/v1/files", "", ""},
		"Gemini":                         {modelapi.Gemini, "https://generativelanguage.googleapis.com", post, "/v1beta/models/gemini-2.5-pro:generateContent", "key=k", "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent"},
		"Gemini, stream":                 {modelapi.Gemini, "https://generativelanguage.googleapis.com/v1beta", post, "/v1beta/models/gemini-2.5-pro:streamGenerateContent", "alt=sse&key=k", "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"},
		"Gemini, count":                  {modelapi.Gemini, "https://g.test", post, "/v1beta/models/gemini-2.5-pro:countTokens", "", "https://g.test/v1beta/models/gemini-2.5-pro:countTokens"},
		"Gemini, tuned":                  {modelapi.Gemini, "https://g.test", post, "/v1/tunedModels/mine:generateContent", "", "https://g.test/v1/tunedModels/mine:generateContent"},
		"Gemini, list":                   {modelapi.Gemini, "https://g.test", get, "/v1beta/models", "pageSize=5", "https://g.test/v1beta/models?pageSize=5"},
		"Gemini, embedding":              {modelapi.Gemini, "https://g.test", post, "/v1beta/models/x:embedContent", "", ""},
		"Gemini, upload":                 {modelapi.Gemini, "https://g.test", post, "/upload/v1beta/files", "", ""},
		"Gemini, a model with a path":    {modelapi.Gemini, "https://g.test", post, "/v1beta/models/a/b:generateContent", "", ""},
		"nobody":                         {"", "https://g.test", post, "/v1/messages", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			base, err := url.Parse(c.base)
			if err != nil {
				t.Fatal(err)
			}
			query, err := url.ParseQuery(c.query)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if r, ok := routeOf(c.provider, c.method, c.path); ok {
				got = upstreamURL(base, c.provider, r, query).String()
			}
			if got != c.want {
				t.Errorf("it leads to %q, want %q", got, c.want)
			}
		})
	}
}

func TestOnlyCallsThatSpendAreCounted(t *testing.T) {
	for path, want := range map[string]*modelapi.Shape{
		"/v1/messages": modelapi.Messages, "/v1/messages/count_tokens": nil, "/v1/models": nil,
	} {
		method := http.MethodPost
		if path == "/v1/models" {
			method = http.MethodGet
		}
		if r, ok := routeOf(modelapi.Anthropic, method, path); !ok || r.shape != want {
			t.Errorf("%s passes %t as %v", path, ok, r.shape)
		}
	}
}
