package compose_test

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// caller is a program that no driver knows. It asks its model twice, at the
// address and with the key that its environment has, and writes down what it
// was answered and what it knows.
const caller = `
post() { # BASE PATH HEADER BODY
	rest=${1#http://}; host=${rest%%/*}; below=${rest#"$host"}
	bash -c 'exec 3<>/dev/tcp/'${host%:*}/${host#*:}'; cat >&3; cat <&3' <<END
POST $below$2 HTTP/1.1
Host: $host
$3
Content-Type: application/json
Content-Length: ${#4}
Connection: close

$4
END
}
for turn in 1 2; do
if [ -n "$ANTHROPIC_BASE_URL" ]; then
	post "$ANTHROPIC_BASE_URL" /v1/messages "x-api-key: $ANTHROPIC_API_KEY" '{"model":"MODEL","max_tokens":100,"messages":[{"role":"user","content":"go on"}]}'
elif [ -n "$GOOGLE_GEMINI_BASE_URL" ]; then
	post "$GOOGLE_GEMINI_BASE_URL" /v1beta/models/MODEL:generateContent "x-goog-api-key: $GEMINI_API_KEY" '{"contents":[{"role":"user","parts":[{"text":"go on"}]}],"generationConfig":{"maxOutputTokens":100}}'
else
	post "$OPENAI_BASE_URL" /chat/completions "Authorization: Bearer $OPENAI_API_KEY" '{"model":"MODEL","max_tokens":100,"messages":[{"role":"user","content":"go on"}]}'
fi >>src/answers 2>&1
done
env | grep -E 'BASE|KEY' >src/env
`

// talker speaks the Agent Client Protocol, and is a caller when it is prompted.
const talker = `
while read -r line; do
	id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
	case $line in
	*'"initialize"'*) result='{"protocolVersion":1,"agentCapabilities":{}}' ;;
	*'"session/new"'*) result='{"sessionId":"s1"}' ;;
	*'"session/prompt"'*) sh caller.sh; result='{"stopReason":"end_turn"}'
		printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"did it"}}}}\n' ;;
	*) continue ;;
	esac
	[ -z "$id" ] || printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
`

// gateway is a scripted server of models on loopback.
func gateway(t *testing.T) (*fakemodel.Server, string) {
	t.Helper()
	model := fakemodel.New(fakemodel.Script{Bare: true, Turns: []fakemodel.Turn{{Say: "so it is", Usage: &fakemodel.Usage{Input: 1000, Output: 50}}}})
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	return model, server.URL
}

// keyless is the environment of this process without anything that leads to a
// model.
func keyless(more ...string) []string {
	return append(slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasSuffix(name, "_API_KEY") || strings.HasSuffix(name, "_BASE_URL") || strings.HasPrefix(name, "ANTHROPIC_") || strings.HasPrefix(name, "CLAUDE_")
	}), more...)
}

// The set-ups are those of docs/agents.md.
func TestInFullAnyProgramThatNamesAProviderIsMeteredThroughTheSetUpsOfTheManual(t *testing.T) {
	t.Parallel()
	const key = "sk-canary-5Hn3KcUe92BdJs4g"
	for name, c := range map[string]struct {
		environ []string // SERVER is the gateway
		keys    []string
		model   string
		path    string // that the server is asked for
		auth    string // the value of the header with the key
	}{
		"a gateway in the environment, with a token": {
			[]string{"ANTHROPIC_BASE_URL=SERVER", "ANTHROPIC_AUTH_TOKEN=" + key}, []string{"provider", "anthropic"}, "claude-haiku-4-5", "/v1/messages", "Bearer " + key,
		},
		"a gateway in the environment, with a key": {
			[]string{"OPENAI_BASE_URL=SERVER/v1", "OPENAI_API_KEY=" + key}, []string{"provider", "openai"}, "gpt-5", "/v1/chat/completions", "Bearer " + key,
		},
		"a gateway for Gemini": {
			[]string{"GOOGLE_GEMINI_BASE_URL=SERVER", "GEMINI_API_KEY=" + key}, []string{"provider", "gemini"}, "gemini-2.5-flash", "/v1beta/models/gemini-2.5-flash:generateContent", key,
		},
		"a gateway in the definition": {
			[]string{"PAWL_API_KEY=" + key, "OPENAI_API_KEY=another"}, []string{"provider", "openai", "base_url", "SERVER/v1"}, "team/gpt-5", "/v1/chat/completions", "Bearer " + key,
		},
		"a proxy before Bedrock": {
			[]string{"PAWL_API_KEY=" + key}, []string{"provider", "openai", "base_url", "SERVER/api/v1"}, "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "/api/v1/chat/completions", "Bearer " + key,
		},
		"Ollama": {nil, []string{"provider", "openai", "base_url", "SERVER/v1"}, "qwen3-coder", "/v1/chat/completions", ""},
		"a program of the Agent Client Protocol": {
			[]string{"ANTHROPIC_BASE_URL=SERVER", "ANTHROPIC_API_KEY=" + key}, []string{"provider", "anthropic", "agent", "acp", "agent_command", "sh talker.sh", "model", ""}, "claude-haiku-4-5", "/v1/messages", key,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model, url := gateway(t)
			lead := func(list []string) []string {
				led := make([]string, len(list))
				for i, text := range list {
					led[i] = strings.Replace(text, "SERVER", url, 1)
				}
				return led
			}
			script := strings.ReplaceAll(caller, "MODEL", c.model)
			v := cagedIn(t, keyless(lead(c.environ)...), script, map[string]string{"caller.sh": script, "talker.sh": talker}, append([]string{"model", c.model}, lead(c.keys)...)...)
			run := v.runs()
			if got := run.Run.Usage; got.Input != 2000 || got.Output != 100 || got.Source != loop.UsageMetered || run.Auth != loop.AuthInject {
				t.Errorf("run = %s %s %q, used %+v by %q, want 2000 and 100 tokens, metered\n%s", run.Outcome, run.Reason, run.Detail, got, run.Auth, v.toldOf(run))
			}
			calls := model.Log()
			if len(calls) != 2 {
				t.Fatalf("the server was asked %d times, want 2: %s", len(calls), v.said(run, "src/answers"))
			}
			for _, e := range calls {
				auth := strings.Join(slices.Collect(maps.Values(e.Auth)), " ")
				if e.Path != c.path || auth != c.auth {
					t.Errorf("the server was asked for %s with %q, want %s with %q", e.Path, auth, c.path, c.auth)
				}
			}
			if inside := v.said(run, "src/env"); strings.Contains(inside, key) || strings.Contains(inside, url) || !strings.Contains(inside, "BASE_URL=http://127.0.0.1:") {
				t.Errorf("the program saw\n%s", inside)
			}
			if from, _, named := strings.Cut(strings.Join(c.environ, " "), "=SERVER"); named && !strings.Contains(v.told(run), "as "+from+" says") {
				t.Errorf("nobody is told where the model is asked:\n%s", v.told(run))
			}
		})
	}
}

func TestInFullTheCapOfAProgramThatNamesAProviderIsKept(t *testing.T) {
	t.Parallel()
	model, url := gateway(t)
	v := cagedIn(t, keyless(), strings.ReplaceAll(caller, "MODEL", "qwen3-coder"), nil, "provider", "openai", "base_url", url+"/v1", "model", "qwen3-coder", "budget_tokens", "50")
	run := v.runs()
	if run.Run.Usage.Output != 50 || run.Run.Usage.Source != loop.UsageMetered {
		t.Errorf("used = %+v, want the 50 tokens of one answer", run.Run.Usage)
	}
	if n := len(model.Log()); n != 1 {
		t.Errorf("the server was asked %d times, want once: the second call does not fit", n)
	}
	if run.Outcome == loop.OutcomeFailed || !strings.Contains(fmt.Sprint(run.Reason, run.Detail, v.told(run)), "budget") {
		t.Errorf("run = %s %s %q, want that its budget is used up", run.Outcome, run.Reason, run.Detail)
	}
}
