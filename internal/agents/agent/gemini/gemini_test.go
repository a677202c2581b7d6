package gemini

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/agenttest"
)

func TestRecordedTurnsAreReadAsDrawn(t *testing.T) { agenttest.Replay(t, Driver{}) }

// started is what the program is started with for a request, and its home.
func started(t *testing.T, change func(*agent.Request)) (*agenttest.Recording, agenttest.Folder) {
	t.Helper()
	exec := agenttest.NewRecording(t, "ok", 0)
	r, _ := agenttest.TakeTurnWith(t, Driver{}, exec, func(r *agent.Request) {
		r.Dir = "/srv/tree"
		change(r)
	})
	return exec, r.Home.(agenttest.Folder)
}

func TestTheCommandLineSaysModelAndConversation(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*agent.Request)
		want   []string
	}{
		"a fresh conversation": {
			change: func(*agent.Request) {},
			want:   []string{"gemini", "--output-format", "stream-json", "--model", "model-1"},
		},
		"the program's own model": {
			change: func(r *agent.Request) { r.Model = "" },
			want:   []string{"gemini", "--output-format", "stream-json"},
		},
		"a conversation that goes on": {
			change: func(r *agent.Request) { r.Session = &loop.Session{ID: "s-1"} },
			want:   []string{"gemini", "--output-format", "stream-json", "--model", "model-1", "--resume", "s-1"},
		},
		"another program": {
			change: func(r *agent.Request) { r.Command = "my-gemini --debug" },
			want: []string{
				"/bin/sh", "-c", `exec my-gemini --debug "$@"`, "sh", "--output-format", "stream-json", "--model", "model-1",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			exec, _ := started(t, tc.change)
			if diff := cmp.Diff(tc.want, exec.Spec().Argv); diff != "" {
				t.Errorf("argv (-want +got):\n%s", diff)
			}
			if got, want := exec.Input(), "Repair what is broken.\n"; got != want {
				t.Errorf("it is told %q on standard input, want %q", got, want)
			}
		})
	}
}

func TestTheEnvironmentLeadsToTheModelAndMistrustsTheTree(t *testing.T) {
	exec, home := started(t, func(*agent.Request) {})
	exec.WantEnviron(t,
		"HOME="+home.Dir, "GEMINI_CLI_HOME="+home.Dir, "GEMINI_CLI_TRUST_WORKSPACE=false", "GEMINI_SANDBOX=false",
		"GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:3129", "GEMINI_API_KEY=pawl",
	)
}

func TestWithoutAnEndpointTheLoginInItsHomeIsUsed(t *testing.T) {
	exec, home := started(t, func(r *agent.Request) { r.Models = agent.Endpoint{} })
	for _, e := range exec.Spec().Env {
		if strings.HasPrefix(e, "GEMINI_API_KEY=") || strings.HasPrefix(e, "GOOGLE_GEMINI_BASE_URL=") {
			t.Errorf("the environment has %s", e)
		}
	}
	if got := written(t, home, "security", "auth", "selectedType"); got != "oauth-personal" {
		t.Errorf("it signs in by %v, want oauth-personal", got)
	}
}

// written is a value of the settings.
func written(t *testing.T, home agenttest.Folder, keys ...string) any {
	t.Helper()
	text, err := home.Read(".gemini/settings.json")
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		m, _ := value.(map[string]any)
		value = m[k]
	}
	return value
}

func TestSettingsAreThoseOfPawlAlone(t *testing.T) {
	_, home := started(t, func(r *agent.Request) { r.Env = append(r.Env, "PAWL_REPORT=/srv/report/report.json") })
	for keys, want := range map[string]any{
		"security auth selectedType":     "gemini-api-key",
		"security folderTrust enabled":   false,
		"experimental enableAgents":      false,
		"hooksConfig enabled":            false,
		"skills enabled":                 false,
		"advanced ignoreLocalEnv":        true,
		"telemetry enabled":              false,
		"privacy usageStatisticsEnabled": false,
		"general enableAutoUpdate":       false,
		"general maxAttempts":            2.0,
		"model maxSessionTurns":          200.0,
		"mcpServers":                     map[string]any{},
		"context includeDirectories":     []any{"/srv/report"},
	} {
		if diff := cmp.Diff(want, written(t, home, strings.Fields(keys)...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", keys, diff)
		}
	}
	policies, err := home.Read(".gemini/policies/pawl.toml")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Count(string(policies), "[[rule]]"), 3; got != want {
		t.Errorf("there are %d rules, want %d", got, want)
	}
	if text := string(policies); strings.Contains(text, "google_web_search") || strings.Contains(text, "web_fetch") {
		t.Errorf("the vendor's tools are allowed, which nobody said:\n%s", text)
	}
	_, home = started(t, func(r *agent.Request) { r.Tools = []loop.ModelTool{loop.ToolWebSearch} })
	policies, err = home.Read(".gemini/policies/pawl.toml")
	if text := string(policies); err != nil || !strings.Contains(text, `"replace", "google_web_search"]`) || strings.Contains(text, "web_fetch") {
		t.Errorf("a search that the definition allows is not, or more is: %v\n%s", err, text)
	}
	for name, want := range map[string]string{
		".gemini/projects.json":          `{"projects":{"/srv/tree":"pawl"}}`,
		".gemini/tmp/pawl/.project_root": "/srv/tree",
	} {
		if got, err := home.Read(name); err != nil || string(got) != want {
			t.Errorf("%s is %q (%v), want %q", name, got, err, want)
		}
	}
}

func TestOnlyAKeptConversationCanGoOn(t *testing.T) {
	r := agenttest.NewRequest(t, agenttest.NewRecording(t, "resume2", 0))
	if turn := agenttest.TakeTurn(t, Driver{}, r); turn.Result.Session != nil {
		t.Errorf("a turn that is not kept has the session %+v", turn.Result.Session)
	}
	r.Keep, r.Session = true, &loop.Session{ID: "s-1", Turns: 1}
	want := &loop.Session{ID: "00000000-0000-4000-8000-000000000001", Turns: 2}
	if diff := cmp.Diff(want, agenttest.TakeTurn(t, Driver{}, r).Result.Session); diff != "" {
		t.Errorf("session (-want +got):\n%s", diff)
	}
}

func TestWordsOfATreeAreNoFailure(t *testing.T) {
	stdout := strings.Join([]string{
		`{"type":"init","session_id":"s"}`,
		`{"type":"tool_use","tool_name":"read_file","tool_id":"1","parameters":{"file_path":"a"}}`,
		`{"type":"tool_result","tool_id":"1","status":"success","output":"429 rate limit: You exceeded your current quota. The model response was blocked"}`,
		`{"type":"message","role":"assistant","content":"The log says: usage limit reached, 401.","delta":true}`,
		`{"type":"result","status":"success","stats":{"models":{"m":{"total_tokens":3,"input_tokens":2,"output_tokens":1,"cached":0}}}}`,
	}, "\n") + "\n"
	exec := &agenttest.Recording{Stdout: []byte(stdout), Stderr: []byte("Error when talking to Gemini API Full report available at: x TerminalQuotaError: y\n")}
	if turn := agenttest.TakeTurn(t, Driver{}, agenttest.NewRequest(t, exec)); turn.Result.Failure != nil {
		t.Errorf("the turn failed: %+v", turn.Result.Failure)
	}
}

func TestTriesAreToldHoweverTheirWordsArrive(t *testing.T) {
	text := "a warning\nAttempt 1 failed with status 503. Retrying with backoff... _ApiError: {}\n    at a.js\n" +
		"Attempt 2 failed: slow. Retrying after 3000ms...\nError executing tool x: Attempt 3 failed. Retrying\n" +
		"Error when talking to Gemini API Full report available at: r.json _ApiError: {}\n"
	for _, size := range []int{1, 7, len(text)} {
		var told []string
		var passed strings.Builder
		w := &stderrReader{to: &passed, on: func(e agent.Event) { told = append(told, e.Text) }}
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		want := []string{
			"Attempt 1 failed with status 503. Retrying with backoff... _ApiError: {}", "Attempt 2 failed: slow. Retrying after 3000ms...",
		}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("told in pieces of %d bytes (-want +got):\n%s", size, diff)
		}
		if passed.String() != text || w.name != "ApiError" {
			t.Errorf("in pieces of %d bytes it passes on %q and keeps %q", size, passed.String(), w.name)
		}
	}
}

func FuzzAnyLinesAreReadWithoutBreakingAPromise(f *testing.F) { agenttest.Fuzz(f, Driver{}) }

func TestAPathBehindAnAtIsNotReplacedByAFile(t *testing.T) {
	rec := &agenttest.Recording{Stdout: []byte("{}\n")}
	agenttest.TakeTurnWith(t, Driver{}, rec, func(r *agent.Request) { r.Prompt = "mind @AGENTS.md and a@b" })
	if got := rec.Input(); got != `mind \@AGENTS.md and a\@b` {
		t.Errorf("standard input is %q", got)
	}
}
