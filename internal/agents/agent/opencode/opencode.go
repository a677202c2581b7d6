// Package opencode drives the opencode CLI: one `opencode run` for each turn,
// with settings that are only pawl's.
//
// It never asks a person: the settings say what a turn may do, since a question
// without an answer ends the turn silently. It loads no settings, plugins, tools,
// skills or servers of the tree or of the host's user, and disables everything
// that would contact anything but the model. It does not limit a turn itself,
// because the program has no reliable limit.
package opencode

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Name is the driver's entry in the roster.
const Name = "opencode"

const (
	// sessionsDir is the directory of conversations. It is separate from the
	// program's other data, which contain the login.
	sessionsDir = "sessions"
	// treeFile says in which tree the conversation took place.
	treeFile = sessionsDir + "/tree"
)

// providers are the APIs and the program's package for each. The packages are
// part of the program; nothing is downloaded.
var providers = map[string]struct{ name, npm, path string }{
	"anthropic": {"anthropic", "@ai-sdk/anthropic", "/v1"},
	"openai":    {"openai", "@ai-sdk/openai-compatible", "/v1"},
	"gemini":    {"google", "@ai-sdk/google", "/v1beta"},
}

// Driver runs opencode. The zero value is ready to use.
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
		Sessions: []string{sessionsDir}, Install: "npm install -g opencode-ai", Masks: []string{".opencode", "opencode.json", "opencode.jsonc"},
		Attaches: []string{"AGENTS.md"},
	}
}

// Turn runs the program once and blocks until it and everything that it started
// have ended. It does not continue a conversation from another tree, since the
// program would wait forever. The error is nil for any program that started.
func (Driver) Turn(ctx context.Context, r agent.Request) (agent.Result, error) {
	r.Session = sessionToContinue(r)
	config, err := settingsJSON(r)
	if err != nil {
		return agent.Result{}, err
	}
	for _, f := range homeFiles(r) {
		if err := r.Home.Write(f.name, []byte(f.text)); err != nil {
			return agent.Result{}, fmt.Errorf("write %s into the home of opencode: %w", f.name, err)
		}
	}
	p := agent.Program{
		Argv: agent.CommandLine(r, "opencode", runArguments(r)...), Env: runEnvironment(r, string(config)), Stdin: strings.NewReader(r.Prompt),
	}
	return agent.RunStream(ctx, r, p, &decoder{request: r})
}

// sessionToContinue returns the conversation to continue; nil if it took place in
// another tree.
func sessionToContinue(r agent.Request) *loop.Session {
	if r.Session == nil {
		return nil
	}
	if was, err := r.Home.Read(treeFile); err == nil && string(was) == r.Dir {
		return r.Session
	}
	_, _ = fmt.Fprintln(r.Output, "the conversation was held in another tree: a fresh one begins") // Errors of the output never stop a turn.
	return nil
}

func runArguments(r agent.Request) []string {
	// With a title given, the program does not call the model to find one.
	args := []string{"run", "--format", "json", "--thinking", "--dir", r.Dir, "--title", "pawl"}
	if model := modelName(r); model != "" {
		args = append(args, "--model", model)
	}
	if r.Session != nil {
		args = append(args, "--session", r.Session.ID)
	}
	return args
}

// modelName returns PROVIDER/MODEL. Without an endpoint it is what the definition
// says.
func modelName(r agent.Request) string {
	if r.Models.URL == "" || r.Model == "" {
		return r.Model
	}
	name := providers[cmp.Or(r.Models.Provider, "openai")].name
	return name + "/" + strings.TrimPrefix(r.Model, name+"/")
}

func runEnvironment(r agent.Request, config string) []string {
	home := strings.TrimSuffix(r.Home.Path(), "/")
	all := []string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + home + "/.config", "XDG_DATA_HOME=" + home + "/.local/share",
		"XDG_CACHE_HOME=" + home + "/.cache", "XDG_STATE_HOME=" + home + "/.local/state",
		"OPENCODE_DB=" + home + "/" + sessionsDir + "/opencode.db",
		"OPENCODE_CONFIG_CONTENT=" + config,
		// The tree is not trusted: the program ignores its opencode.json and .opencode,
		// which can start programs, and all plugins, skills and hooks.
		"OPENCODE_DISABLE_PROJECT_CONFIG=1", "OPENCODE_PURE=1",
		"OPENCODE_DISABLE_CLAUDE_CODE=1", "OPENCODE_DISABLE_EXTERNAL_SKILLS=1",
		// The program contacts nothing but the model.
		"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
		"OPENCODE_DISABLE_SHARE=1",
		// Without this, it would be the tree's folder, whose AGENTS.md would be added.
		"OPENCODE_CONFIG_DIR=" + home + "/.config/opencode",
		// Variables that the host may have set would override pawl's.
		"OPENCODE_CONFIG=", "OPENCODE_PERMISSION=", "OPENCODE_AUTH_CONTENT=",
	}
	if r.Models.URL != "" { // The plugins sign in to vendors, which a login in the home needs.
		all = append(all, "OPENCODE_DISABLE_DEFAULT_PLUGINS=1")
	}
	return all
}

// settingsJSON returns the program's whole configuration.
func settingsJSON(r agent.Request) ([]byte, error) {
	all := map[string]any{
		"autoupdate": false, "share": "disabled", "lsp": false, "formatter": false, "mcp": serverSettings(r.Servers), "plugin": []string{},
		"snapshot":   false, // The runtime keeps trees itself, and snapshots take seconds for each step.
		"permission": permissions(r),
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

// permissions lets the agent work on its tree and use a shell, which the sandbox
// confines, and denies everything else, since a question would end the turn.
// Sub-agents are denied because no event reports what they do and use. The last
// rule that matches applies; the JSON encoder sorts stars first.
func permissions(r agent.Request) map[string]any {
	all := map[string]any{"*": "deny", "external_directory": allowedOutside(r)}
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

// serverSettings names the MCP servers; permissions allows their tools.
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

// effortOf returns a model's entry with the requested effort of thinking, in the
// form of its vendor.
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

// allowedOutside returns what the agent may access outside of its tree: the
// directories of its prompt and its report.
func allowedOutside(r agent.Request) map[string]string {
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

// homeFiles are the files in the home before the program starts.
func homeFiles(r agent.Request) []file {
	all := []file{
		// The program downloads its plugin library into the folder of its settings,
		// unless the folder has modules and a lock file that names the library.
		{".config/opencode/node_modules/.keep", ""},
		{".config/opencode/package-lock.json", `{"packages":{"":{"dependencies":{"@opencode-ai/plugin":"0"}}}}`},
		{sessionsDir + "/.keep", ""},
	}
	if r.Keep {
		all = append(all, file{treeFile, r.Dir})
	}
	return all
}
