package claude_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/agent/claude"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
	"github.com/pawl-run/pawl/internal/test/agenttest"
)

func TestRecordedTurnsAreReadAsDrawn(t *testing.T) {
	agenttest.Replay(t, claude.Driver{})
}

// said are the lines that the program was told, after the prompt.
func said(t *testing.T, p *agenttest.Recording) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(p.Input()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("the program was told %q: %v", line, err)
		}
		all = append(all, m)
	}
	if len(all) == 0 || all[0]["type"] != "user" {
		t.Fatalf("the program was told %v, want the prompt first", all)
	}
	return all[1:]
}

// decisions are the answers to what the program asked leave for.
func decisions(t *testing.T, p *agenttest.Recording) []any {
	t.Helper()
	var all []any
	for _, m := range said(t, p) {
		response, _ := m["response"].(map[string]any)
		if m["type"] != "control_response" || response["subtype"] != "success" || response["request_id"] == "" {
			t.Fatalf("the program was told %v, want an answer", m)
		}
		all = append(all, response["response"])
	}
	return all
}

func TestEachQuestionIsAnsweredInTheProgramsWords(t *testing.T) {
	edit := map[string]any{"file_path": "/tree/a.txt", "content": "hello"}
	run := map[string]any{"command": "echo hi > b.txt && cat b.txt", "description": "stub command"}
	for name, c := range map[string]struct {
		answer policy.Answer
		want   []any
		asks   []agent.Ask
	}{
		"allowed, with the input as it was": {
			policy.Answer{Allow: true, Rule: "r"},
			[]any{map[string]any{"behavior": "allow", "updatedInput": edit}, map[string]any{"behavior": "allow", "updatedInput": run}},
			nil,
		},
		"denied, with the reason": {
			policy.Answer{Rule: "r", Words: "outside scope src/"},
			[]any{map[string]any{"behavior": "deny", "message": "outside scope src/"}, map[string]any{"behavior": "deny", "message": "outside scope src/"}},
			nil,
		},
		"denied without a reason": {
			policy.Answer{},
			[]any{map[string]any{"behavior": "deny", "message": "this is not allowed here"}, map[string]any{"behavior": "deny", "message": "this is not allowed here"}},
			nil,
		},
		"left to a human": {
			policy.Answer{Ask: true, Rule: "r", Words: "recorded as approval 7, end your turn"},
			[]any{
				map[string]any{"behavior": "deny", "message": "recorded as approval 7, end your turn"},
				map[string]any{"behavior": "deny", "message": "recorded as approval 7, end your turn"},
			},
			[]agent.Ask{{Why: "Write /tree/a.txt"}, {Argv: []string{"bash", "-c", "echo hi > b.txt && cat b.txt"}, Why: "Bash stub command"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := agenttest.NewRecording(t, "ok", 0)
			r := agenttest.NewRequest(t, p)
			var judged []policy.Call
			r.Judge = func(_ context.Context, call policy.Call) policy.Answer {
				judged = append(judged, call)
				return c.answer
			}
			turn := agenttest.TakeTurn(t, claude.Driver{}, r)
			agenttest.CheckTurn(t, turn)
			if diff := cmp.Diff(c.want, decisions(t, p)); diff != "" {
				t.Errorf("the answers differ (-want +got):\n%s", diff)
			}
			want := []policy.Call{
				{Kind: policy.CallEdit, Tool: "Write", Paths: []string{"/tree/a.txt"}},
				{Kind: policy.CallRun, Tool: "Bash", Command: "echo hi > b.txt && cat b.txt", Detail: "stub command"},
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
	p := &agenttest.Recording{Stdout: []byte(
		`{"type":"control_request","request_id":"q1","request":{"subtype":"hook_callback"}}` + "\n" +
			`{"type":"control_request","request_id":"q2","request":{"subtype":"can_use_tool","tool_name":"New","input":{"a": 1}}}` + "\n" +
			`{"type":"control_request","request_id":"q3","request":{"subtype":"can_use_tool"}}` + "\n")}
	r := agenttest.NewRequest(t, p)
	var judged []policy.Call
	r.Judge = func(_ context.Context, call policy.Call) policy.Answer {
		judged = append(judged, call)
		return policy.Answer{Allow: true}
	}
	agenttest.TakeTurn(t, claude.Driver{}, r)
	want := []map[string]any{
		{"type": "control_response", "response": map[string]any{"subtype": "error", "request_id": "q1", "error": "pawl does not do hook_callback"}},
		{"type": "control_response", "response": map[string]any{
			"subtype": "success", "request_id": "q2", "response": map[string]any{"behavior": "allow", "updatedInput": map[string]any{"a": 1.0}},
		}},
		{"type": "control_response", "response": map[string]any{
			"subtype": "success", "request_id": "q3", "response": map[string]any{"behavior": "allow", "updatedInput": map[string]any{}},
		}},
	}
	if diff := cmp.Diff(want, said(t, p)); diff != "" {
		t.Errorf("the answers differ (-want +got):\n%s", diff)
	}
	calls := []policy.Call{{Kind: policy.CallOther, Tool: "New", Detail: `{"a":1}`}, {Kind: policy.CallOther}}
	if diff := cmp.Diff(calls, judged); diff != "" {
		t.Errorf("what was judged differs (-want +got):\n%s", diff)
	}
}

func TestNobodyIsAskedBeyondTheTimeOfTheTurn(t *testing.T) {
	r := agenttest.NewRequest(t, agenttest.NewRecording(t, "ok", 0))
	r.Timeout = 50 * time.Millisecond
	r.Judge = func(ctx context.Context, _ policy.Call) policy.Answer {
		<-ctx.Done()
		return policy.Answer{Words: "nobody answered"}
	}
	turn := agenttest.TakeTurn(t, claude.Driver{}, r)
	if i := slices.IndexFunc(turn.Events, func(e agent.Event) bool { return e.Answer.Words == "nobody answered" }); i < 0 {
		t.Errorf("events = %+v, want the question to end", turn.Events)
	}
}

func TestTurnsOfAConversationAreCountedApart(t *testing.T) {
	var session *loop.Session
	for i, name := range []string{"session/resume-first", "session/resume-second", "session/resume-third"} {
		p := agenttest.NewRecording(t, name, 0)
		r := agenttest.NewRequest(t, p)
		r.Keep, r.Session = true, session
		turn := agenttest.TakeTurn(t, claude.Driver{}, r)
		agenttest.CheckTurn(t, turn)
		// The model was scripted to say that each call has 1000 tokens in and 50 out,
		// and the program's own counters say one, two and three times that.
		one := loop.Usage{Input: 1000, Output: 50, Source: loop.UsageReported}
		if turn.Result.Usage != one || len(turn.Result.Models) != 1 || turn.Result.Models[0].Usage != one {
			t.Errorf("turn %d used %+v of %+v, want %+v", i+1, turn.Result.Usage, turn.Result.Models, one)
		}
		var told loop.Usage
		for _, e := range turn.Events {
			told = told.Add(e.Usage)
		}
		if told.Input != 1000 || told.Output != 50 {
			t.Errorf("turn %d told of %+v live", i+1, told)
		}
		resumes := slices.ContainsFunc(p.Spec().Argv, func(a string) bool { return strings.HasPrefix(a, "--resume=") })
		if resumes != (session != nil) || slices.Contains(p.Spec().Argv, "--no-session-persistence") {
			t.Errorf("turn %d was started with %q", i+1, p.Spec().Argv)
		}
		session = turn.Result.Session
		if session == nil || session.Turns != i+1 || session.Totals[0].Input != int64(1000*(i+1)) {
			t.Fatalf("after turn %d the session is %+v", i+1, session)
		}
	}
}

func TestATurnThatWasCutLeavesTheCountersOfTheOneBefore(t *testing.T) {
	r := agenttest.NewRequest(t, agenttest.NewRecording(t, "killed", 137))
	totals := []loop.ModelUsage{{Model: "claude-opus-5-5", Usage: loop.Usage{Input: 5000, Output: 500}}}
	r.Keep, r.Session = true, &loop.Session{ID: "00000000-0000-4000-8000-000000000001", Totals: totals, Turns: 4}
	turn := agenttest.TakeTurn(t, claude.Driver{}, r)
	want := &loop.Session{ID: "00000000-0000-4000-8000-000000000001", Totals: totals, Turns: 5}
	if diff := cmp.Diff(want, turn.Result.Session); diff != "" {
		t.Errorf("the session differs (-want +got):\n%s", diff)
	}
	if got := turn.Result.Usage; got != (loop.Usage{Input: 2100, Output: 101, Source: loop.UsageEstimated}) {
		t.Errorf("usage = %+v, want both calls that were seen", got)
	}
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

func TestAConversationThatIsGoneIsBegunAnew(t *testing.T) {
	s := &sequence{all: []*agenttest.Recording{agenttest.NewRecording(t, "session/lost", 1), agenttest.NewRecording(t, "session/resume-first", 0)}}
	r := agenttest.NewRequest(t, s)
	r.Keep, r.Session = true, &loop.Session{ID: "00000000-0000-4000-8000-000000000000", Turns: 3}
	turn := agenttest.TakeTurn(t, claude.Driver{}, r)
	agenttest.CheckTurn(t, turn)
	if s.runs != 2 || turn.Result.Failure != nil || turn.Result.Session.Turns != 1 || turn.Result.Session.ID == r.Session.ID {
		t.Errorf("after %d runs the result is %+v, want a conversation of its own", s.runs, turn.Result)
	}
	if turn.Events[0].Kind != agent.EventRetry || slices.ContainsFunc(s.all[1].Spec().Argv, func(a string) bool { return strings.HasPrefix(a, "--resume") }) {
		t.Errorf("events %+v, then %q", turn.Events[0], s.all[1].Spec().Argv)
	}
}

func TestTheProgramIsStartedSoThatItAsks(t *testing.T) {
	p := agenttest.NewRecording(t, "ok", 0)
	r := agenttest.NewRequest(t, p)
	r.Prompt = "/init and mind @/etc/passwd"
	agenttest.TakeTurn(t, claude.Driver{}, r)
	spec := p.Spec()
	for _, want := range []string{
		"claude", "-p", "--permission-mode=default", "--permission-prompt-tool=stdio", "--setting-sources=", "--strict-mcp-config",
		"--no-session-persistence", "--model=model-1", `--settings={"permissions":{"ask":["Bash","WebFetch"]}}`,
	} {
		if !slices.Contains(spec.Argv, want) {
			t.Errorf("argv = %q, want %s in it", spec.Argv, want)
		}
	}
	for name, want := range map[string]string{
		"ANTHROPIC_BASE_URL": "http://127.0.0.1:3129", "ANTHROPIC_API_KEY": "pawl", "HOME": r.Home.Path(),
		"DISABLE_TELEMETRY": "1", "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
	} {
		if got := proc.LookupVariable(spec.Env, name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	first, _, _ := strings.Cut(p.Input(), "\n")
	if want := `{"message":{"content":"\n/init and mind @/etc/passwd","role":"user"},"type":"user"}`; first != want {
		t.Errorf("the prompt is %s, want %s", first, want)
	}
}

func TestTheVendorsSearchIsOfferedOnlyWhereTheDefinitionNamesIt(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		p := agenttest.NewRecording(t, "ok", 0)
		r := agenttest.NewRequest(t, p)
		if allowed {
			r.Tools = []loop.ModelTool{loop.ToolWebSearch}
		}
		agenttest.TakeTurn(t, claude.Driver{}, r)
		if got := strings.Contains(strings.Join(p.Spec().Argv, " "), "WebSearch"); got != allowed {
			t.Errorf("allowed %t: argv = %q", allowed, p.Spec().Argv)
		}
	}
}

func TestWithALoginOfItsOwnNeitherKeyNorAddressIsSet(t *testing.T) {
	p := agenttest.NewRecording(t, "ok", 0)
	r := agenttest.NewRequest(t, p)
	r.Models, r.Model, r.Command = agent.Endpoint{}, "", "claude-wrapper --x"
	agenttest.TakeTurn(t, claude.Driver{}, r)
	for _, v := range p.Spec().Env {
		if strings.HasPrefix(v, "ANTHROPIC_") {
			t.Errorf("environment has %s", v)
		}
	}
	argv := p.Spec().Argv
	if !slices.Equal(argv[:4], []string{"/bin/sh", "-c", `exec claude-wrapper --x "$@"`, "sh"}) || argv[4] != "-p" ||
		slices.ContainsFunc(argv, func(a string) bool { return strings.HasPrefix(a, "--model") }) {
		t.Errorf("argv = %q", argv)
	}
}

func TestWhatToolsAndTheAgentSayIsNoFailure(t *testing.T) {
	const limit = "API Error: 429 rate limit reached, usage limit, 401 Invalid API key, prompt is too long"
	exec := agenttest.NewRecording(t, "ok", 0)
	text := strings.ReplaceAll(strings.ReplaceAll(string(exec.Stdout), `"content":"hi"`, `"content":"`+limit+`"`), "All done.", limit)
	exec.Stdout = []byte(text)
	turn := agenttest.TakeTurn(t, claude.Driver{}, agenttest.NewRequest(t, exec))
	if turn.Result.Failure != nil || turn.Result.Message != limit {
		t.Errorf("result = %+v, want no failure", turn.Result)
	}
}

func TestAFailureIsReadFromTheFieldThatSaysMost(t *testing.T) {
	const said = `{"type":"assistant","message":{"content":[{"type":"text","text":"x"}]}%s}` + "\n"
	for name, c := range map[string]struct {
		said, result string
		want         loop.FailureClass
	}{
		"an organisation that may not":          {`,"error":"oauth_org_not_allowed"`, `"subtype":"success","is_error":true`, loop.FailureAuth},
		"a status alone":                        {"", `"subtype":"success","is_error":true,"api_error_status":402`, loop.FailureQuota},
		"an unknown error with a status":        {`,"error":"unknown"`, `"subtype":"success","is_error":true,"api_error_status":413`, loop.FailureOverflow},
		"a window that no request fits":         {`,"error":"invalid_request"`, `"subtype":"success","is_error":true,"terminal_reason":"blocking_limit"`, loop.FailureOverflow},
		"no answer at all":                      {`,"error":"unknown"`, `"subtype":"success","is_error":true,"terminal_reason":"api_error"`, loop.FailureServer},
		"a budget of its own":                   {"", `"subtype":"error_max_budget_usd","is_error":true`, loop.FailureTurns},
		"a subtype without the flag":            {"", `"subtype":"error_during_execution"`, loop.FailureCrash},
		"an answer of the program itself":       {"", `"subtype":"success","is_error":false,"num_turns":0`, loop.FailureMalformed},
		"an error that was overcome":            {`,"error":"rate_limit"`, `"subtype":"success","is_error":false,"num_turns":1,"result":"done"`, ""},
		"a refusal above all":                   {`,"error":"invalid_request"`, `"subtype":"success","is_error":true,"stop_reason":"refusal","terminal_reason":"api_error"`, loop.FailureRefusal},
		"an invalid status":                     {"", `"subtype":"success","is_error":true,"api_error_status":-7`, loop.FailureCrash},
		"fields of other types than they have":  {`,"error":{"type":"rate_limit"}`, `"subtype":"success","is_error":true,"errors":[7],"result":[]`, loop.FailureCrash},
		"a result whose flag is none is no end": {"", `"subtype":"success","is_error":"no"`, loop.FailureMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			out := strings.Replace(said, "%s", c.said, 1) + `{"type":"result",` + c.result + "}\n"
			turn := agenttest.TakeTurn(t, claude.Driver{}, agenttest.NewRequest(t, &agenttest.Recording{Stdout: []byte(out)}))
			var got loop.FailureClass
			if turn.Result.Failure != nil {
				got = turn.Result.Failure.Class
			}
			if got != c.want {
				t.Errorf("failure = %+v, want %q", turn.Result.Failure, c.want)
			}
		})
	}
}

func TestEffortAndServersAreOnTheCommandLine(t *testing.T) {
	p := agenttest.NewRecording(t, "ok", 0)
	r := agenttest.NewRequest(t, p)
	r.Effort = "max"
	r.Servers = []loop.Server{{Name: "files", Command: "node x.js --a"}, {Name: "docs", URL: "https://mcp.example/v1"}}
	agenttest.TakeTurn(t, claude.Driver{}, r)
	for _, want := range []string{
		"--effort=max", "--allowedTools=mcp__files,mcp__docs",
		`--mcp-config={"mcpServers":{"docs":{"type":"http","url":"https://mcp.example/v1"},"files":{"args":["-c","exec node x.js --a"],"command":"/bin/sh","type":"stdio"}}}`,
	} {
		if !slices.Contains(p.Spec().Argv, want) {
			t.Errorf("argv = %q, want %s in it", p.Spec().Argv, want)
		}
	}
}
