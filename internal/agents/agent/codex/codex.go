// Package codex drives Codex: each turn is one app-server that exchanges JSON-RPC
// with pawl on its standard streams, so that it asks before every command and
// every change of a file. Old versions of Codex without an app-server are not
// supported.
//
// It disables the program's own sandbox, because pawl's surrounds it, and lets in
// nothing of the user's own configuration. It grants permissions for one command
// only.
package codex

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// Name is the driver's entry in the roster.
const Name = "codex"

// providerName is the Endpoint's name in the configuration.
const providerName = "pawl"

// keyVariable is the variable with the key of an Endpoint.
const keyVariable = "PAWL_MODEL_KEY"

// exitNotFound is the shell's exit status for a program that does not exist.
const exitNotFound = 127

// baseSettings keep the program from contacting anything but its model: with all
// of these disabled, no other traffic was seen. With instant_interrupt, messages
// for the agent would cut a call of the model, which is paid for but never
// counted. The host of code mode stays enabled, because newer models have no
// other way to act.
const baseSettings = `check_for_update_on_startup = false
project_doc_max_bytes = 0

[analytics]
enabled = false

[feedback]
enabled = false

[history]
persistence = "none"

[features]
api_key_model_discovery = false
apps = false
browser_use = false
computer_use = false
daemon_auto_start = false
goals = false
hooks = false
instant_interrupt = false
multi_agent = false
multi_agent_v2 = false
in_app_browser = false
plugins = false
remote_plugin = false
skill_search = false
tool_suggest = false
unbounded_connection_retries = false
workspace_dependencies = false
`

// Driver runs Codex. The zero value is ready to use.
type Driver struct{}

// Profile says what the program needs.
func (Driver) Profile() agent.Profile {
	return agent.Profile{
		Name: Name, Program: "codex", Runtime: []string{"node"}, Home: true, Providers: []string{"openai"}, Asks: map[string]string{"openai": "gpt-6.2-sol"},
		Login: agent.Login{
			Files:  []string{".codex/auth.json"},
			Hosts:  []string{"chatgpt.com", "auth.openai.com", "api.openai.com"},
			Renews: []string{"auth.openai.com"},
		},
		Sessions: []string{".codex/sessions"}, Install: "npm install -g @openai/codex", Masks: []string{".codex"},
	}
}

// Turn takes one turn, and blocks until everything that it started has ended. If
// the program no longer has the conversation, it starts a new one. The error is
// nil for any program that started.
func (Driver) Turn(ctx context.Context, r agent.Request) (agent.Result, error) {
	if err := r.Home.Write(".codex/config.toml", []byte(configuration(r))); err != nil {
		return agent.Result{}, fmt.Errorf("write the configuration of codex: %w", err)
	}
	return agent.TurnOrRestart(ctx, r, runTurn)
}

// runTurn takes one turn. It reports whether the conversation to continue was
// lost.
func runTurn(ctx context.Context, r agent.Request, judge func(policy.Call) policy.Answer) (agent.Result, bool, error) {
	in := new(agent.Input)
	d := newDecoder(r, in, judge)
	d.sendThreadRequests()
	res, err := agent.RunStream(ctx, r, agent.Program{Argv: agent.CommandLine(r, "codex", "app-server"), Env: environment(r), Stdin: in}, d)
	return res, d.lost, err
}

func environment(r agent.Request) []string {
	env := []string{"HOME=" + r.Home.Path(), "CODEX_HOME=" + r.Home.Path() + "/.codex"}
	if r.Models.URL != "" {
		env = append(env, keyVariable+"="+r.Models.Key)
	}
	return env
}

// configuration returns the program's configuration file. It marks the tree as
// untrusted: otherwise the program would load servers, hooks and rules from it
// without a question. Strings of TOML may be written like those of JSON.
func configuration(r agent.Request) string {
	models := r.Models
	search := "disabled"
	if r.Allows(loop.ToolWebSearch) {
		search = "live"
	}
	quote := func(v any) string {
		text, _ := json.Marshal(v) // Encoding strings and lists of them never fails.
		return string(text)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "web_search = %q\n", search)
	if r.Effort != "" {
		fmt.Fprintf(&text, "model_reasoning_effort = %s\n", quote(r.Effort))
	}
	text.WriteString(baseSettings + // The last table of the settings is [features].
		fmt.Sprintf("image_generation = %t\n\n[projects.%s]\ntrust_level = \"untrusted\"\n", r.Allows(loop.ToolImages), quote(r.Dir)))
	for _, s := range r.Servers {
		fmt.Fprintf(&text, "\n[mcp_servers.%s]\ndefault_tools_approval_mode = \"approve\"\n", s.Name)
		if s.URL != "" {
			fmt.Fprintf(&text, "url = %s\n", quote(s.URL))
		} else {
			fmt.Fprintf(&text, "command = %s\nargs = %s\n", quote(s.Argv()[0]), quote(s.Argv()[1:]))
		}
	}
	if models.URL == "" {
		return text.String()
	}
	return fmt.Sprintf(`model_provider = %[1]q
%[2]s
[model_providers.%[1]s]
name = %[1]q
base_url = %[3]s
env_key = %[4]q
wire_api = "responses"
request_max_retries = 2
stream_max_retries = 2
`, providerName, text.String(), quote(models.URL+"/v1"), keyVariable)
}
