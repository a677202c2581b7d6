//go:build agents && linux

package agente2e_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// server is an MCP server with one tool, which leaves a trace of its start.
const server = `const fs = require("fs")
fs.appendFileSync("src/started", "x")
const tool = { name: "ask_canary", description: "asks the canary", inputSchema: { type: "object", properties: {} } }
let rest = ""
process.stdin.on("data", (part) => {
  const lines = (rest + part).split("\n")
  rest = lines.pop()
  for (const line of lines.filter((l) => l.trim())) {
    const m = JSON.parse(line)
    if (m.id === undefined) continue
    const say = (result) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id: m.id, result }) + "\n")
    if (m.method === "initialize") say({ protocolVersion: m.params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "canary", version: "1" } })
    else if (m.method === "tools/list") say({ tools: [tool] })
    else if (m.method === "tools/call") say({ content: [{ type: "text", text: "canary-of-the-server-7a7" }] })
    else say({})
  }
})
`

// able are the subjects that have a key, each with what its requests then hold.
var able = map[string]struct {
	model  string // that is asked, where the usual one does not think
	effort string // empty: the driver has no levels
	mcp    bool
}{
	"claude":             {model: "claude-opus-4-6", effort: `"effort":"high"`, mcp: true},
	"codex":              {model: "gpt-5-codex", effort: `"effort":"high"`, mcp: true},
	"gemini":             {effort: `"thinkingLevel":"HIGH"`},
	"opencode":           {effort: `"reasoning_effort":"high"`, mcp: true},
	"opencode anthropic": {model: "claude-opus-4-6", effort: `"effort":"high"`},
	"opencode gemini":    {effort: `"thinkingLevel":"high"`},
	"qwen":               {effort: `"reasoning_effort":"high"`},
	"goose":              {mcp: true},
	"api anthropic":      {effort: `"output_config":{"effort":"high"}`},
	"api openai":         {effort: `"reasoning_effort":"high"`},
	"api gemini":         {effort: `"thinkingLevel":"HIGH"`},
}

func TestEffortReachesTheModelOfEachAgentThatHasIt(t *testing.T) {
	t.Parallel()
	for _, s := range append(slices.Clone(subjects),
		subject{name: "opencode anthropic", agent: "opencode", keys: []string{"provider: anthropic"}},
		subject{name: "opencode gemini", agent: "opencode", model: "fake-1", keys: []string{"provider: gemini"}}) {
		a := able[s.name]
		if a.model != "" {
			s.model = a.model
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			v := newFixture(t, s, func(v *fixture) fakemodel.Script {
				return fakemodel.Script{Turns: []fakemodel.Turn{fakemodel.Write(filepath.Join(v.root, "src/answer.txt"), "two\n"), fakemodel.Say("The value is two now.")}}
			}, "effort: high")
			if a.effort == "" {
				v.refuses("effort: agent " + s.agent + " has no levels of effort")
				return
			}
			run, exit := v.run()
			if run.Outcome != loop.OutcomeProposed || exit != 0 {
				t.Fatalf("the run ended %s (%s), exit status %d: %s\n%s\n%s", run.Outcome, run.Reason, exit, run.Detail, v.logs(), v.said())
			}
			for _, e := range v.model.Turns() {
				if !strings.Contains(string(e.Body), a.effort) {
					t.Errorf("a request does not have %s:\n%.500s … %.500s", a.effort, e.Body, e.Body[max(0, len(e.Body)-500):])
				}
			}
		})
	}
}

func TestEachAgentThatTakesServersUsesThoseOfTheDefinition(t *testing.T) {
	t.Parallel()
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			v := newFixture(t, s, func(v *fixture) fakemodel.Script {
				return fakemodel.Script{Turns: []fakemodel.Turn{
					{Use: &fakemodel.Use{Intent: fakemodel.IntentTool, Name: "ask_canary", Input: []byte(`{}`)}},
					fakemodel.Write(filepath.Join(v.root, "src/answer.txt"), "two\n"), fakemodel.Say("The value is two now."),
				}}
			}, `mcp: ["canary=node server.js"]`)
			v.write("server.js", server)
			v.git("add", "-A")
			v.git("commit", "-q", "-m", "server")
			if !able[s.name].mcp {
				v.refuses("mcp: agent " + s.agent + " takes no MCP servers")
				return
			}
			run, exit := v.run()
			if run.Outcome != loop.OutcomeProposed || exit != 0 {
				t.Fatalf("the run ended %s (%s), exit status %d: %s\n%s\n%s", run.Outcome, run.Reason, exit, run.Detail, v.logs(), v.said())
			}
			turns := v.model.Turns()
			if len(turns) < 2 || !strings.Contains(string(turns[1].Body), "canary-of-the-server-7a7") {
				t.Errorf("what the server answered is not in the next request:\n%s", v.said())
			}
			if v.git("show", run.Branch+":src/started") == "" {
				t.Error("the server was not started in the tree")
			}
			if n := v.knocks.Load(); n != 0 {
				t.Errorf("another host was reached %d times", n)
			}
		})
	}
}

// refuses wants check and run to refuse the definition in these words.
func (v *fixture) refuses(words string) {
	v.t.Helper()
	for _, args := range [][]string{{"check", "fix"}, {"run", "fix"}} {
		out, errOut, exit := v.pawl(args...)
		if exit != loop.ExitNotReady || !strings.Contains(out+errOut, words) {
			v.t.Errorf("pawl %s: exit status %d, want %q\n%s\n%s", args[0], exit, words, out, errOut)
		}
	}
	if n := len(v.model.Log()); n != 0 {
		v.t.Errorf("the model was asked %d times", n)
	}
}
