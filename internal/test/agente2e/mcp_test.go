//go:build agents && linux

package agente2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// An address is where a daemon serves agents, and the token that it wants. The zero address is
// for programs that start pawl themselves, as pawl mcp install has told them.
type address struct{ url, token string }

// clients are the programs as clients of pawl. Each is asked something, with its model at a URL.
var clients = map[string]func(v *fixture, model string, at address) *exec.Cmd{
	"claude": func(v *fixture, model string, at address) *exec.Cmd {
		args := []string{
			"-p", "do it", "--output-format", "stream-json", "--verbose", "--permission-mode", "dontAsk", "--model", "claude-haiku-4-5", "--setting-sources", "user", "--allowedTools", "mcp__pawl",
		}
		if at.url != "" {
			servers, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{"pawl": map[string]any{"type": "http", "url": at.url, "headers": at.headers()}}})
			args = append(args, "--strict-mcp-config", "--mcp-config", string(servers))
		}
		cmd := exec.CommandContext(v.t.Context(), filepath.Join(agents, "claude"), args...)
		cmd.Env = []string{"ANTHROPIC_BASE_URL=" + model, "ENABLE_TOOL_SEARCH=false"} // Tools are offered, and not looked for.
		return cmd
	},
	"codex": func(v *fixture, model string, at address) *exec.Cmd {
		args := []string{
			"exec", "--json", "--skip-git-repo-check", "-m", "fake-1", "-c", `model_provider="fake"`,
			"-c", fmt.Sprintf(`model_providers.fake={name="fake",base_url=%q,env_key="OPENAI_API_KEY",wire_api="responses"}`, model+"/v1"),
			"-c", `mcp_servers.pawl.default_tools_approval_mode="approve"`,
		}
		if at.url != "" {
			args = append(args, "-c", fmt.Sprintf("mcp_servers.pawl.url=%q", at.url), "-c", `mcp_servers.pawl.bearer_token_env_var="PAWL_TOKEN"`)
		}
		cmd := exec.CommandContext(v.t.Context(), filepath.Join(agents, "codex"), append(args, "do it")...)
		cmd.Env = []string{"PAWL_TOKEN=" + at.token}
		return cmd
	},
	"gemini": func(v *fixture, model string, at address) *exec.Cmd {
		if at.url != "" {
			servers, _ := json.Marshal(map[string]any{"pawl": map[string]any{"httpUrl": at.url, "headers": at.headers()}})
			v.put(v.home, ".gemini/settings.json", strings.Replace(geminiSettings, "{", `{"mcpServers": `+string(servers)+",", 1))
		}
		cmd := exec.CommandContext(v.t.Context(), filepath.Join(agents, "gemini"), "-p", "do it", "-m", "fake-1", "-o", "stream-json", "--approval-mode", "yolo")
		cmd.Env = []string{
			"GOOGLE_GEMINI_BASE_URL=" + model, "GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_CLI_NO_RELAUNCH=true",
		}
		return cmd
	},
	"opencode": func(v *fixture, model string, at address) *exec.Cmd {
		config := map[string]any{
			"model": "fake/fake-1", "provider": map[string]any{"fake": map[string]any{
				"npm": "@ai-sdk/openai-compatible", "options": map[string]any{"baseURL": model + "/v1", "apiKey": key}, "models": map[string]any{"fake-1": map[string]any{}},
			}},
		}
		if at.url != "" {
			config["mcp"] = map[string]any{"pawl": map[string]any{"type": "remote", "url": at.url, "headers": at.headers(), "oauth": false}}
		}
		text, _ := json.Marshal(config)
		cmd := exec.CommandContext(v.t.Context(), filepath.Join(agents, "opencode"), "run", "--format", "json", "--dir", v.root)
		cmd.Stdin = strings.NewReader("do it")
		cmd.Env = []string{"OPENCODE_CONFIG_CONTENT=" + string(text), "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"}
		return cmd
	},
}

func (a address) headers() map[string]string {
	return map[string]string{"Authorization": "Bearer " + a.token}
}

// geminiSettings say how its model is reached; it does not see that by itself if the model has a URL.
const geminiSettings = `{"security": {"auth": {"selectedType": "gemini-api-key"}}}`

// tell has a program do what the script says, and returns for each of its turns what the program
// then showed to the model that it had not shown before.
func (v *fixture) tell(client string, at address, turns ...fakemodel.Turn) (shown []string) {
	v.t.Helper()
	v.model.Reset()
	v.model.Set("mcp", fakemodel.Script{Turns: append(turns, fakemodel.Say("Done."))})
	cmd := clients[client](v, v.url+"/s/mcp", at)
	cmd.Dir, cmd.Env = v.root, append(v.environ(), cmd.Env...)
	out, err := cmd.CombinedOutput()
	if os.Getenv("SHOW") != "" {
		v.t.Log(string(out), v.said())
	}
	asked := v.model.Turns()
	if err != nil || len(asked) != len(turns)+1 {
		v.t.Fatalf("%s: %v, %d turns, want %d\n%s\n%s", cmd.Path, err, len(asked), len(turns)+1, out, v.said())
	}
	var before map[string]bool
	for _, e := range asked {
		now := map[string]bool{}
		var body any
		if err := json.Unmarshal(e.Body, &body); err != nil {
			v.t.Fatal(err)
		}
		addTexts(now, body)
		if before != nil {
			var text strings.Builder
			for s := range now {
				if !before[s] {
					text.WriteString(s + "\n")
				}
			}
			shown = append(shown, text.String())
		}
		before = now
	}
	return shown
}

// addTexts adds the texts of a value of JSON, and of JSON in its texts.
func addTexts(texts map[string]bool, value any) {
	switch value := value.(type) {
	case string:
		texts[value] = true
	case []any:
		for _, v := range value {
			addTexts(texts, v)
		}
	case map[string]any:
		for _, v := range value {
			addTexts(texts, v)
		}
	}
}

func use(tool string, arguments map[string]any) fakemodel.Turn {
	in, err := json.Marshal(arguments)
	if err != nil {
		panic(err)
	}
	return fakemodel.Turn{Use: &fakemodel.Use{Intent: fakemodel.IntentTool, Name: tool, Input: in}}
}

// TestProgramsCreateStepReadAndStopALoopOverMCP has each program do the whole of it, as a client
// of a server that it starts itself, as pawl mcp install tells it to, and of a daemon.
func TestProgramsCreateStepReadAndStopALoopOverMCP(t *testing.T) {
	for name := range clients {
		s := subjects[slices.IndexFunc(subjects, func(s subject) bool { return s.name == name })]
		t.Run(name+" on a pipe", func(t *testing.T) {
			t.Parallel()
			v := newFixture(t, s, func(*fixture) fakemodel.Script { return fakemodel.Script{} })
			if name == "gemini" {
				v.put(v.home, ".gemini/settings.json", geminiSettings)
			}
			if _, errOut, exit := v.pawl("mcp", "install", name, "--yes"); exit != 0 {
				t.Fatal(errOut)
			}
			v.useLoop(name, address{})
		})
		t.Run(name+" over HTTP", func(t *testing.T) {
			t.Parallel()
			v := newFixture(t, s, func(*fixture) fakemodel.Script { return fakemodel.Script{} })
			v.useLoop(name, v.daemon())
		})
	}
}

// daemon starts one that serves agents.
func (v *fixture) daemon() address {
	v.t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		v.t.Fatal(err)
	}
	hostPort := l.Addr().String()
	l.Close()
	up := v.command("up", "--mcp", hostPort)
	said, err := up.StdoutPipe()
	if err == nil {
		err = up.Start()
	}
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() {
		_ = up.Process.Signal(os.Interrupt)
		_ = up.Wait()
	})
	lines := bufio.NewScanner(said)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "agents are served") {
	}
	text, err := os.ReadFile(filepath.Join(v.home, ".pawl", "mcp", "agent.key"))
	if err != nil {
		v.t.Fatal(err)
	}
	return address{"http://" + hostPort + "/mcp", strings.TrimSpace(string(text))}
}

// useLoop has a program create a loop, carry out one step of it, read it and stop it. What pawl
// has recorded then is asked of pawl, and what the model was told of what it was sent.
func (v *fixture) useLoop(client string, at address) {
	v.t.Helper()
	if _, errOut, exit := v.pawl("agent", "create", "@fixer", "--driver", "command", "--agent-command", "echo two >src/answer.txt"); exit != 0 {
		v.t.Fatal(errOut)
	}
	create := map[string]any{"goal": "The value is two.", "agentId": "nobody", "workspace": v.root, "idempotency_key": "one"}
	wrong := use("loop_create", create)
	create["agentId"], create["idempotency_key"] = "fixer", "two"
	shown := v.tell(client, at, wrong, use("loop_create", create))
	out, _, _ := v.pawl("spec", "list", "--json", "--jq", ".data[].id")
	id := strings.TrimSpace(out)
	if !strings.HasPrefix(id, "lp_") || strings.Contains(id, "\n") {
		v.t.Fatalf("after loop_create there are the loops %q\n%s", id, v.said())
	}
	this := map[string]any{"loopId": id, "workspace": v.root}
	shown = append(shown, v.tell(client, at, use("loop_run_step", this), use("loop_get", this), use("loop_stop", this))...)
	for i, want := range [][]string{
		{"agentId", "nobody", "nothing was created"}, {id, `"draft"`}, {`"waiting_human"`, `"pending"`}, {"iterations", "waiting_human"}, {`"paused"`},
	} {
		for _, w := range want {
			if !strings.Contains(shown[i], w) {
				v.t.Errorf("after call %d the model did not hear %q:\n%s", i+1, w, shown[i])
			}
		}
	}
	if out, _, _ := v.pawl("spec", "get", id, "--json", "--jq", ".status, (.iterations | length)"); out != "paused\n1\n" {
		v.t.Errorf("the loop is %q", out)
	}
}
