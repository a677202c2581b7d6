package compose_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// posting is an agent that posts every line of a file to its model's endpoint, whose
// address it finds where any program does, and keeps the answers.
const posting = `#!/bin/bash
at=${ANTHROPIC_BASE_URL:-${OPENAI_BASE_URL:-$GOOGLE_GEMINI_BASE_URL}}
at=${at#http://}; at=${at%/v1}
while IFS=' ' read -r path body; do
  exec 3<>"/dev/tcp/${at%:*}/${at#*:}"
  printf 'POST %s HTTP/1.1\r\nHost: x\r\nX-Api-Key: none\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s' "$path" "${#body}" "$body" >&3
  cat <&3 >>src/answers
  exec 3>&-
done <asks
`

// asks are the vendor's own tools of each API, by line. Those that a search needs
// come first.
var asks = map[string][]string{
	"anthropic": {
		`/v1/messages {"model":"fake-1","max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":[{"type":"web_search_20250305","name":"web_search"}]}`,
		`/v1/messages {"model":"fake-1","max_tokens":9,"messages":[],"tools":[{"type":"web_fetch_20250910","name":"web_fetch"}]}`,
		`/v1/messages {"model":"fake-1","max_tokens":9,"messages":[],"tools":[{"type":"code_execution_20250825","name":"code_execution"}]}`,
		`/v1/messages {"model":"fake-1","max_tokens":9,"messages":[],"tools":[{"type":"advisor_20260301","name":"advisor"}]}`,
		`/v1/messages {"model":"fake-1","max_tokens":9,"messages":[],"mcp_servers":[{"type":"url","url":"https://mcp.example.org","name":"x"}]}`,
		`/v1/messages {"model":"fake-1","max_tokens":9,"messages":[],"container":"c"}`,
		`/v1/messages {"model":"fake-1","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x.example.org/?secret"}}]}]}`,
		`/v1/messages {"model":"fake-1","max_tokens":9,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"f"}}]}]}`,
		`/v1/messages/count_tokens {"model":"fake-1","messages":[],"tools":[{"type":"web_fetch_20250910","name":"web_fetch"}]}`,
	},
	"openai": {
		`/v1/responses {"model":"fake-1","input":"x","tools":[{"type":"web_search"}]}`,
		`/v1/chat/completions {"model":"fake-1","messages":[{"role":"user","content":"x"}],"web_search_options":{}}`,
		`/v1/chat/completions {"model":"gpt-4o-search-preview","messages":[{"role":"user","content":"x"}]}`,
		`/v1/responses {"model":"fake-1","input":"x","tools":[{"type":"file_search","vector_store_ids":["v"]}]}`,
		`/v1/responses {"model":"fake-1","input":"x","tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}`,
		`/v1/responses {"model":"fake-1","input":"x","tools":[{"type":"image_generation"}]}`,
		`/v1/responses {"model":"fake-1","input":"x","tools":[{"type":"mcp","server_url":"https://mcp.example.org"}]}`,
		`/v1/responses {"model":"fake-1","input":"x","tools":[{"type":"shell","environment":{"type":"container_auto"}}]}`,
		`/v1/responses {"model":"fake-1","input":[{"role":"user","content":[{"type":"input_image","image_url":"https://x.example.org/?secret"}]}]}`,
		`/v1/responses {"model":"fake-1","input":"x","previous_response_id":"resp_1"}`,
		`/v1/chat/completions {"model":"fake-1","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x.example.org/?secret"}}]}]}`,
	},
	"gemini": {
		`/v1beta/models/fake-1:generateContent {"contents":[{"parts":[{"text":"x"}]}],"tools":[{"google_search":{}}]}`,
		`/v1beta/models/fake-1:generateContent {"contents":[{"parts":[{"text":"x"}]}],"tools":[{"googleSearchRetrieval":{}}]}`,
		`/v1beta/models/fake-1:generateContent {"contents":[],"tools":[{"urlContext":{}}]}`,
		`/v1beta/models/fake-1:generateContent {"contents":[],"tools":[{"codeExecution":{}}]}`,
		`/v1beta/models/fake-1:generateContent {"contents":[],"tools":[{"googleMaps":{}}]}`,
		`/v1beta/models/fake-1:generateContent {"contents":[],"tools":[{"file_search":{}}]}`,
		`/v1beta/models/fake-1:generateContent {"contents":[],"cachedContent":"cachedContents/1"}`,
		`/v1beta/models/fake-1:generateContent {"contents":[{"parts":[{"fileData":{"fileUri":"https://x.example.org/?secret"}}]}]}`,
	},
}

// driverOf are drivers that tell their program the endpoint in the usual variables.
var driverOf = map[string]string{"anthropic": "claude", "openai": "qwen", "gemini": "gemini"}

// searches is how many lines of each ask for a search.
var searches = map[string]int{"anthropic": 1, "openai": 3, "gemini": 2}

// searchPrice makes a search the only thing that costs: a cent.
const searchPrice = `{"models": {
	"fake-1": {"input_per_mtok": 0, "output_per_mtok": 0, "web_search_per_1000": 10},
	"gpt-4o-search-preview": {"input_per_mtok": 0, "output_per_mtok": 0, "web_search_per_1000": 10}
}}`

// centOfSearch is what one search costs, in millionths of a dollar.
const centOfSearch = 10_000

func TestAttack081InFullNothingIsDoneByTheVendorThatTheDefinitionDoesNotName(t *testing.T) {
	t.Parallel()
	for provider, lines := range asks {
		for _, allowed := range []bool{false, true} {
			t.Run(fmt.Sprint(provider, ", web_search allowed: ", allowed), func(t *testing.T) {
				t.Parallel()
				model := fakemodel.New(fakemodel.Script{})
				server := httptest.NewServer(model)
				t.Cleanup(server.Close)
				keys := []string{"agent", driverOf[provider], "base_url", server.URL, "agent_command", "bash agent.sh", "model", "fake-1"}
				if allowed {
					keys = append(keys, "model_tools", "[web_search]")
				}
				v := cagedIn(t, slices.Concat(os.Environ(), []string{
					"ANTHROPIC_API_KEY=sk-false-0123456789", "OPENAI_API_KEY=sk-false-0123456789", "GEMINI_API_KEY=sk-false-0123456789",
				}), "", map[string]string{"agent.sh": obedient(posting), "asks": strings.Join(lines, "\n") + "\n"}, keys...)
				must(t, os.WriteFile(filepath.Join(v.home, "prices.json"), []byte(searchPrice), 0o600))
				run := v.runs()
				answers := v.said(run, "src/answers")
				refused := len(lines)
				if allowed {
					refused -= searches[provider]
				}
				if n := strings.Count(answers, "pawl: the request has"); n != refused {
					t.Errorf("%d of %d requests were refused:\n%s", n, refused, answers)
				}
				if got := len(model.Log()); got != len(lines)-refused {
					t.Errorf("%d requests arrived, want %d: %+v", got, len(lines)-refused, model.Log())
				}
				for _, e := range model.Log() {
					if len(e.Hosted) != 1 && e.Model != "gpt-4o-search-preview" {
						t.Errorf("a request without a tool of the vendor's arrived: %+v", e)
					}
				}
				if told := v.toldOf(run); !strings.Contains(told, "model_tool: ") || !strings.Contains(told, "model_tools: [") {
					t.Errorf("nothing is told of the refusals:\n%s", told)
				}
				if want := int64(searches[provider]) * centOfSearch; allowed && run.Cost.MicroUSD != want {
					t.Errorf("billed %d millionths of a dollar for the searches, want %d: %+v", run.Cost.MicroUSD, want, run.Cost)
				}
				if !allowed && (run.Tokens.Input != 0 || run.Tokens.Output != 0 || run.Tokens.Source != loop.UsageMetered) {
					t.Errorf("calls that were refused were counted: %+v", run.Tokens)
				}
			})
		}
	}
}
