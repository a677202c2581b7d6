package opencode_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/agent/opencode"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/agenttest"
)

const finished = `{"type":"text","timestamp":1,"sessionID":"ses_1","part":{"type":"text","text":"Done."}}
{"type":"step_finish","timestamp":1,"sessionID":"ses_1","part":{"reason":"stop","tokens":{"input":10,"output":2,"reasoning":3,"cache":{"read":5,"write":4}}}}
`

func TestRecordedTurnsAreReadAsDrawn(t *testing.T) {
	agenttest.Replay(t, opencode.Driver{})
}

func FuzzNoOutputBreaksATurn(f *testing.F) { agenttest.Fuzz(f, opencode.Driver{}) }

// start is what the program was started with.
func start(t *testing.T, change func(*agent.Request)) (*agenttest.Recording, agent.Request, agenttest.Turn) {
	t.Helper()
	rec := &agenttest.Recording{Stdout: []byte(finished)}
	r, turn := agenttest.TakeTurnWith(t, opencode.Driver{}, rec, func(r *agent.Request) {
		r.Dir = "/tree"
		change(r)
	})
	return rec, r, turn
}

func TestCommandLineSaysWhatTheTurnIs(t *testing.T) {
	first := []string{"run", "--format", "json", "--thinking", "--dir", "/tree", "--title", "pawl"}
	cases := map[string]struct {
		change func(*agent.Request)
		want   []string
	}{
		"a model behind an endpoint has the name of its provider": {
			func(*agent.Request) {}, slices.Concat([]string{"opencode"}, first, []string{"--model", "openai/model-1"}),
		},
		"gemini is google": {
			func(r *agent.Request) { r.Models.Provider = "gemini" },
			slices.Concat([]string{"opencode"}, first, []string{"--model", "google/model-1"}),
		},
		"a provider that is already there is not said twice": {
			func(r *agent.Request) { r.Models.Provider, r.Model = "anthropic", "anthropic/m" },
			slices.Concat([]string{"opencode"}, first, []string{"--model", "anthropic/m"}),
		},
		"a vendor's own model is as the definition has it": {
			func(r *agent.Request) { r.Models, r.Model = agent.Endpoint{}, "opencode/m" },
			slices.Concat([]string{"opencode"}, first, []string{"--model", "opencode/m"}),
		},
		"the program's own model is not named": {
			func(r *agent.Request) { r.Model = "" }, slices.Concat([]string{"opencode"}, first),
		},
		"a command of the definition stands before it": {
			func(r *agent.Request) { r.Command, r.Model = "env X=1 my-opencode", "" },
			slices.Concat([]string{"/bin/sh", "-c", `exec env X=1 my-opencode "$@"`, "sh"}, first),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			rec, _, _ := start(t, c.change)
			if diff := cmp.Diff(c.want, rec.Spec().Argv); diff != "" {
				t.Error(diff)
			}
			if got := rec.Input(); got != "Repair what is broken.\n" {
				t.Errorf("standard input is %q", got)
			}
		})
	}
}

func variable(t *testing.T, env []string, name string) string {
	t.Helper()
	i := slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	if i < 0 {
		t.Fatalf("%s is not set", name)
	}
	return strings.TrimPrefix(env[i], name+"=")
}

func TestEverythingOfTheProgramLiesInItsHome(t *testing.T) {
	rec, r, _ := start(t, func(r *agent.Request) { r.Env = append(r.Env, "OPENCODE_CONFIG_DIR=/tree/evil", "XDG_DATA_HOME=/host") })
	env := rec.Spec().Env
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "OPENCODE_DB", "OPENCODE_CONFIG_DIR"} {
		if got := variable(t, env, name); !strings.HasPrefix(got, r.Home.Path()) {
			t.Errorf("%s is %q, not below %s", name, got, r.Home.Path())
		}
	}
	for _, name := range []string{"OPENCODE_CONFIG", "OPENCODE_PERMISSION", "OPENCODE_AUTH_CONTENT"} {
		if got := variable(t, env, name); got != "" {
			t.Errorf("%s is %q, want it empty", name, got)
		}
	}
	for _, name := range []string{
		"DISABLE_PROJECT_CONFIG", "PURE", "DISABLE_DEFAULT_PLUGINS", "DISABLE_CLAUDE_CODE", "DISABLE_EXTERNAL_SKILLS",
		"DISABLE_AUTOUPDATE", "DISABLE_MODELS_FETCH", "DISABLE_LSP_DOWNLOAD", "DISABLE_SHARE",
	} {
		if got := variable(t, env, "OPENCODE_"+name); got != "1" {
			t.Errorf("OPENCODE_%s is %q, want 1", name, got)
		}
	}
	var lock struct {
		Packages map[string]struct{ Dependencies map[string]string }
	}
	text, err := r.Home.Read(".config/opencode/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		t.Fatal(err)
	}
	if _, ok := lock.Packages[""].Dependencies["@opencode-ai/plugin"]; !ok {
		t.Errorf("the lock %s does not name the library that would be fetched", text)
	}
}

type config struct {
	Model      string   `json:"model"`
	SmallModel string   `json:"small_model"`
	Enabled    []string `json:"enabled_providers"`
	Share      string   `json:"share"`
	Autoupdate bool     `json:"autoupdate"`
	Snapshot   bool     `json:"snapshot"`
	Permission map[string]any
	MCP        map[string]any
	Provider   map[string]struct {
		NPM     string `json:"npm"`
		Options struct {
			BaseURL string `json:"baseURL"`
			APIKey  string `json:"apiKey"`
		} `json:"options"`
		Models map[string]any `json:"models"`
	} `json:"provider"`
}

func settingsJSON(t *testing.T, change func(*agent.Request)) config {
	t.Helper()
	rec, _, _ := start(t, change)
	var c config
	if err := json.Unmarshal([]byte(variable(t, rec.Spec().Env, "OPENCODE_CONFIG_CONTENT")), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheModelIsReachedThroughTheEndpointAlone(t *testing.T) {
	for provider, want := range map[string][3]string{
		"openai":    {"openai", "@ai-sdk/openai-compatible", "http://127.0.0.1:3129/v1"},
		"anthropic": {"anthropic", "@ai-sdk/anthropic", "http://127.0.0.1:3129/v1"},
		"gemini":    {"google", "@ai-sdk/google", "http://127.0.0.1:3129/v1beta"},
	} {
		t.Run(provider, func(t *testing.T) {
			c := settingsJSON(t, func(r *agent.Request) { r.Models.Provider = provider })
			p := c.Provider[want[0]]
			if got := [3]string{c.Enabled[0], p.NPM, p.Options.BaseURL}; got != want || len(c.Enabled) != 1 || p.Options.APIKey != "pawl" {
				t.Errorf("the provider is %v %+v, want %v", c.Enabled, p, want)
			}
			if c.Model != want[0]+"/model-1" || c.SmallModel != c.Model || p.Models["model-1"] == nil {
				t.Errorf("models are %q and %q of %v", c.Model, c.SmallModel, p.Models)
			}
		})
	}
	if c := settingsJSON(t, func(r *agent.Request) { r.Models = agent.Endpoint{} }); c.Provider != nil || c.Enabled != nil {
		t.Errorf("with the login in the home, providers are %v %v, want the program's own", c.Enabled, c.Provider)
	}
	r := agenttest.NewRequest(t, &agenttest.Recording{})
	r.Models.Provider = "other"
	if turn := agenttest.TakeTurn(t, opencode.Driver{}, r); turn.Err == nil || !strings.Contains(turn.Err.Error(), `"other"`) {
		t.Errorf("a provider that is unknown gives %v", turn.Err)
	}
}

func TestNoToolAsks(t *testing.T) {
	c := settingsJSON(t, func(r *agent.Request) {
		r.Env = append(r.Env, "PAWL_REPORT=/run/pawl/report.json", "PAWL_PROMPT=/prompt", "OTHER=/etc/passwd")
	})
	want := map[string]any{
		"*": "deny", "read": "allow", "edit": "allow", "bash": "allow", "glob": "allow", "grep": "allow", "list": "allow",
		"todowrite": "allow", "todoread": "allow", "task": "deny", "skill": "deny", "webfetch": "deny", "websearch": "deny",
		"codesearch": "deny", "question": "deny", "doom_loop": "deny", "plan_enter": "deny", "plan_exit": "deny",
		"external_directory": map[string]any{"*": "deny", "/run/pawl/*": "allow"},
	}
	if diff := cmp.Diff(want, c.Permission); diff != "" {
		t.Error(diff)
	}
	if c.Share != "disabled" || c.Autoupdate || c.Snapshot {
		t.Errorf("share %q, update %t, snapshot %t", c.Share, c.Autoupdate, c.Snapshot)
	}
}

func TestTheRuleForEverythingComesFirst(t *testing.T) {
	rec, _, _ := start(t, func(r *agent.Request) { r.Env = append(r.Env, "PAWL_REPORT=/run/pawl/report.json") })
	text := variable(t, rec.Spec().Env, "OPENCODE_CONFIG_CONTENT")
	for _, first := range []string{`"permission":{"*":"deny",`, `"external_directory":{"*":"deny",`} {
		if !strings.Contains(text, first) {
			t.Errorf("%s is not in %s: a rule before it would not count", first, text)
		}
	}
}

func TestALoginInTheHomeCanBeUsed(t *testing.T) {
	rec, _, _ := start(t, func(r *agent.Request) { r.Models = agent.Endpoint{} })
	if slices.Contains(rec.Spec().Env, "OPENCODE_DISABLE_DEFAULT_PLUGINS=1") {
		t.Error("the plugins that sign in are off")
	}
}

func TestAConversationGoesOnInItsOwnTreeOnly(t *testing.T) {
	home := agenttest.Folder{Dir: t.TempDir()}
	keep := func(r *agent.Request) { r.Home, r.Keep = home, true }
	_, _, first := start(t, keep)
	if diff := cmp.Diff(&loop.Session{ID: "ses_1", Turns: 1}, first.Result.Session); diff != "" {
		t.Fatal(diff)
	}
	goOn := func(r *agent.Request) { keep(r); r.Session = first.Result.Session }
	rec, _, second := start(t, goOn)
	if argv := rec.Spec().Argv; !slices.Equal(argv[len(argv)-2:], []string{"--session", "ses_1"}) {
		t.Errorf("the second turn is %v", argv)
	}
	if diff := cmp.Diff(&loop.Session{ID: "ses_1", Turns: 2}, second.Result.Session); diff != "" {
		t.Error(diff)
	}
	rec, _, elsewhere := start(t, func(r *agent.Request) { goOn(r); r.Dir = "/other" })
	if argv := rec.Spec().Argv; slices.Contains(argv, "--session") {
		t.Errorf("in another tree it is %v, and waits for ever", argv)
	}
	if !strings.Contains(elsewhere.Output, "another tree") {
		t.Errorf("the output is %q", elsewhere.Output)
	}
	if _, _, once := start(t, func(*agent.Request) {}); once.Result.Session != nil {
		t.Errorf("a turn that is not to be kept has the session %+v", once.Result.Session)
	}
}

func TestTokensAreCountedOnce(t *testing.T) {
	_, _, turn := start(t, func(*agent.Request) {})
	want := loop.Usage{Input: 10, Output: 5, CacheRead: 5, CacheWrite: 4, Source: loop.UsageReported}
	if turn.Result.Usage != want {
		t.Errorf("usage is %+v, want %+v", turn.Result.Usage, want)
	}
}

func TestACallThatWasCutIsEstimated(t *testing.T) {
	step := strings.ReplaceAll(finished, `"stop"`, `"tool-calls"`)
	rec := &agenttest.Recording{Stdout: []byte(step), Exit: 143, Ended: proc.TimedOut}
	turn := agenttest.TakeTurn(t, opencode.Driver{}, agenttest.NewRequest(t, rec))
	// The step has 10 + 5 + 4 of input and 5 of output; the next has all of that for its input.
	want := loop.Usage{Input: 10 + 24, Output: 5 + 1, CacheRead: 5, CacheWrite: 4, Source: loop.UsageEstimated}
	if turn.Result.Usage != want || turn.Result.Models[0].Usage != want {
		t.Errorf("usage is %+v and %+v, want %+v", turn.Result.Usage, turn.Result.Models, want)
	}
}

func TestAnEndWithoutAnAnswerIsNone(t *testing.T) {
	for name, stdout := range map[string]string{
		"nothing was said":      "",
		"tools were asked for":  strings.ReplaceAll(finished, `"stop"`, `"tool-calls"`),
		"a step is still going": finished + `{"type":"step_start","sessionID":"ses_1","part":{}}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			turn := agenttest.TakeTurn(t, opencode.Driver{}, agenttest.NewRequest(t, &agenttest.Recording{Stdout: []byte(stdout)}))
			if f := turn.Result.Failure; f == nil || f.Class != loop.FailureMalformed {
				t.Errorf("the failure is %+v, want %s", f, loop.FailureMalformed)
			}
		})
	}
}

func TestEffortAndServersAreInTheSettings(t *testing.T) {
	for provider, want := range map[string]map[string]any{
		"openai":    {"reasoningEffort": "high"},
		"anthropic": {"effort": "high"},
		"gemini":    {"thinkingConfig": map[string]any{"thinkingLevel": "high"}},
	} {
		c := settingsJSON(t, func(r *agent.Request) {
			r.Models, r.Model, r.Effort = agent.Endpoint{URL: "http://127.0.0.1:3129", Key: "k", Provider: provider}, "m", "high"
			r.Servers = []loop.Server{{Name: "files", Command: "node x.js --a"}, {Name: "docs", URL: "https://mcp.example/v1"}}
		})
		for _, p := range c.Provider {
			if diff := cmp.Diff(map[string]any{"m": map[string]any{"reasoning": true, "options": want}}, p.Models); diff != "" {
				t.Errorf("%s: models (-want +got):\n%s", provider, diff)
			}
		}
		servers := map[string]any{
			"files": map[string]any{"type": "local", "command": []any{"/bin/sh", "-c", "exec node x.js --a"}, "enabled": true},
			"docs":  map[string]any{"type": "remote", "url": "https://mcp.example/v1", "enabled": true, "oauth": false},
		}
		if diff := cmp.Diff(servers, c.MCP); diff != "" {
			t.Errorf("servers (-want +got):\n%s", diff)
		}
		if c.Permission["files_*"] != "allow" || c.Permission["docs_*"] != "allow" || c.Permission["*"] != "deny" {
			t.Errorf("permissions %v", c.Permission)
		}
	}
}
