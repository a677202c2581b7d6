package qwen

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/agenttest"
)

func TestRecordedTurnsAreReadAsDrawn(t *testing.T) { agenttest.Replay(t, Driver{}) }

// started is what the program is started with for a request, and its home.
func started(t *testing.T, change func(*agent.Request)) (*agenttest.Recording, agenttest.Folder) {
	t.Helper()
	exec := agenttest.NewRecording(t, "ok", 0)
	r, _ := agenttest.TakeTurnWith(t, Driver{}, exec, change)
	return exec, r.Home.(agenttest.Folder)
}

func TestTheCommandLineSaysModelAndConversation(t *testing.T) {
	base := []string{
		"--output-format", "stream-json", "--safe-mode", "--approval-mode", "default", "--auth-type", "openai",
		"--max-session-turns", "200", "--allowed-tools", strings.Join(allowedTools, ","), "--exclude-tools", strings.Join(excludedTools, ","),
	}
	for name, tc := range map[string]struct {
		change       func(*agent.Request)
		first, after []string
	}{
		"a fresh conversation": {
			change: func(*agent.Request) {},
			first:  []string{"qwen"}, after: []string{"--model", "model-1"},
		},
		"the program's own model": {
			change: func(r *agent.Request) { r.Model = "" },
			first:  []string{"qwen"},
		},
		"a conversation that goes on": {
			change: func(r *agent.Request) { r.Session = &loop.Session{ID: "s-1"} },
			first:  []string{"qwen"}, after: []string{"--model", "model-1", "--resume", "s-1"},
		},
		"a report": {
			change: func(r *agent.Request) { r.Env = append(r.Env, "PAWL_REPORT=/srv/report/report.json") },
			first:  []string{"qwen"}, after: []string{"--include-directories", "/srv/report", "--model", "model-1"},
		},
		"another program": {
			change: func(r *agent.Request) { r.Command = "my-qwen --debug" },
			first:  []string{"/bin/sh", "-c", `exec my-qwen --debug "$@"`, "sh"}, after: []string{"--model", "model-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			exec, _ := started(t, tc.change)
			if diff := cmp.Diff(slices.Concat(tc.first, base, tc.after), exec.Spec().Argv); diff != "" {
				t.Errorf("argv (-want +got):\n%s", diff)
			}
			if got, want := exec.Input(), "Repair what is broken.\n"; got != want {
				t.Errorf("it is told %q on standard input, want %q", got, want)
			}
		})
	}
}

func TestTheEnvironmentLeadsToTheModel(t *testing.T) {
	exec, home := started(t, func(*agent.Request) {})
	exec.WantEnviron(t,
		"HOME="+home.Dir, "QWEN_HOME="+home.Dir+"/.qwen", "QWEN_SANDBOX=false",
		"OPENAI_BASE_URL=http://127.0.0.1:3129/v1", "OPENAI_API_KEY=pawl", "OPENAI_MODEL=model-1",
	)
}

func TestWithoutAnEndpointTheVariablesOfTheRequestCount(t *testing.T) {
	exec, _ := started(t, func(r *agent.Request) {
		r.Models = agent.Endpoint{}
		r.Env = append(r.Env, "OPENAI_API_KEY=theirs")
	})
	var got []string
	for _, e := range exec.Spec().Env {
		if strings.HasPrefix(e, "OPENAI_") {
			got = append(got, e)
		}
	}
	if diff := cmp.Diff([]string{"OPENAI_API_KEY=theirs"}, got); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

// written is a value of the settings.
func written(t *testing.T, home agenttest.Folder, keys ...string) any {
	t.Helper()
	text, err := home.Read(".qwen/settings.json")
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
	_, home := started(t, func(*agent.Request) {})
	for keys, want := range map[string]any{
		"security auth selectedType":        "openai",
		"security folderTrust enabled":      true,
		"telemetry enabled":                 false,
		"privacy usageStatisticsEnabled":    false,
		"general enableAutoUpdate":          false,
		"general chatRecording":             false,
		"model generationConfig maxRetries": 0.0,
		"tools sandbox":                     false,
		"mcpServers":                        map[string]any{},
		"hooks":                             map[string]any{},
	} {
		if diff := cmp.Diff(want, written(t, home, strings.Fields(keys)...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", keys, diff)
		}
	}
}

// usage is input and output as the program would report them.
func usage(in, out int64) loop.Usage {
	return loop.Usage{Input: in, Output: out, Source: loop.UsageReported}
}

func TestAConversationThatGoesOnCountsEachTokenOnce(t *testing.T) {
	var session *loop.Session
	for _, tc := range []struct {
		name       string
		turn, both loop.Usage
	}{
		{"resume1", usage(1400, 60), usage(1400, 60)},
		{"resume2", usage(700, 30), usage(2100, 90)},
		{"resume3", usage(700, 30), usage(2800, 120)},
	} {
		r := agenttest.NewRequest(t, agenttest.NewRecording(t, tc.name, 0))
		r.Keep, r.Session = true, session
		got := agenttest.TakeTurn(t, Driver{}, r).Result
		if diff := cmp.Diff(tc.turn, got.Usage); diff != "" {
			t.Errorf("%s used (-want +got):\n%s", tc.name, diff)
		}
		session = got.Session
		if session == nil || len(session.Totals) != 1 {
			t.Fatalf("%s has the session %+v", tc.name, session)
		}
		if diff := cmp.Diff(tc.both, session.Totals[0].Usage); diff != "" {
			t.Errorf("the conversation used after %s (-want +got):\n%s", tc.name, diff)
		}
	}
	if got, want := session.Turns, 3; got != want {
		t.Errorf("the conversation has %d turns, want %d", got, want)
	}
}

func TestAConversationWhosePastIsUnknownIsNotCountedAgain(t *testing.T) {
	r := agenttest.NewRequest(t, agenttest.NewRecording(t, "resume3", 0))
	r.Keep, r.Session = true, &loop.Session{ID: "s-1", Turns: 2}
	if diff := cmp.Diff(usage(700, 30), agenttest.TakeTurn(t, Driver{}, r).Result.Usage); diff != "" {
		t.Errorf("used (-want +got):\n%s", diff)
	}
}

func TestATurnThatWasKilledGoesOnCounting(t *testing.T) {
	killed := agenttest.NewRecording(t, "kill9", 137)
	killed.Ended = proc.Signaled
	r := agenttest.NewRequest(t, killed)
	r.Keep, r.Session = true, &loop.Session{ID: "s-1", Turns: 1, Totals: []loop.ModelUsage{{Model: "m", Usage: usage(100, 10)}}}
	got := agenttest.TakeTurn(t, Driver{}, r).Result.Session
	if diff := cmp.Diff(usage(1100, 60), got.Totals[0].Usage); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
}

func TestOnlyAKeptConversationCanGoOn(t *testing.T) {
	r := agenttest.NewRequest(t, agenttest.NewRecording(t, "ok", 0))
	if turn := agenttest.TakeTurn(t, Driver{}, r); turn.Result.Session != nil {
		t.Errorf("a turn that is not kept has the session %+v", turn.Result.Session)
	}
}

func TestWordsOfATreeAreNoFailure(t *testing.T) {
	stdout := strings.Join([]string{
		`{"type":"assistant","session_id":"s","message":{"content":[{"type":"tool_use","id":"1","name":"read_file","input":{}}]}}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"[API Error: 429 usage limit]"}]}]}}`,
		`{"type":"assistant","message":{"content":[{"type":"text","text":"[API Error: 401 it says]"}]}}`,
		`{"type":"result","subtype":"success","is_error":false,"usage":{"input_tokens":2,"output_tokens":1}}`,
	}, "\n") + "\n"
	if turn := agenttest.TakeTurn(t, Driver{}, agenttest.NewRequest(t, &agenttest.Recording{Stdout: []byte(stdout)})); turn.Result.Failure != nil {
		t.Errorf("the turn failed: %+v", turn.Result.Failure)
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
