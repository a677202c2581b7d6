// Package codex drives Codex: one turn of it is one app-server that is talked
// with in JSON-RPC on its standard streams, so that it asks before every
// command and every change of a file. An older Codex that has no app-server takes
// no turn.
//
// It switches the program's own sandbox off, because pawl's is around it, and
// lets nothing of the user's own configuration in. It never takes an answer for
// more than the one command that was asked about.
package codex

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/policy"
)

// Name is the driver's entry in the roster.
const Name = "codex"

// providerName is what the configuration calls an Endpoint.
const providerName = "pawl"

// keyVariable is where the program finds the key of an Endpoint.
const keyVariable = "PAWL_MODEL_KEY"

// exitNotFound is the shell's exit status for a program that is not there.
const exitNotFound = 127

// baseSettings keep the program from everything but its model: with all of these
// off it was seen to contact nothing else. With instant_interrupt, words for the
// agent would cut a call of its model, which is paid for and never counted. The
// host of code mode stays on: newer models have no other way to act.
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

// Driver runs Codex. The zero value is ready.
type Driver struct{}

// Profile says what the program needs.
func (Driver) Profile() agent.Profile {
	return agent.Profile{
		Name: Name, Program: "codex", Runtime: []string{"node"}, Home: true, Providers: []string{"openai"}, Asks: map[string]string{"openai": "gpt-6.1-sol"},
		Login: agent.Login{
			Files:  []string{".codex/auth.json"},
			Hosts:  []string{"chatgpt.com", "auth.openai.com", "api.openai.com"},
			Renews: []string{"auth.openai.com"},
		},
		Sessions: []string{".codex/sessions"}, Install: "npm install -g @openai/codex", Masks: []string{".codex"},
	}
}

// Turn takes one turn, and blocks until everything that it started is gone. A
// conversation that the program no longer has is begun anew. The error is nil
// for any program that started.
func (Driver) Turn(ctx context.Context, r agent.Request) (agent.Result, error) {
	if err := r.Home.Write(".codex/config.toml", []byte(configuration(r))); err != nil {
		return agent.Result{}, fmt.Errorf("write the configuration of codex: %w", err)
	}
	return agent.TurnOrRestart(ctx, r, runTurn)
}

// runTurn reports whether the conversation to continue was lost.
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

// configuration is the file that the program reads. The tree is said not to be
// trusted: else the program would take servers, hooks and rules for what needs
// no question from it. Strings of TOML can be written as those of JSON.
func configuration(r agent.Request) string {
	models := r.Models
	search := "disabled"
	if r.Allows(loop.ToolWebSearch) {
		search = "live"
	}
	quote := func(v any) string {
		text, _ := json.Marshal(v) // Texts and lists of them can always be written.
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

// sessionOf is what a later turn goes on with.
func sessionOf(before *loop.Session, id, model string, total loop.Usage) *loop.Session {
	s := &loop.Session{ID: id, Totals: []loop.ModelUsage{{Model: model, Usage: total}}, Turns: 1}
	if before != nil && before.ID == id {
		s.Turns += before.Turns
	}
	return s
}
