package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
	"github.com/pawl-run/pawl/internal/test/agenttest"
)

func TestAnErrorIsOfTheClassThatItsFieldsOrItsWordsSay(t *testing.T) {
	for name, c := range map[string]struct {
		raw    string
		want   loop.FailureClass
		status int
		typed  bool
	}{
		"the protocol's own for signing in":   {`{"code":-32000,"message":"Authentication required"}`, loop.FailureAuth, 0, true},
		"a kind":                              {`{"code":-32603,"message":"API Error: Request rejected (429)","data":{"errorKind":"rate_limit"}}`, loop.FailureRateLimit, 429, true},
		"a kind that is too wide":             {`{"code":-32603,"message":"Prompt is too long","data":{"errorKind":"invalid_request"}}`, loop.FailureOverflow, 0, true},
		"another kind":                        {`{"code":-32603,"message":"x","data":{"errorKind":"server_error"}}`, loop.FailureServer, 0, true},
		"a name":                              {`{"code":-32603,"message":"x","data":{"errorName":"ContextOverflowError"}}`, loop.FailureOverflow, 0, true},
		"a name that says nothing":            {`{"code":-32603,"message":"x","data":{"errorName":"APIError"}}`, loop.FailureServer, 0, false},
		"a vendor's answer for a message":     {`{"code":401,"message":"{\"error\":{\"code\":401,\"message\":\"bad\",\"status\":\"UNAUTHENTICATED\"}}"}`, loop.FailureAuth, 401, false},
		"a status alone":                      {`{"code":-32603,"message":"it said 503"}`, loop.FailureServer, 503, false},
		"an account that is used up":          {`{"code":-32603,"message":"Quota exceeded. Check your plan"}`, loop.FailureQuota, 0, false},
		"a limit of the account, with a time": {`{"code":-32603,"message":"You've hit your usage limit"}`, loop.FailureRateLimit, 0, false},
		"parameters that it does not take":    {`{"code":-32602,"message":"Invalid params"}`, loop.FailureRequest, 0, false},
		"nothing that is known":               {`{"code":-32603,"message":"Internal error"}`, loop.FailureCrash, 0, false},
		"no error at all":                     {`"what"`, loop.FailureCrash, 0, false},
	} {
		f := failureOf(json.RawMessage(c.raw))
		if f.Class != c.want || f.Status != c.status || f.Typed != c.typed || f.Text == "" || strings.Contains(f.Text, "\n") {
			t.Errorf("%s: %+v, want %s, status %d, typed %v", name, f, c.want, c.status, c.typed)
		}
	}
}

func TestACallIsReadFromWhateverAProgramSaysOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		raw  string
		want policy.Call
	}{
		"an edit by its places": {
			`{"kind":"edit","name":"Write","title":"Write a","locations":[{"path":"/t/a"}],"content":[{"type":"diff","path":"/t/b"}],"rawInput":{"file_path":"/t/c"}}`,
			policy.Call{Kind: policy.CallEdit, Tool: "Write", Paths: []string{"/t/a", "/t/b", "/t/c"}, Detail: "Write a"},
		},
		"a move": {`{"kind":"move","rawInput":{"source":"a","destination":"../b"}}`, policy.Call{Kind: policy.CallEdit, Tool: "move", Paths: []string{"../b", "a"}}},
		"changes by path": {
			`{"kind":"edit","rawInput":{"changes":{"b":{},"a":{}}}}`, policy.Call{Kind: policy.CallEdit, Tool: "edit", Paths: []string{"a", "b"}},
		},
		"an edit of nothing":    {`{"kind":"edit"}`, policy.Call{Kind: policy.CallEdit, Tool: "edit"}},
		"a line for a shell":    {`{"kind":"execute","title":"x","rawInput":{"command":"a b"}}`, policy.Call{Kind: policy.CallRun, Tool: "execute", Command: "a b", Detail: "x"}},
		"a program":             {`{"kind":"execute","rawInput":{"command":["a","b c"]}}`, policy.Call{Kind: policy.CallRun, Tool: "execute", Argv: []string{"a", "b c"}}},
		"a command for a title": {`{"kind":"execute","title":"a b"}`, policy.Call{Kind: policy.CallRun, Tool: "execute", Command: "a b", Detail: "a b"}},
		"a fetch": {
			`{"kind":"fetch","rawInput":{"url":"https://x.example:8443/y"}}`,
			policy.Call{Kind: policy.CallFetch, Tool: "fetch", Host: "x.example:8443", Detail: "https://x.example:8443/y"},
		},
		"a search of the web":             {`{"kind":"fetch","rawInput":{"query":"x"}}`, policy.Call{Kind: policy.CallFetch, Tool: "fetch", Detail: "x"}},
		"a shell by its name alone":       {`{"kind":"other","title":"shell","rawInput":{"command":"ls"}}`, policy.Call{Kind: policy.CallRun, Tool: "shell", Command: "ls", Detail: "shell"}},
		"a tool that nobody knows":        {`{"kind":"other","name":"mcp__x__y","rawInput":{"command":"ls"}}`, policy.Call{Kind: policy.CallOther, Tool: "mcp__x__y"}},
		"a kind that nobody knows":        {`{"kind":"launch","name":"z"}`, policy.Call{Kind: policy.CallOther, Tool: "z"}},
		"fields of kinds that are others": {`{"kind":7,"title":[],"rawInput":"x","locations":{},"content":3}`, policy.Call{Kind: policy.CallOther}},
	} {
		var u tool
		if err := json.Unmarshal([]byte(c.raw), &u); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, callOf(u)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAProgramIsRecognisedInTheCommandThatStartsIt(t *testing.T) {
	for command, want := range map[string]string{
		"gemini --acp": "gemini", "/usr/local/bin/goose acp": "goose", "npx -y @agentclientprotocol/codex-acp@2.6.0": "codex-acp",
		"env A=b opencode acp": "opencode", `"/x y/claude-agent-acp"`: "claude-agent-acp", "my-agent --gemini": "", "": "",
	} {
		if p, ok := programOf(command); p.name != want || ok != (want != "") {
			t.Errorf("%q is %q, want %q", command, p.name, want)
		}
	}
}

func TestEachTriedProgramIsPointedAtTheEndpointAndAtNothingElse(t *testing.T) {
	const url, key = "http://127.0.0.1:3129", "not-a-key"
	for _, p := range programs {
		home := agenttest.Folder{Dir: t.TempDir()}
		provider := anthropic
		if len(p.providers) > 0 {
			provider = p.providers[0]
		}
		s, err := p.writeSetup(agent.Request{Model: "model-1", Home: home, Models: agent.Endpoint{URL: url, Key: key, Provider: provider}})
		if err != nil {
			t.Fatal(err)
		}
		told := slices.Concat(s.variables, s.args)
		for name := range s.files {
			text, err := home.Read(name)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), key) {
				t.Errorf("%s: the key stands in %s", p.name, name)
			}
			told = append(told, string(text))
		}
		said := strings.Join(told, "\n")
		if !strings.Contains(said, url) || !strings.Contains(said, key) || !strings.Contains(said, "model-1") {
			t.Errorf("%s is not told endpoint, key and model: %s", p.name, said)
		}
	}
}

func TestTheVendorsToolsAreSwitchedOffInProgramsThatHaveASwitch(t *testing.T) {
	for name, want := range map[string][2]string{
		"gemini":    {`"exclude":["google_web_search","web_fetch"]`, `"exclude":["web_fetch"]`},
		"codex-acp": {`web_search = "disabled"`, `web_search = "live"`},
	} {
		p, _ := programOf(name)
		for i, tools := range [][]loop.ModelTool{nil, {loop.ToolWebSearch}} {
			home := agenttest.Folder{Dir: t.TempDir()}
			s, err := p.writeSetup(agent.Request{Home: home, Tools: tools})
			if err != nil {
				t.Fatal(err)
			}
			for file := range s.files {
				if text, err := home.Read(file); err != nil || !strings.Contains(string(text), want[i]) {
					t.Errorf("%s with %v: want %s in %s (%v)", name, tools, want[i], text, err)
				}
			}
		}
	}
}

func TestProgramsThatWouldStartThemselvesASecondTimeAreToldNotTo(t *testing.T) {
	for name, want := range map[string]string{"gemini": "GEMINI_CLI_NO_RELAUNCH=true", "qwen": "QWEN_CODE_NO_RELAUNCH=true"} {
		p, _ := programOf(name)
		s, err := p.writeSetup(agent.Request{Home: agenttest.Folder{Dir: t.TempDir()}})
		if err != nil || !slices.Contains(s.variables, want) {
			t.Errorf("%s is started with %v, want %s (%v)", name, s.variables, want, err)
		}
	}
}

func TestQwenCodeReadsNoConversationAgainForAMemory(t *testing.T) {
	p, _ := programOf("qwen")
	home := agenttest.Folder{Dir: t.TempDir()}
	if _, err := p.writeSetup(agent.Request{Home: home}); err != nil {
		t.Fatal(err)
	}
	text, err := home.Read(".qwen/settings.json")
	if err != nil || !strings.Contains(string(text), `"memory":{"enableManagedAutoDream":false,"enableManagedAutoMemory":false}`) {
		t.Errorf("its settings are %s (%v)", text, err)
	}
}

func TestAProgramThatCannotUseTheEndpointIsNotStarted(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		models  agent.Endpoint
		model   string
		fault   bool
	}{
		"another provider":                   {"gemini --acp", agent.Endpoint{URL: "http://h", Provider: openai}, "m", true},
		"its own provider":                   {"gemini --acp", agent.Endpoint{URL: "http://h", Provider: gemini}, "", false},
		"a login of its own":                 {"codex-acp", agent.Endpoint{}, "", false},
		"no model where there is no default": {"opencode acp", agent.Endpoint{URL: "http://h", Provider: openai}, "", true},
		"a program that nobody knows":        {"x", agent.Endpoint{URL: "http://h", Provider: gemini}, "", false},
	} {
		p, _ := programOf(c.command)
		_, err := p.writeSetup(agent.Request{Model: c.model, Home: agenttest.Folder{Dir: t.TempDir()}, Models: c.models})
		var fault *loop.Fault
		if got := errors.As(err, &fault); got != c.fault {
			t.Errorf("%s: %v, want a fault %v", name, err, c.fault)
		} else if got && (fault.Fix == "" || fault.Why == "") {
			t.Errorf("%s: %+v says no fix", name, fault)
		}
	}
	if _, err := (Driver{}).Turn(t.Context(), agent.Request{}); err == nil {
		t.Error("a turn without a program is started")
	}
}

func TestSettingsHoldWhateverAModelIsCalled(t *testing.T) {
	evil := "m\"\n[model_providers.evil]\nbase_url = \"http://evil\" #"
	home := agenttest.Folder{Dir: t.TempDir()}
	p, _ := programOf("codex-acp")
	if _, err := p.writeSetup(agent.Request{Model: evil, Home: home, Models: agent.Endpoint{URL: "http://h", Provider: openai}}); err != nil {
		t.Fatal(err)
	}
	text, err := home.Read(".codex/config.toml")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if strings.HasPrefix(line, "[model_providers.evil") || strings.HasPrefix(line, "base_url") && strings.Contains(line, "evil") {
			t.Errorf("the model's name writes a line of its own: %s", line)
		}
	}
}

func TestTokensThatAreNoCountsAreNotTakenForAny(t *testing.T) {
	for raw, want := range map[string]loop.Usage{
		`{"inputTokens":100,"outputTokens":5,"totalTokens":105}`:                                              {Input: 100, Output: 5},
		`{"inputTokens":100,"outputTokens":5,"cachedReadTokens":80,"totalTokens":105}`:                        {Input: 20, Output: 5, CacheRead: 80},
		`{"inputTokens":100,"outputTokens":5,"cachedReadTokens":80,"cachedWriteTokens":10,"totalTokens":195}`: {Input: 100, Output: 5, CacheRead: 80, CacheWrite: 10},
		`{"input_tokens":7,"output_tokens":8}`:                                                                {Input: 7, Output: 8},
		`{"inputTokens":-1,"outputTokens":5}`:                                                                 {},
		`{"inputTokens":1e309,"outputTokens":5}`:                                                              {},
		`{"inputTokens":9223372036854775808,"outputTokens":5}`:                                                {},
		`{"inputTokens":"NaN","outputTokens":5}`:                                                              {},
		`{"totalTokens":258400,"inputTokens":0,"outputTokens":0}`:                                             {},
		`null`: {},
	} {
		var c tokens
		if err := json.Unmarshal([]byte(raw), &c); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
		u, ok := c.toUsage()
		u.Source = ""
		if !ok {
			u = loop.Usage{}
		}
		if u != want || ok == want.Zero() {
			t.Errorf("%s is %+v, %v; want %+v", raw, u, ok, want)
		}
	}
}

func FuzzWhateverAProgramSaysIsReadWithoutHarm(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.wire"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var said [][]byte
		for line := range bytes.Lines(text) {
			if line[0] == '<' {
				said = append(said, line[2:])
			}
		}
		f.Add(bytes.Join(said, nil))
	}
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}` + "\n" + `{"id":2,"result":{"sessionId":"s"}}` + "\n" +
		`{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed"}}}` + "\n" +
		`{"id":{},"method":"session/request_permission","params":{"options":[{"optionId":"a","kind":"allow_always"}],"toolCall":{"content":[{"content":{"content":{}}}]}}}`))
	f.Fuzz(func(t *testing.T, said []byte) {
		for _, p := range []program{{}, {hasNotices: true, errorPrefix: "Ran into this error: ", lastOnly: true}} {
			var turn agenttest.Turn
			in := new(agent.Input)
			d := newDecoder(agent.Request{Keep: true, Output: &bytes.Buffer{}}, in, func(c policy.Call) policy.Answer { return policy.Guard{}.Judge(c) })
			d.program = p
			d.sendInitialize()
			over := false
			for line := range bytes.SplitSeq(said, []byte("\n")) {
				events, _ := d.DecodeLine(bytes.Clone(line))
				for _, e := range events {
					if !over {
						turn.Events = append(turn.Events, e)
					}
					over = over || e.Kind == agent.EventEnd
				}
			}
			turn.Result = agent.Result{Usage: loop.Usage{Input: 1, Source: loop.UsageEstimated}, Message: "-"}
			d.Finish(&turn.Result, "")
			agenttest.CheckTurn(t, turn)
			_ = in.Close()
			told, err := readAll(in)
			if err != nil {
				t.Fatal(err)
			}
			for line := range bytes.SplitSeq(bytes.TrimSpace(told), []byte("\n")) {
				var m message
				if json.Unmarshal(line, &m) != nil || m.Version != "2.0" {
					t.Errorf("the program is told %q", line)
				}
			}
		}
	})
}

func readAll(in *agent.Input) ([]byte, error) {
	var all bytes.Buffer
	_, err := all.ReadFrom(in)
	return all.Bytes(), err
}

func TestATurnThatPawlEndedIsNoFailureOfTheProgramThatSaysItWasCancelled(t *testing.T) {
	for ended, failed := range map[proc.Ended]bool{proc.TimedOut: false, proc.Canceled: false, proc.Limited: false, proc.Exited: true, proc.Signaled: true} {
		d := newDecoder(agent.Request{Output: &bytes.Buffer{}}, new(agent.Input), nil)
		r := agent.Result{Ended: ended, Message: "-", Failure: &loop.Failure{Class: loop.FailureMalformed, Text: canceledElsewhere}}
		if d.Finish(&r, ""); (r.Failure != nil) != failed {
			t.Errorf("ended by %s: the failure is %+v", ended, r.Failure)
		}
	}
}
