package model

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/pawl-run/pawl/internal/modelapi"
	"github.com/pawl-run/pawl/internal/modeltool"
)

// route is what is called: where it lies below the base, and how it is read. A
// route without a shape spends nothing.
type route struct {
	version string // as the client wrote it, for Gemini
	path    string // below the version
	model   string // if the path names one
	stream  bool   // if the path says so
	shape   *modelapi.Shape
	tools   *modeltool.API
}

// The paths that pass, for each provider. What stands before them is dropped:
// the path that leaves is made here and not by the client.
var (
	anthropicPath = regexp.MustCompile(`(?:^|/)v1/(messages|messages/count_tokens|models|models/[\w.:@-]+)$`)
	openAIPath    = regexp.MustCompile(`(?:^|/)(chat/completions|responses|responses/input_tokens|models|models/[\w.:@/-]+)$`)
	geminiPath    = regexp.MustCompile(`(?:^|/)(v1|v1beta|v1alpha)/(models(?:/[\w.@-]+)?|(?:models|tunedModels)/([\w.@-]+):(\w+))$`)
)

// routeOf finds out what a request calls. It returns false for what does not pass.
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

// passed are the parameters that mean something to a provider. All others are
// dropped, a key among them.
var passed = []string{"alt", "beta", "limit", "after_id", "before_id", "pageSize", "pageToken"}

// address is where a route lies at the provider.
func address(base *url.URL, provider string, r route, query url.Values) *url.URL {
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
	for _, name := range passed {
		if query.Has(name) {
			keep.Set(name, query.Get(name))
		}
	}
	u.RawQuery = keep.Encode()
	return &u
}
