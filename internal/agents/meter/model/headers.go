package model

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/agents/modeltool"
)

// anyVendorHeaders are the request headers that are sent to every vendor, and
// vendorHeaders those that mean something to one of them: headers that agents'
// programs were seen to send. No other header is forwarded, so that none selects
// another account, organisation or project of the key's owner, another method, or
// an unknown feature. A star at the end of a name matches any rest.
var (
	anyVendorHeaders = []string{"Accept", "Accept-Language", "User-Agent", "X-Stainless-*", "X-Client-Request-Id"}
	vendorHeaders    = map[string][]string{
		modelapi.Anthropic: {"Anthropic-Version", "Anthropic-Beta", "X-App", "X-Claude-Code-Session-Id"},
		modelapi.OpenAI: {
			"Openai-Beta", "Originator", "Version", "Session_id", "Session-Id", "Conversation_id", "Thread-Id",
			"X-Codex-Beta-Features", "X-Codex-Turn-Metadata", "X-Codex-Turn-State", "X-Codex-Window-Id", "X-Codex-Installation-Id",
			"X-Codex-Parent-Thread-Id", "X-Codex-Root-Turn-Id", "X-Openai-Subagent",
			"X-Session-Id", "X-Session-Affinity", "Agent-Session-Id",
			"Http-Referer", "X-Title", "X-Dashscope-Cachecontrol", "X-Dashscope-Useragent", "X-Dashscope-Authtype",
		},
		modelapi.Gemini: {"X-Goog-Api-Client", "X-Server-Timeout"},
	}
)

// headersToSend returns the headers to forward, without the credential. The
// content type is always JSON, so that a program cannot choose another parser.
func (e *Endpoint) headersToSend(from http.Header) http.Header {
	to := http.Header{}
	list := slices.Concat(anyVendorHeaders, vendorHeaders[e.Provider])
	for name, values := range from {
		switch {
		case isHopByHop(name, from) || !isListed(list, name):
		case modeltool.IsFeatureHeader(name):
			if kept := e.allowedFeatures(name, values); kept != "" {
				to.Set(name, kept)
			}
		default:
			to[name] = values
		}
	}
	to.Set("Content-Type", "application/json")
	return to
}

func isListed(list []string, name string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		start, open := strings.CutSuffix(entry, "*")
		return name == entry || open && strings.HasPrefix(name, start)
	})
}

// allowedFeatures returns the values of a feature header that may be forwarded.
func (e *Endpoint) allowedFeatures(name string, values []string) string {
	var kept []string
	for value := range strings.SplitSeq(strings.Join(values, ","), ",") {
		value = strings.TrimSpace(value)
		tool, known := modeltool.Feature(name, value)
		switch {
		case value == "":
		case known && (tool == "" || slices.Contains(e.Tools, tool)):
			kept = append(kept, value)
		case known:
			e.reportLeftOut(fmt.Sprintf("%s: %.80q is for the vendor's %s, which model_tools does not name: it is not forwarded", name, value, tool))
		default:
			e.reportLeftOut(fmt.Sprintf("%s: %.80q is not a feature that pawl knows: it is not forwarded", name, value))
		}
	}
	return strings.Join(kept, ",")
}
