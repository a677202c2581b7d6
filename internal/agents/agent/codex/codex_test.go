package codex_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/agent/codex"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
	"github.com/pawl-run/pawl/internal/test/agenttest"
)

func TestRecordedTurnsAreReadAsDrawn(t *testing.T) {
	agenttest.Replay(t, codex.Driver{})
}

// sequence runs one recording after the other.
type sequence struct {
	all  []*agenttest.Recording
	runs int
}

func (s *sequence) Run(ctx context.Context, spec proc.Spec) (proc.Result, error) {
	s.runs++
	return s.all[s.runs-1].Run(ctx, spec)
}

type object = map[string]any

// said are the lines that the program was told.
func said(t *testing.T, p *agenttest.Recording) []object {
	t.Helper()
	var all []object
	for line := range strings.Lines(p.Input()) {
		var m object
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("the program was told %q: %v", line, err)
		}
		all = append(all, m)
	}
	return all
}

const (
	thread = "00000000-0000-4000-8000-000000000002"
	turnID = "00000000-0000-4000-8000-000000000003"
)

func TestATurnIsBegunSoThatItAsks(t *testing.T) {
	p := agenttest.NewRecording(t, "ok", 0)
	r := agenttest.NewRequest(t, p)
	agenttest.TakeTurn(t, codex.Driver{}, r)
	want := []object{
		{"id": 1.0, "method": "initialize", "params": object{"clientInfo": object{"name": "pawl", "title": "pawl", "version": "1"}}},
		{"method": "initialized"},
		{"id": 2.0, "method": "thread/start", "params": object{
			"cwd": r.Dir, "approvalPolicy": "untrusted", "sandbox": "danger-full-access", "model": "model-1", "modelProvider": "pawl", "ephemeral": true,
		}},
		{"id": 3.0, "method": "turn/start", "params": object{
			"threadId": thread, "input": []any{object{"type": "text", "text": "Repair what is broken.\n"}},
		}},
		{"id": 0.0, "result": object{"decision": "accept"}},
		{"id": 1.0, "result": object{"decision": "accept"}},
	}
	if diff := cmp.Diff(want, said(t, p)); diff != "" {
		t.Errorf("what it was told differs (-want +got):\n%s", diff)
	}
	if argv := p.Spec().Argv; !slices.Equal(argv, []string{"codex", "app-server"}) {
		t.Errorf("argv = %q", argv)
	}
	for name, want := range map[string]string{"HOME": r.Home.Path(), "CODEX_HOME": r.Home.Path() + "/.codex", "PAWL_MODEL_KEY": "pawl"} {
		if got := proc.LookupVariable(p.Spec().Env, name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
}

func TestEachQuestionIsJudgedOnAllThatItAsks(t *testing.T) {
	for name, c := range map[string]struct {
		answer policy.Answer
		want   []object
		asks   []agent.Ask
	}{
		"allowed, for this once": {
			policy.Answer{Allow: true},
			[]object{{"id": 0.0, "result": object{"decision": "accept"}}, {"id": 1.0, "result": object{"decision": "accept"}}},
			nil,
		},
		"denied": {
			policy.Answer{},
			[]object{{"id": 0.0, "result": object{"decision": "decline"}}, {"id": 1.0, "result": object{"decision": "decline"}}},
			nil,
		},
		"left to a human, with words that come before the answer": {
			policy.Answer{Ask: true, Words: "recorded as approval 7, end your turn"},
			[]object{
				{"id": 4.0, "method": "turn/steer", "params": object{
					"threadId": thread, "expectedTurnId": turnID,
					"input": []any{object{"type": "text", "text": "What you asked leave for was not done: recorded as approval 7, end your turn"}},
				}},
				{"id": 0.0, "result": object{"decision": "decline"}},
				{"id": 5.0, "method": "turn/steer", "params": object{
					"threadId": thread, "expectedTurnId": turnID,
					"input": []any{object{"type": "text", "text": "What you asked leave for was not done: recorded as approval 7, end your turn"}},
				}},
				{"id": 1.0, "result": object{"decision": "decline"}},
			},
			[]agent.Ask{{Argv: []string{"/bin/bash", "-lc", "ls"}, Why: "commandExecution ls"}, {Why: "fileChange /tree/a.txt"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := agenttest.NewRecording(t, "denied", 0)
			r := agenttest.NewRequest(t, p)
			var judged []policy.Call
			r.Judge = func(_ context.Context, call policy.Call) policy.Answer {
				judged = append(judged, call)
				return c.answer
			}
			turn := agenttest.TakeTurn(t, codex.Driver{}, r)
			agenttest.CheckTurn(t, turn)
			if diff := cmp.Diff(c.want, said(t, p)[4:]); diff != "" {
				t.Errorf("the answers differ (-want +got):\n%s", diff)
			}
			want := []policy.Call{
				{Kind: policy.CallRun, Tool: "commandExecution", Command: "ls"},
				{Kind: policy.CallEdit, Tool: "fileChange", Paths: []string{"/tree/a.txt"}},
			}
			if diff := cmp.Diff(want, judged); diff != "" {
				t.Errorf("what was judged differs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.asks, turn.Result.Asks); diff != "" {
				t.Errorf("what a human is asked differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAQuestionThatNobodyKnowsIsAnsweredAllTheSame(t *testing.T) {
	p := &agenttest.Recording{Stdout: []byte(`{"id":"a","method":"item/tool/requestUserInput","params":{}}` + "\n" +
		`{"id":7,"method":"item/permissions/requestApproval","params":{"permissions":{"network":{"enabled":true}}}}` + "\n")}
	r := agenttest.NewRequest(t, p)
	r.Judge = func(context.Context, policy.Call) policy.Answer {
		t.Error("neither is for a policy")
		return policy.Answer{Allow: true}
	}
	agenttest.TakeTurn(t, codex.Driver{}, r)
	want := []object{
		{"id": "a", "error": object{"code": -32601.0, "message": "pawl does not do item/tool/requestUserInput"}},
		{"id": 7.0, "result": object{"permissions": object{}, "scope": "turn"}},
	}
	if diff := cmp.Diff(want, said(t, p)[3:]); diff != "" {
		t.Errorf("the answers differ (-want +got):\n%s", diff)
	}
}

func TestTurnsOfAConversationAreCountedApart(t *testing.T) {
	var session *loop.Session
	for i, recording := range []string{"session/resume-first", "session/resume-second", "session/resume-third"} {
		r := agenttest.NewRequest(t, agenttest.NewRecording(t, recording, 0))
		r.Keep, r.Session = true, session
		turn := agenttest.TakeTurn(t, codex.Driver{}, r)
		agenttest.CheckTurn(t, turn)
		// The model was scripted to say that each call has 1000 tokens in and 50 out,
		// and the program's own counters say one, two and three times that.
		one := loop.Usage{Input: 1000, Output: 50, Source: loop.UsageReported}
		if turn.Result.Usage != one || len(turn.Result.Models) != 1 || turn.Result.Models[0].Usage != one {
			t.Errorf("turn %d used %+v of %+v, want %+v", i+1, turn.Result.Usage, turn.Result.Models, one)
		}
		session = turn.Result.Session
		if session == nil || session.Turns != i+1 || session.Totals[0].Input != int64(1000*(i+1)) {
			t.Fatalf("after turn %d the session is %+v", i+1, session)
		}
	}
}

func TestTheCountersOfAConversationAreThoseThatTheProgramTellsFirst(t *testing.T) {
	r := agenttest.NewRequest(t, agenttest.NewRecording(t, "session/resume-third", 0))
	r.Keep, r.Session = true, &loop.Session{ID: "00000000-0000-4000-8000-000000000002", Turns: 2} // Its totals were never known.
	turn := agenttest.TakeTurn(t, codex.Driver{}, r)
	if turn.Result.Usage.Input != 1000 || turn.Result.Usage.Output != 50 {
		t.Errorf("usage = %+v, want that of the third call alone", turn.Result.Usage)
	}
}

func TestAConversationThatIsGoneIsBegunAnew(t *testing.T) {
	s := &sequence{all: []*agenttest.Recording{agenttest.NewRecording(t, "session/lost", 0), agenttest.NewRecording(t, "session/anew", 0)}}
	r := agenttest.NewRequest(t, s)
	r.Keep, r.Session = true, &loop.Session{ID: "00000000-0000-4000-8000-000000000009", Turns: 3}
	turn := agenttest.TakeTurn(t, codex.Driver{}, r)
	agenttest.CheckTurn(t, turn)
	if s.runs != 2 || turn.Result.Failure != nil || turn.Result.Session.Turns != 1 || turn.Events[0].Kind != agent.EventRetry {
		t.Errorf("after %d runs the result is %+v", s.runs, turn.Result)
	}
	resume, start := said(t, s.all[0])[2], said(t, s.all[1])[2]
	if params, _ := resume["params"].(object); resume["method"] != "thread/resume" || params["threadId"] != r.Session.ID || params["sandbox"] != "danger-full-access" {
		t.Errorf("it was asked first for %v", resume)
	}
	if params, _ := start["params"].(object); start["method"] != "thread/start" || params["ephemeral"] != false {
		t.Errorf("it was asked then for %v", start)
	}
}

func TestAnOlderCodexTakesNoTurnAndSaysWhatIsNeeded(t *testing.T) {
	refuses := func(id string) *agenttest.Recording {
		return &agenttest.Recording{Stdout: []byte(`{"id":` + id + `,"error":{"code":-32601,"message":"unknown method"}}` + "\n")}
	}
	for name, p := range map[string]*agenttest.Recording{
		"it has no app-server":         {Exit: 2, Stderr: []byte("error: unrecognized subcommand 'app-server'\n")},
		"it cannot be greeted":         refuses("1"),
		"it knows no conversations":    refuses("2"),
		"it ends and does not say why": {Exit: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sequence{all: []*agenttest.Recording{p}}
			turn := agenttest.TakeTurn(t, codex.Driver{}, agenttest.NewRequest(t, s))
			agenttest.CheckTurn(t, turn)
			if f := turn.Result.Failure; s.runs != 1 || f == nil || !strings.Contains(f.Text, "npm install -g @openai/codex") {
				t.Errorf("after %d runs the failure is %+v, want what to install", s.runs, f)
			}
		})
	}
}

func TestAProgramThatIsNotThereIsTriedOnce(t *testing.T) {
	s := &sequence{all: []*agenttest.Recording{agenttest.NewRecording(t, "missing", 127)}}
	if turn := agenttest.TakeTurn(t, codex.Driver{}, agenttest.NewRequest(t, s)); s.runs != 1 || turn.Result.Failure.Class != loop.FailureCrash {
		t.Errorf("after %d runs the result is %+v", s.runs, turn.Result)
	}
}

func TestTheVendorsToolsAreSwitchedOnByTheDefinitionOnly(t *testing.T) {
	for want, tools := range map[string][]loop.ModelTool{
		`web_search = "disabled"`:  nil,
		`web_search = "live"`:      {loop.ToolWebSearch},
		"image_generation = false": {loop.ToolWebSearch},
		"image_generation = true":  {loop.ToolImages},
	} {
		r := agenttest.NewRequest(t, agenttest.NewRecording(t, "ok", 0))
		r.Tools = tools
		agenttest.TakeTurn(t, codex.Driver{}, r)
		text, err := r.Home.Read(".codex/config.toml")
		if err != nil || !strings.Contains(string(text), want+"\n") {
			t.Errorf("%v, %v: want %s in\n%s", tools, err, want, text)
		}
	}
}

func TestTheConfigurationIsPawlsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		models agent.Endpoint
		has    []string
		hasNot []string
	}{
		"with an endpoint": {
			agent.Endpoint{URL: "http://127.0.0.1:3129", Key: "pawl"},
			[]string{`model_provider = "pawl"`, `base_url = "http://127.0.0.1:3129/v1"`, `env_key = "PAWL_MODEL_KEY"`, `web_search = "disabled"`, "image_generation = false"},
			[]string{"approval_policy"},
		},
		"with a login of its own": {agent.Endpoint{}, []string{"check_for_update_on_startup = false", "plugins = false"}, []string{"model_provider", "PAWL_MODEL_KEY"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := agenttest.NewRecording(t, "ok", 0)
			r := agenttest.NewRequest(t, p)
			r.Models, r.Effort = c.models, "high"
			r.Servers = []loop.Server{{Name: "files", Command: "node x.js --a"}, {Name: "docs", URL: "https://mcp.example/v1"}}
			agenttest.TakeTurn(t, codex.Driver{}, r)
			text, err := r.Home.Read(".codex/config.toml")
			if err != nil {
				t.Fatal(err)
			}
			dir, err := json.Marshal(r.Dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range append(c.has, "model_reasoning_effort = \"high\"\n", "project_doc_max_bytes = 0\n",
				"[mcp_servers.files]\ndefault_tools_approval_mode = \"approve\"\ncommand = \"/bin/sh\"\nargs = [\"-c\",\"exec node x.js --a\"]\n",
				"[mcp_servers.docs]\ndefault_tools_approval_mode = \"approve\"\nurl = \"https://mcp.example/v1\"\n", "[projects."+string(dir)+"]\ntrust_level = \"untrusted\"\n") {
				if !strings.Contains(string(text), want) {
					t.Errorf("no %s in\n%s", want, text)
				}
			}
			for _, not := range c.hasNot {
				if strings.Contains(string(text), not) {
					t.Errorf("%s is in\n%s", not, text)
				}
			}
			if key := proc.LookupVariable(p.Spec().Env, "PAWL_MODEL_KEY"); key != c.models.Key {
				t.Errorf("the key is %q", key)
			}
		})
	}
}

func TestWhatToolsAndTheAgentSayIsNoFailure(t *testing.T) {
	const limit = "You've hit your usage limit. unexpected status 401, last status: 429, ran out of room in the model's context window"
	exec := agenttest.NewRecording(t, "ok", 0)
	text := strings.ReplaceAll(strings.ReplaceAll(string(exec.Stdout), `"aggregatedOutput":"hi\n"`, `"aggregatedOutput":"`+limit+`"`), "All done.", limit)
	exec.Stdout = []byte(text)
	turn := agenttest.TakeTurn(t, codex.Driver{}, agenttest.NewRequest(t, exec))
	if turn.Result.Failure != nil || turn.Result.Message != limit {
		t.Errorf("result = %+v, want no failure", turn.Result)
	}
}

func TestATurnThatRanOutOfTimeWhileItsAccountWasLimitedIsNoHang(t *testing.T) {
	p := agenttest.NewRecording(t, "long-retry", 0)
	p.Ended = proc.TimedOut
	turn := agenttest.TakeTurn(t, codex.Driver{}, agenttest.NewRequest(t, p))
	if f := turn.Result.Failure; f == nil || f.Class != loop.FailureRateLimit || f.Status != 429 || turn.Result.Ended != proc.TimedOut {
		t.Errorf("result = %+v, %+v", turn.Result, f)
	}
}

func TestAnErrorThatTheProgramDoesNotOvercomeExplainsItsEnd(t *testing.T) {
	stdout := agenttest.NewRecording(t, "unauthorized", 0).Stdout
	cut := strings.Index(string(stdout), `{"method":"turn/completed"`)
	turn := agenttest.TakeTurn(t, codex.Driver{}, agenttest.NewRequest(t, &agenttest.Recording{Stdout: stdout[:cut], Exit: 1}))
	if f := turn.Result.Failure; f == nil || f.Class != loop.FailureAuth || f.Status != 401 {
		t.Errorf("failure = %+v", f)
	}
}
