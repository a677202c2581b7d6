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
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// asks is how a program is asked something, with its model at a URL and pawl as its MCP server, which it starts itself.
var asks = map[string]func(v *fixture, url string) *exec.Cmd{
	"claude": func(v *fixture, url string) *exec.Cmd {
		servers, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{"pawl": map[string]any{"command": pawl, "args": []string{"mcp"}}}})
		return claude(v, url, string(servers))
	},
	"codex": func(v *fixture, url string) *exec.Cmd {
		return codex(v, url, fmt.Sprintf(`{command=%q,args=["mcp"],env={PAWL_HOME=%q},default_tools_approval_mode="approve"}`, pawl, filepath.Join(v.home, ".pawl")))
	},
}

func claude(v *fixture, url, servers string) *exec.Cmd {
	cmd := exec.CommandContext(v.t.Context(), filepath.Join(agents, "claude"), "-p", "do it", "--output-format", "stream-json", "--verbose", "--permission-mode", "dontAsk",
		"--model", "claude-haiku-4-5", "--setting-sources", "", "--strict-mcp-config", "--mcp-config", servers, "--allowedTools", "mcp__pawl")
	cmd.Env = []string{"ANTHROPIC_BASE_URL=" + url, "ENABLE_TOOL_SEARCH=false"} // Tools are offered, and not looked for.
	return cmd
}

func codex(v *fixture, url, server string) *exec.Cmd {
	return exec.CommandContext(v.t.Context(), filepath.Join(agents, "codex"),
		"exec", "--json", "--skip-git-repo-check", "-m", "fake-1", "-c", `model_provider="fake"`,
		"-c", fmt.Sprintf(`model_providers.fake={name="fake",base_url=%q,env_key="OPENAI_API_KEY",wire_api="responses"}`, url+"/v1"), "-c", "mcp_servers.pawl="+server, "do it")
}

// urls are the same for a daemon that serves agents: they are asked with its address and a token.
var urls = map[string]func(v *fixture, url, at, token string) *exec.Cmd{
	"claude": func(v *fixture, url, at, token string) *exec.Cmd {
		servers, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{"pawl": map[string]any{"type": "http", "url": at, "headers": map[string]string{"Authorization": "Bearer " + token}}}})
		return claude(v, url, string(servers))
	},
	"codex": func(v *fixture, url, at, token string) *exec.Cmd {
		cmd := codex(v, url, fmt.Sprintf(`{url=%q,bearer_token_env_var="PAWL_TOKEN",default_tools_approval_mode="approve"}`, at))
		cmd.Env = append(cmd.Env, "PAWL_TOKEN="+token)
		return cmd
	},
}

// tell has a program do what the script says, and returns the answers of the tools that the
// model was told.
func (v *fixture) tell(ask func(v *fixture, url string) *exec.Cmd, turns ...fakemodel.Turn) string {
	v.t.Helper()
	v.model.Reset()
	v.model.Set("mcp", fakemodel.Script{Turns: append(turns, fakemodel.Say("Done."))})
	cmd := ask(v, v.url+"/s/mcp")
	cmd.Dir, cmd.Env = v.root, append(v.environ(), cmd.Env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		v.t.Fatalf("%s: %v\n%s\n%s", cmd.Path, err, out, v.said())
	}
	if os.Getenv("SHOW") != "" {
		v.t.Log(string(out), v.said())
	}
	return string(out)
}

func use(tool string, arguments map[string]any) fakemodel.Turn {
	in, err := json.Marshal(arguments)
	if err != nil {
		panic(err)
	}
	return fakemodel.Turn{Use: &fakemodel.Use{Intent: fakemodel.IntentTool, Name: tool, Input: in}}
}

// TestProgramsCreateStepReadAndStopALoopOverMCP has each program do the whole of it, as a client
// of a server that it starts itself, and of a daemon.
func TestProgramsCreateStepReadAndStopALoopOverMCP(t *testing.T) {
	for _, s := range subjects {
		if asks[s.name] == nil {
			continue
		}
		t.Run(s.name+" on a pipe", func(t *testing.T) {
			t.Parallel()
			v := newFixture(t, s, func(*fixture) fakemodel.Script { return fakemodel.Script{} })
			v.useLoop(asks[s.name])
		})
		t.Run(s.name+" over HTTP", func(t *testing.T) {
			t.Parallel()
			v := newFixture(t, s, func(*fixture) fakemodel.Script { return fakemodel.Script{} })
			at, token := v.daemon()
			v.useLoop(func(v *fixture, url string) *exec.Cmd { return urls[s.name](v, url, at, token) })
		})
	}
}

// daemon starts one that serves agents, and returns where and with which token.
func (v *fixture) daemon() (at, token string) {
	v.t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		v.t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	up := v.command("up", "--mcp", address)
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
	return "http://" + address + "/mcp", strings.TrimSpace(string(text))
}

// useLoop has a program create a loop, carry out one step of it, read it and stop it.
func (v *fixture) useLoop(ask func(v *fixture, url string) *exec.Cmd) {
	v.t.Helper()
	if _, errOut, exit := v.pawl("agent", "create", "@fixer", "--driver", "command", "--agent-command", "echo two >src/answer.txt"); exit != 0 {
		v.t.Fatal(errOut)
	}
	v.tell(ask, use("loop_create", map[string]any{"goal": "The value is two.", "agentId": "fixer", "workspace": v.root, "idempotency_key": "one"}))
	out, _, _ := v.pawl("spec", "list", "--json", "--jq", ".data[].id")
	id := strings.TrimSpace(out)
	if !strings.HasPrefix(id, "lp_") || strings.Contains(id, "\n") {
		v.t.Fatalf("after loop_create there are the loops %q\n%s", id, v.said())
	}
	this := map[string]any{"loopId": id, "workspace": v.root}
	heard := v.tell(ask, use("loop_run_step", this), use("loop_get", this), use("loop_stop", this))
	for _, want := range []string{"waiting_human", "pending", "paused"} {
		if !strings.Contains(heard, want) {
			v.t.Errorf("it did not hear %q:\n%s\n%s", want, heard, v.said())
		}
	}
	if out, _, _ := v.pawl("spec", "get", id, "--json", "--jq", ".status, (.iterations | length)"); out != "paused\n1\n" {
		v.t.Errorf("the loop is %q", out)
	}
}
