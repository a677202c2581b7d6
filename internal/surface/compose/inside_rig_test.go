package compose_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/verbs/roster"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// scriptedAgent is the argument with which this binary plays Claude Code: it calls the tools that a
// file of the tree names, and writes down what it heard.
const scriptedAgent = "__scripted-agent"

// Files of the scripted agent, in the tree.
const (
	planFile   = "src/plan.json"
	heardFile  = "src/heard.json"
	seenInFull = "/run/pawl/bin/pawl" // this binary in a sandbox with a root of its own
)

// step is a call of a tool. An argument $ID is the id of the loop that was made last.
type step struct {
	Tool string         `json:"tool"`
	Args map[string]any `json:"args"`
}

// heard is the answer of a call: ok, the code of its error, or why there was none.
type heard struct {
	Tool    string          `json:"tool"`
	Outcome string          `json:"outcome"`
	Text    string          `json:"text"`
	Result  json.RawMessage `json:"result,omitempty"`
}

// playAgent takes the turn of the scripted agent.
func playAgent(ctx context.Context, args []string) error {
	if _, err := bufio.NewReader(os.Stdin).ReadBytes('\n'); err != nil { // The prompt.
		return err
	}
	var servers struct {
		All map[string]struct {
			Command string   `json:"command"`
			Args    []string `json:"args"`
		} `json:"mcpServers"`
	}
	for _, a := range args {
		if text, ok := strings.CutPrefix(a, "--mcp-config="); ok {
			if err := json.Unmarshal([]byte(text), &servers); err != nil {
				return err
			}
		}
	}
	var plan []step
	text, err := os.ReadFile(planFile)
	if err == nil {
		err = json.Unmarshal(text, &plan)
	}
	if err != nil {
		return err
	}
	pawl, ok := servers.All["pawl"]
	if !ok {
		return os.WriteFile(heardFile, []byte(`[{"tool":"","outcome":"no server"}]`), 0o644)
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "scripted", Version: "1"}, nil)
	session, err := client.Connect(ctx, &sdk.CommandTransport{Command: exec.CommandContext(ctx, pawl.Command, pawl.Args...)}, nil)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer session.Close()
	var all []heard
	id := ""
	for _, s := range plan {
		for name, v := range s.Args {
			if v == "$ID" {
				s.Args[name] = id
			}
		}
		h := heard{Tool: s.Tool, Outcome: "ok"}
		res, err := session.CallTool(ctx, &sdk.CallToolParams{Name: s.Tool, Arguments: s.Args})
		if err != nil {
			h.Outcome, h.Text = "no such tool", err.Error()
			all = append(all, h)
			continue
		}
		h.Result, _ = json.Marshal(res.StructuredContent)
		var said struct {
			Spec struct {
				ID string `json:"id"`
			} `json:"spec"`
			Error struct{ Code, Message, Why string } `json:"error"`
		}
		if err := json.Unmarshal(h.Result, &said); err != nil {
			return err
		}
		if res.IsError {
			h.Outcome, h.Text = said.Error.Code, said.Error.Message+": "+said.Error.Why
		} else if s.Tool == "loop_create" {
			id = said.Spec.ID
		}
		all = append(all, h)
	}
	body, err := json.Marshal(all)
	if err == nil {
		err = os.WriteFile(heardFile, body, 0o644)
	}
	fmt.Println(`{"type":"system","subtype":"init","session_id":"s","tools":[],"model":"claude-haiku-4-5"}`)
	fmt.Println(`{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"Done.","session_id":"s","total_cost_usd":0,"usage":{"input_tokens":10,"output_tokens":5},"modelUsage":{}}`)
	return err
}

// playPart takes the turn of the scripted agent, or joins it to pawl's tools, if this process was
// started for that.
func playPart(ctx context.Context, args []string) (status int, ran bool) {
	if status, ran := compose.RunToolRelay(ctx, args, os.Stdin, os.Stdout, os.Stderr); ran {
		return status, true
	}
	if len(args) == 0 || args[0] != scriptedAgent {
		return 0, false
	}
	if err := playAgent(ctx, args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// hosting is a workspace whose agent has pawl's own tools, and does what the plan says.
func hosting(t *testing.T, tier string, plan []step, keys ...string) *victim {
	t.Helper()
	body, err := json.Marshal(plan)
	must(t, err)
	program := seenInFull
	if tier != full {
		program, err = os.Executable()
		must(t, err)
	}
	environ := keyless("ANTHROPIC_API_KEY=sk-nobody-asks", "ANTHROPIC_BASE_URL=http://127.0.0.1:9")
	script := "'" + program + "' " + scriptedAgent + ` "$@"`
	v := attackedIn(t, environ, "true", map[string]string{planFile: string(body), "agent.sh": obedient(script)},
		append([]string{"sandbox", tier, "agent", "claude", "agent_command", "sh agent.sh", "model", "claude-haiku-4-5", "pawl_tools", "post"}, keys...)...)
	v.environ = environ
	driver, command := "command", "echo two >src/a.txt"
	_, err = v.d.Roster().Create(t.Context(), "fixer", roster.Change{Driver: &driver, Command: &command})
	must(t, err)
	return v
}

// heardIn is what the agent heard in a run that proposed its work.
func (v *victim) heardIn(run runs.View) (all []heard) {
	v.t.Helper()
	if run.Branch == "" {
		v.t.Fatalf("run = %s %s %q", run.Outcome, run.Reason, run.Detail)
	}
	must(v.t, json.Unmarshal([]byte(v.git("show", run.Branch+":"+heardFile)), &all))
	return all
}
