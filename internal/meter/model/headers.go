package model

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/loop"
)

// everyHeader are the request headers that go to every vendor, perVendor those that
// mean something to one of them: what the agents' programs were seen to send. No
// other header leaves, so that none chooses another account, organisation or
// project of the key's owner, another method, or a feature that is not known here.
// A name that ends with a star stands for all that begin so.
var (
	everyHeader = []string{"Accept", "Accept-Language", "User-Agent", "X-Stainless-*", "X-Client-Request-Id"}
	perVendor   = map[string][]string{
		Anthropic: {"Anthropic-Version", "Anthropic-Beta", "X-App", "X-Claude-Code-Session-Id"},
		OpenAI: {
			"Openai-Beta", "Originator", "Version", "Session_id", "Session-Id", "Conversation_id", "Thread-Id",
			"X-Codex-Beta-Features", "X-Codex-Turn-Metadata", "X-Codex-Turn-State", "X-Codex-Window-Id", "X-Codex-Installation-Id",
			"X-Codex-Parent-Thread-Id", "X-Codex-Root-Turn-Id", "X-Openai-Subagent",
			"X-Session-Id", "X-Session-Affinity", "Agent-Session-Id",
			"Http-Referer", "X-Title", "X-Dashscope-Cachecontrol", "X-Dashscope-Useragent", "X-Dashscope-Authtype",
		},
		Gemini: {"X-Goog-Api-Client", "X-Server-Timeout"},
	}
)

// features are headers that switch features on, with the values that pass. A value
// that belongs to one of the vendor's own tools passes if the definition allows
// that. Of a value that ends with a star only the beginning counts: the rest is
// its date.
var features = map[string]map[string]loop.ModelTool{
	"Anthropic-Beta": with(map[string]loop.ModelTool{
		"web-search-*": loop.ToolWebSearch, "web-fetch-*": loop.ToolWebFetch, "code-execution-*": loop.ToolCode, "skills-*": loop.ToolCode,
		"mcp-client-*": loop.ToolMCP, "mcp-servers-*": loop.ToolMCP, "files-api-*": loop.ToolFiles, "advisor-tool-*": loop.ToolAdvisor,
	}, clientSide, `claude-code-* interleaved-thinking-* thinking-token-count-* thinking-display-updates-* thinking-resumption-*
		thinking-binding-controls-* redact-thinking-* dev-full-thinking-* context-management-* context-1m-* compact-* extended-cache-ttl-*
		prompt-caching-* cache-diagnosis-* cache-keepalive-* effort-* structured-outputs-* output-128k-* max-tokens-* token-counting-*
		token-efficient-tools-* fine-grained-tool-streaming-* computer-use-* tool-search-tool-* advanced-tool-use-* tool-examples-*
		mid-conversation-* inline-tools-* pdfs-* task-budgets-* per-turn-control-* timing-* context-hint-* claude-code-side-query-*
		auto-mode-classifier-* afk-mode-* dangerous-tool-use-* oauth-* bedrock-* vertex-*`),
	"Openai-Beta":           with(nil, clientSide, `responses=experimental`),
	"X-Codex-Beta-Features": with(nil, clientSide, `remote_compaction_v2`),
}

// headers are those that leave with a request, without the credential. The body is
// JSON, whatever the program calls it: another reader is not to be chosen.
func (e *Endpoint) headers(from http.Header) http.Header {
	to := http.Header{}
	list := slices.Concat(everyHeader, perVendor[e.Provider])
	for name, values := range from {
		switch {
		case hop(name, from) || !listed(list, name):
		case features[name] != nil:
			if kept := e.featuresOf(name, values); kept != "" {
				to.Set(name, kept)
			}
		default:
			to[name] = values
		}
	}
	to.Set("Content-Type", "application/json")
	return to
}

func listed(list []string, name string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		start, open := strings.CutSuffix(entry, "*")
		return name == entry || open && strings.HasPrefix(name, start)
	})
}

// featuresOf are the values of such a header that pass.
func (e *Endpoint) featuresOf(name string, values []string) string {
	var kept []string
	for value := range strings.SplitSeq(strings.Join(values, ","), ",") {
		value = strings.TrimSpace(value)
		tool, known := featureOf(features[name], value)
		switch {
		case value == "":
		case known && (tool == clientSide || slices.Contains(e.Tools, tool)):
			kept = append(kept, value)
		case known:
			e.leftOut(fmt.Sprintf("%s: %.80q is for the vendor's %s, which model_tools does not name: it is not forwarded", name, value, tool))
		default:
			e.leftOut(fmt.Sprintf("%s: %.80q is not a feature that pawl knows: it is not forwarded", name, value))
		}
	}
	return strings.Join(kept, ",")
}

func featureOf(known map[string]loop.ModelTool, value string) (loop.ModelTool, bool) {
	for name, tool := range known {
		if start, dated := strings.CutSuffix(name, "*"); value == name || dated && strings.HasPrefix(value, start) {
			return tool, true
		}
	}
	return "", false
}
