package acp

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// program is what is known about a program that speaks the protocol. The zero
// program is an unknown one.
type program struct {
	name        string
	providers   []string // whose models it can use; empty means any
	needsModel  bool     // it must be told its model
	lastOnly    bool     // it reports the tokens of its last call as those of the turn
	hasNotices  bool     // texts without a message's ID are the program's own, not the model's
	errorPrefix string   // how a text begins that reports an error in a turn that seems to end well
	set         func(r agent.Request) setup
}

// setup is what a program is started with, in addition to what all get.
type setup struct {
	variables []string
	args      []string
	files     map[string]any // written into its home, strings as they are and other values as JSON
}

// programs are those that pawl was tested with.
var programs = []program{
	{name: "claude-agent-acp", providers: []string{anthropic}, set: claudeSetup},
	{name: "claude-code-acp", providers: []string{anthropic}, set: claudeSetup},
	{name: "codex-acp", providers: []string{openai}, hasNotices: true, set: codexSetup},
	{name: "gemini", providers: []string{gemini}, set: geminiSetup},
	{name: "opencode", needsModel: true, lastOnly: true, set: opencodeSetup},
	{name: "qwen", providers: []string{openai}, set: qwenSetup},
	{
		name: "goose", providers: []string{openai, anthropic}, needsModel: true, lastOnly: true, errorPrefix: "Ran into this error: ", set: gooseSetup,
	},
}

const (
	anthropic = "anthropic"
	openai    = "openai"
	gemini    = "gemini"
)

// programOf recognizes a program by a word of its command, which may be the name
// of a package with a version.
func programOf(command string) (program, bool) {
	for w := range strings.FieldsSeq(command) {
		base := path.Base(strings.Trim(w, `'"`))
		base, _, _ = strings.Cut(base, "@")
		if i := slices.IndexFunc(programs, func(p program) bool { return p.name == base }); i >= 0 {
			return programs[i], true
		}
	}
	return program{}, false
}

// writeSetup writes the program's settings into its home.
func (p program) writeSetup(r agent.Request) (setup, error) {
	if err := p.checkEndpoint(r); err != nil {
		return setup{}, err
	}
	s := setup{variables: endpointVariables(r.Models)}
	if p.set != nil {
		own := p.set(r)
		s = setup{variables: append(s.variables, own.variables...), args: own.args, files: own.files}
	}
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		content, ok := s.files[name].(string)
		if !ok {
			content = asJSON(s.files[name])
		}
		if err := r.Home.Write(name, []byte(content)); err != nil {
			return setup{}, fmt.Errorf("write %s for %s: %w", name, p.name, err)
		}
	}
	return s, nil
}

// checkEndpoint returns why a program cannot work with the endpoint.
func (p program) checkEndpoint(r agent.Request) error {
	switch {
	case r.Models.URL == "":
		return nil
	case len(p.providers) > 0 && r.Models.Provider != "" && !slices.Contains(p.providers, r.Models.Provider):
		return &loop.Fault{
			Exit: loop.ExitNotReady, What: fmt.Sprintf("%s cannot use models of %s", p.name, r.Models.Provider),
			Why: "it speaks with " + strings.Join(p.providers, " or "), Fix: "write `provider: " + p.providers[0] + "`, or name another agent_command",
		}
	case p.needsModel && r.Model == "":
		return &loop.Fault{Exit: loop.ExitNotReady, What: p.name + " has to be told its model", Why: "it has no default for an endpoint that is not its own", Fix: "write `model:`"}
	}
	return nil
}

// endpointVariables returns the variables in which programs look for their model.
func endpointVariables(e agent.Endpoint) []string {
	if e.URL == "" {
		return nil
	}
	of := map[string][]string{
		anthropic: {"ANTHROPIC_BASE_URL=" + e.URL, "ANTHROPIC_API_KEY=" + e.Key},
		openai:    {"OPENAI_BASE_URL=" + e.URL + "/v1", "OPENAI_API_KEY=" + e.Key},
		gemini:    {"GOOGLE_GEMINI_BASE_URL=" + e.URL, "GEMINI_API_KEY=" + e.Key},
	}
	if own, ok := of[e.Provider]; ok {
		return own
	}
	return slices.Concat(of[anthropic], of[openai], of[gemini])
}

func claudeSetup(r agent.Request) setup {
	s := setup{variables: []string{
		"CLAUDE_CODE_MAX_RETRIES=2", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1", "CLAUDE_CODE_DISABLE_AUTO_MEMORY=1", "CLAUDE_CODE_DISABLE_CLAUDE_MDS=1",
	}}
	if r.Model != "" {
		s.variables = append(s.variables, "ANTHROPIC_MODEL="+r.Model)
	}
	return s
}

// codexSetup configures the endpoint in the settings, the only place where codex
// reads it. Strings of TOML may be written like those of JSON.
func codexSetup(r agent.Request) setup {
	var b strings.Builder
	if r.Model != "" {
		fmt.Fprintf(&b, "model = %s\n", asJSON(r.Model))
	}
	search := "disabled"
	if r.Allows(loop.ToolWebSearch) {
		search = "live"
	}
	fmt.Fprintf(&b, "check_for_update_on_startup = false\nproject_doc_max_bytes = 0\nweb_search = %q\n", search)
	if r.Models.URL != "" {
		fmt.Fprintf(&b, "model_provider = \"pawl\"\n[model_providers.pawl]\nname = \"pawl\"\nbase_url = %s\nenv_key = \"OPENAI_API_KEY\"\n"+
			"wire_api = \"responses\"\nrequest_max_retries = 2\nstream_max_retries = 2\n", asJSON(r.Models.URL+"/v1"))
	}
	return setup{variables: []string{"CODEX_HOME=" + r.Home.Path() + "/.codex"}, files: map[string]any{".codex/config.toml": b.String()}}
}

// noInstructions is the file of instructions for programs that always read one:
// the repository's instructions are in the prompt already. No agent can create
// this file.
const noInstructions = ".loops/no-instructions"

// geminiSetup, like qwenSetup, keeps the program from restarting itself: the
// second process would get no signals and delay the start.
func geminiSetup(r agent.Request) setup {
	// GEMINI.md of a trusted tree is read whatever the settings name.
	s := setup{variables: []string{"GEMINI_CLI_TRUST_WORKSPACE=false", "GEMINI_CLI_NO_RELAUNCH=true"}}
	settings := map[string]any{
		"general": map[string]any{"disableAutoUpdate": true, "enableAutoUpdate": false}, "privacy": map[string]any{"usageStatisticsEnabled": false},
	}
	exclude := []string{}
	for name, tool := range map[string]loop.ModelTool{"google_web_search": loop.ToolWebSearch, "web_fetch": loop.ToolWebFetch} {
		if !r.Allows(tool) {
			exclude = append(exclude, name)
		}
	}
	slices.Sort(exclude)
	settings["tools"] = map[string]any{"exclude": exclude}
	security := map[string]any{"folderTrust": map[string]any{"enabled": false}}
	settings["security"] = security
	if r.Models.URL != "" {
		security["auth"] = map[string]any{"selectedType": "gemini-api-key"}
	}
	if r.Model != "" {
		s.args = []string{"-m", r.Model}
	}
	s.files = map[string]any{".gemini/settings.json": settings}
	return s
}

func opencodeSetup(r agent.Request) setup {
	config := map[string]any{
		"autoupdate": false, "share": "disabled",
		"permission": map[string]any{"edit": "ask", "bash": "ask", "webfetch": "ask", "external_directory": "ask"},
	}
	if r.Model != "" {
		config["model"] = r.Model
	}
	if r.Models.URL != "" {
		kit, base := "@ai-sdk/openai-compatible", r.Models.URL+"/v1"
		switch r.Models.Provider {
		case anthropic:
			kit = "@ai-sdk/anthropic"
		case gemini:
			kit, base = "@ai-sdk/google", r.Models.URL+"/v1beta"
		}
		config["model"], config["small_model"] = "pawl/"+r.Model, "pawl/"+r.Model
		config["provider"] = map[string]any{"pawl": map[string]any{
			"npm": kit, "options": map[string]any{"baseURL": base, "apiKey": r.Models.Key}, "models": map[string]any{r.Model: map[string]any{}},
		}}
		config["enabled_providers"] = []string{"pawl"}
	}
	return setup{variables: []string{
		"OPENCODE_CONFIG_CONTENT=" + asJSON(config), "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1",
		// Settings of the tree start programs, and their folder would be written to.
		"OPENCODE_DISABLE_PROJECT_CONFIG=1", "OPENCODE_PURE=1", "OPENCODE_DISABLE_CLAUDE_CODE=1",
	}}
}

func qwenSetup(r agent.Request) setup {
	s := setup{variables: []string{"QWEN_CODE_NO_RELAUNCH=true"}}
	settings := map[string]any{
		"general": map[string]any{"disableAutoUpdate": true}, "privacy": map[string]any{"usageStatisticsEnabled": false},
		"context": map[string]any{"fileName": noInstructions},
		// After each turn an agent of its own would read the conversation once more, for
		// a memory that the next turn does not have.
		"memory": map[string]any{"enableManagedAutoMemory": false, "enableManagedAutoDream": false},
	}
	if r.Models.URL != "" {
		settings["security"] = map[string]any{"auth": map[string]any{"selectedType": "openai"}}
	}
	if r.Model != "" {
		s.variables = append(s.variables, "OPENAI_MODEL="+r.Model)
	}
	s.files = map[string]any{".qwen/settings.json": settings}
	return s
}

func gooseSetup(r agent.Request) setup {
	s := setup{variables: []string{"GOOSE_MODE=approve", "GOOSE_DISABLE_KEYRING=1", "GOOSE_TELEMETRY_ENABLED=false", "CONTEXT_FILE_NAMES=[]"}}
	if r.Model != "" {
		s.variables = append(s.variables, "GOOSE_MODEL="+r.Model)
	}
	if r.Models.URL != "" {
		provider, host := openai, "OPENAI_HOST="
		if r.Models.Provider == anthropic {
			provider, host = anthropic, "ANTHROPIC_HOST="
		}
		s.variables = append(s.variables, "GOOSE_PROVIDER="+provider, host+r.Models.URL)
	}
	return s
}

// asJSON returns the JSON of texts and maps, which never fails.
func asJSON(v any) string {
	all, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("acp: invalid settings: %v", err))
	}
	return string(all)
}
