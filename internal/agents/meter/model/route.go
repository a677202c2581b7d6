package model

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/agents/modeltool"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// route is what a request calls, and how to read it. A route without a shape
// spends nothing.
type route struct {
	version string // as the client wrote it, for Gemini
	path    string // after the version
	model   string // empty unless the path names one
	stream  bool   // the path asks for a stream
	shape   *modelapi.Shape
	tools   *modeltool.API
}

// The paths that are forwarded, for each provider. Anything before them is dropped:
// upstreamURL builds the path that is sent.
var (
	anthropicPath = lazyregexp.New(`(?:^|/)v1/(messages|messages/count_tokens|models|models/[\w.:@-]+)$`)
	openAIPath    = lazyregexp.New(`(?:^|/)(chat/completions|responses|responses/input_tokens|models|models/[\w.:@/-]+)$`)
	geminiPath    = lazyregexp.New(`(?:^|/)(v1|v1beta|v1alpha)/(models(?:/[\w.@-]+)?|(?:models|tunedModels)/([\w.@-]+):(\w+))$`)
)

// routeOf finds out what a request calls. It returns false if that is not
// forwarded.
func routeOf(provider, method, path string) (route, bool) {
	var r route
	switch provider {
	case modelapi.Anthropic:
		if m := anthropicPath.FindStringSubmatch(path); m != nil {
			r = route{path: m[1], shape: map[string]*modelapi.Shape{"messages": modelapi.Messages}[m[1]], tools: modeltool.Messages}
		}
	case modelapi.OpenAI:
		if m := openAIPath.FindStringSubmatch(path); m != nil {
			r = route{path: m[1], tools: modeltool.Chat}
			switch m[1] {
			case "chat/completions":
				r.shape = modelapi.Chat
			case "responses":
				r.shape, r.tools = modelapi.Responses, modeltool.Responses
			case "responses/input_tokens":
				r.tools = modeltool.Responses
			}
		}
	case modelapi.Gemini:
		if m := geminiPath.FindStringSubmatch(path); m != nil {
			r = route{version: m[1], path: m[2], model: m[3], tools: modeltool.Generate}
			switch m[4] {
			case "", "countTokens":
			case "generateContent":
				r.shape = modelapi.Generate
			case "streamGenerateContent":
				r.shape, r.stream = modelapi.Generate, true
			default:
				return route{}, false
			}
		}
	}
	if strings.Contains(r.path, "..") || r.path == "" {
		return route{}, false
	}
	list := strings.HasPrefix(r.path, "models") && !strings.Contains(r.path, "countTokens") && r.shape == nil
	if list {
		return r, method == http.MethodGet
	}
	return r, method == http.MethodPost
}

// passedParams are the parameters that mean something to a provider. All others
// are dropped, including keys.
var passedParams = []string{"alt", "beta", "limit", "after_id", "before_id", "pageSize", "pageToken"}

// upstreamURL returns the URL of a route at the provider.
func upstreamURL(base *url.URL, provider string, r route, query url.Values) *url.URL {
	u := *base
	path := strings.TrimRight(u.Path, "/")
	switch provider {
	case modelapi.Anthropic:
		path = strings.TrimSuffix(path, "/v1") + "/v1"
	case modelapi.OpenAI:
		if path == "" {
			path = "/v1"
		}
	case modelapi.Gemini:
		path = strings.TrimSuffix(strings.TrimSuffix(path, "/v1beta"), "/v1") + "/" + r.version
	}
	u.Path, u.RawPath, u.Fragment, u.User = path+"/"+r.path, "", "", nil
	keep := u.Query()
	for _, name := range passedParams {
		if query.Has(name) {
			keep.Set(name, query.Get(name))
		}
	}
	u.RawQuery = keep.Encode()
	return &u
}
