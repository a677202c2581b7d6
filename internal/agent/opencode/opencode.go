// Package opencode drives the opencode CLI: one `opencode run` for a turn, with
// settings that are pawl's alone.
//
// It leaves no question open: what a turn may do is compiled into the settings,
// since a question that nobody answers ends the turn without a word. It loads no
// settings, plugins, tools, skills or servers of the tree or of the host's user,
// and turns off everything by which the program would reach anything but its
// model. It never limits a turn by itself: the program has no cap that holds.
package opencode

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
)

// Name is the driver's entry in the roster.
const Name = "opencode"

const (
	// sessions is the folder of conversations. It is apart from the program's other
	// data, among which the login lies.
	sessions = "sessions"
	// tree is the file that says in which tree the conversation was held.
	tree = sessions + "/tree"
)

// providers are the shapes of requests and the program's package for each. The
// program brings these along: nothing is fetched.
var providers = map[string]struct{ name, npm, path string }{
	"anthropic": {"anthropic", "@ai-sdk/anthropic", "/v1"},
	"openai":    {"openai", "@ai-sdk/openai-compatible", "/v1"},
	"gemini":    {"google", "@ai-sdk/google", "/v1beta"},
}

// Driver runs opencode. The zero value is ready.
type Driver struct{}

// Profile says what the driver needs.
func (Driver) Profile() agent.Profile {
	return agent.Profile{
		Name: Name, Program: "opencode", Home: true, Providers: []string{"anthropic", "openai", "gemini"},
		Asks: map[string]string{"anthropic": "claude-sonnet-4-6", "openai": "gpt-5.6-terra", "gemini": "gemini-3-pro-image-preview"},
		Login: agent.Login{
			Files: []string{".local/share/opencode/auth.json"},
			Hosts: []string{
				"opencode.ai", "api.anthropic.com", "console.anthropic.com", "api.openai.com", "auth.openai.com", "chatgpt.com",
				"generativelanguage.googleapis.com", "openrouter.ai", "*.githubcopilot.com",
			},
			Renews: []string{"console.anthropic.com", "auth.openai.com"},
		},
		Sessions: []string{sessions}, Install: "npm install -g opencode-ai", Masks: []string{".opencode", "opencode.json", "opencode.jsonc"},
		Attaches: []string{"AGENTS.md"},
	}
}

// Turn runs the program once and blocks until it and everything that it started
// are gone. A conversation that was held in another tree is not gone on with:
// the program would wait for ever. The error is nil for any program that
// started.
func (Driver) Turn(ctx context.Context, r agent.Request) (agent.Result, error) {
	r.Session = continued(r)
	config, err := settings(r)
	if err != nil {
		return agent.Result{}, err
	}
	for _, f := range files(r) {
		if err := r.Home.Write(f.name, []byte(f.text)); err != nil {
			return agent.Result{}, fmt.Errorf("write %s into the home of opencode: %w", f.name, err)
		}
	}
	p := agent.Program{
		Argv: agent.CommandLine(r, "opencode", arguments(r)...), Env: environment(r, string(config)), Stdin: strings.NewReader(r.Prompt),
	}
	return agent.RunStream(ctx, r, p, &decoder{request: r})
}

// continued is the conversation to go on with: none if it was held elsewhere.
func continued(r agent.Request) *loop.Session {
	if r.Session == nil {
		return nil
	}
	if was, err := r.Home.Read(tree); err == nil && string(was) == r.Dir {
		return r.Session
	}
	_, _ = fmt.Fprintln(r.Output, "the conversation was held in another tree: a fresh one begins") // What is shown never stops a turn.
	return nil
}

func arguments(r agent.Request) []string {
	// A title that is given costs no call of the model.
	args := []string{"run", "--format", "json", "--thinking", "--dir", r.Dir, "--title", "pawl"}
	if model := modelName(r); model != "" {
		args = append(args, "--model", model)
	}
	if r.Session != nil {
		args = append(args, "--session", r.Session.ID)
	}
	return args
}

// modelName is PROVIDER/MODEL. Without an endpoint it is as the definition has it.
func modelName(r agent.Request) string {
	if r.Models.URL == "" || r.Model == "" {
		return r.Model
	}
	name := provider(r)
	return name + "/" + strings.TrimPrefix(r.Model, name+"/")
}

func provider(r agent.Request) string {
	return providers[cmp.Or(r.Models.Provider, "openai")].name
}

func environment(r agent.Request, config string) []string {
	home := strings.TrimSuffix(r.Home.Path(), "/")
	all := []string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + home + "/.config", "XDG_DATA_HOME=" + home + "/.local/share",
		"XDG_CACHE_HOME=" + home + "/.cache", "XDG_STATE_HOME=" + home + "/.local/state",
		"OPENCODE_DB=" + home + "/" + sessions + "/opencode.db",
		"OPENCODE_CONFIG_CONTENT=" + config,
		// The tree is not trusted: neither its opencode.json nor its .opencode folder
		// counts, both of which start programs, and no plugin, skill or hook of any kind.
		"OPENCODE_DISABLE_PROJECT_CONFIG=1", "OPENCODE_PURE=1",
		"OPENCODE_DISABLE_CLAUDE_CODE=1", "OPENCODE_DISABLE_EXTERNAL_SKILLS=1",
		// Nothing is reached but the model.
		"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
		"OPENCODE_DISABLE_SHARE=1",
		// An empty folder would be the tree's, whose AGENTS.md the program would add.
		"OPENCODE_CONFIG_DIR=" + home + "/.config/opencode",
		// What a host may have set is emptied, so that it does not come before ours.
		"OPENCODE_CONFIG=", "OPENCODE_PERMISSION=", "OPENCODE_AUTH_CONTENT=",
	}
	if r.Models.URL != "" { // They sign in to vendors, which a login in the home needs.
		all = append(all, "OPENCODE_DISABLE_DEFAULT_PLUGINS=1")
	}
	return all
}

// settings is the program's whole configuration.
func settings(r agent.Request) ([]byte, error) {
	all := map[string]any{
		"autoupdate": false, "share": "disabled", "lsp": false, "formatter": false, "mcp": serverSettings(r.Servers), "plugin": []string{},
		"snapshot":   false, // The runtime keeps trees by itself, and the program takes seconds for each step.
		"permission": permission(r),
	}
	if model := modelName(r); model != "" {
		all["model"], all["small_model"] = model, model
	}
	if r.Models.URL != "" {
		p, ok := providers[cmp.Or(r.Models.Provider, "openai")]
		if !ok {
			return nil, fmt.Errorf("configure opencode: provider %q is not anthropic, openai or gemini", r.Models.Provider)
		}
		models := map[string]any{}
		if r.Model != "" {
			models[strings.TrimPrefix(r.Model, p.name+"/")] = effortOf(r.Effort, p.name)
		}
		all["enabled_providers"] = []string{p.name}
		all["provider"] = map[string]any{p.name: map[string]any{
			"npm": p.npm, "models": models, "options": map[string]any{"baseURL": r.Models.URL + p.path, "apiKey": r.Models.Key},
		}}
	}
	return json.Marshal(all)
}

// permission lets the agent work on its tree and use a shell, which the sandbox
// holds, and denies everything else; a question would end the turn. Sub-agents
// are denied because what they do and use is in no event. Of the rules that fit
// the last one counts, and the encoder puts the stars first.
func permission(r agent.Request) map[string]any {
	all := map[string]any{"*": "deny", "external_directory": outside(r)}
	for _, tool := range []string{"read", "edit", "bash", "glob", "grep", "list", "todowrite", "todoread"} {
		all[tool] = "allow"
	}
	for _, tool := range []string{"task", "skill", "webfetch", "websearch", "codesearch", "question", "doom_loop", "plan_enter", "plan_exit"} {
		all[tool] = "deny"
	}
	for _, s := range r.Servers {
		all[s.Name+"_*"] = "allow"
	}
	return all
}

// serverSettings name MCP servers; permission allows their tools.
func serverSettings(servers []loop.Server) map[string]any {
	all := map[string]any{}
	for _, s := range servers {
		if s.URL != "" {
			all[s.Name] = map[string]any{"type": "remote", "url": s.URL, "enabled": true, "oauth": false}
		} else {
			all[s.Name] = map[string]any{"type": "local", "command": s.Argv(), "enabled": true}
		}
	}
	return all
}

// effortOf is the entry of a model that is asked to think as hard as is said, in
// the words of its vendor.
func effortOf(effort, vendor string) map[string]any {
	if effort == "" {
		return map[string]any{}
	}
	options := map[string]any{"reasoningEffort": effort}
	switch vendor {
	case "anthropic":
		options = map[string]any{"effort": effort}
	case "google":
		options = map[string]any{"thinkingConfig": map[string]any{"thinkingLevel": effort}}
	}
	return map[string]any{"reasoning": true, "options": options}
}

// outside is what the agent may touch beside its tree: the folders of its prompt
// and its report.
func outside(r agent.Request) map[string]string {
	all := map[string]string{"*": "deny"}
	for _, v := range r.Env {
		name, value, _ := strings.Cut(v, "=")
		if (name == "PAWL_PROMPT" || name == "PAWL_REPORT") && path.IsAbs(value) && path.Dir(value) != "/" {
			all[path.Dir(value)+"/*"] = "allow"
		}
	}
	return all
}

type file struct{ name, text string }

// files are what lies in the home before the program starts.
func files(r agent.Request) []file {
	all := []file{
		// The program fetches its library for plugins into the folder of its settings,
		// unless there is one, and a lock that names it.
		{".config/opencode/node_modules/.keep", ""},
		{".config/opencode/package-lock.json", `{"packages":{"":{"dependencies":{"@opencode-ai/plugin":"0"}}}}`},
		{sessions + "/.keep", ""},
	}
	if r.Keep {
		all = append(all, file{tree, r.Dir})
	}
	return all
}
