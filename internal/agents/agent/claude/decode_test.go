package claude

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
	"github.com/pawl-run/pawl/internal/test/agenttest"
)

func TestEveryToolIsSaidInTheWordsOfPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		tool, input string
		want        policy.Call
	}{
		"a command":             {"Bash", `{"command":"go test ./...\necho x","description":"run\ntests"}`, policy.Call{Kind: policy.CallRun, Command: "go test ./...\necho x", Detail: "run tests"}},
		"a notebook":            {"NotebookEdit", `{"notebook_path":"/tree/a.ipynb"}`, policy.Call{Kind: policy.CallEdit, Paths: []string{"/tree/a.ipynb"}}},
		"a search":              {"Grep", `{"pattern":"x"}`, policy.Call{Kind: policy.CallRead, Paths: []string{"."}}},
		"a fetch":               {"WebFetch", `{"url":"https://user@example.org:8443/x?y"}`, policy.Call{Kind: policy.CallFetch, Host: "example.org", Detail: "https://user@example.org:8443/x?y"}},
		"a fetch from no place": {"WebFetch", `{"url":"://"}`, policy.Call{Kind: policy.CallFetch, Detail: "://"}},
		"a search in a network": {"WebSearch", `{"query":"pawl"}`, policy.Call{Kind: policy.CallFetch, Detail: "pawl"}},
		"a sub-agent":           {"Agent", `{"description":"look","prompt":"p"}`, policy.Call{Kind: policy.CallTalk, Detail: "look"}},
		"a server's tool":       {"mcp__x__y", `{"command":"rm"}`, policy.Call{Kind: policy.CallOther, Detail: `{"command":"rm"}`}},
		"an edit without input": {"Edit", ``, policy.Call{Kind: policy.CallEdit, Paths: []string{""}}},
		"an invalid command":    {"Bash", `{"command":["rm","-rf"]}`, policy.Call{Kind: policy.CallRun}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Tool = c.tool
			if diff := cmp.Diff(c.want, callOf(c.tool, json.RawMessage(c.input))); diff != "" {
				t.Errorf("the call differs (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzLine feeds whatever a program may print.
func FuzzLine(f *testing.F) {
	agenttest.AddSeeds(f, "*.jsonl", "session/*.jsonl")
	f.Fuzz(func(t *testing.T, text []byte) {
		in := new(agent.Input)
		questions := 0
		d := newDecoder(&loop.Session{ID: "a", Totals: []loop.ModelUsage{{Model: "m", Usage: loop.Usage{Input: 9}}}}, true, in, func(policy.Call) policy.Answer {
			questions++
			return policy.Answer{}
		})
		calls := map[string]bool{}
		for line := range bytes.SplitSeq(text, []byte("\n")) {
			events, _ := d.DecodeLine(line)
			for _, e := range events {
				if u := e.Usage; min(u.Input, u.Output, u.CacheRead, u.CacheWrite, u.CacheWrite1h) < 0 {
					t.Fatalf("a negative usage: %+v of %q", u, line)
				}
				if e.Kind == agent.EventCall {
					if calls[e.ID] {
						t.Fatalf("a call told twice: %q", line)
					}
					calls[e.ID] = true
				}
				if e.Kind == agent.EventReturn && !calls[e.ID] || e.Kind == agent.EventError && e.Failure.Class == "" {
					t.Fatalf("event %+v of %q", e, line)
				}
			}
		}
		var r agent.Result
		d.Finish(&r, "")
		if u := r.Usage; min(u.Input, u.Output, u.CacheRead, u.CacheWrite, u.CacheWrite1h) < 0 {
			t.Fatalf("a negative usage: %+v", u)
		}
		if r.Session != nil && !sessionID.MatchString(r.Session.ID) {
			t.Fatalf("a session %q", r.Session.ID)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		answers := bytes.Count(drain(t, in), []byte("\n"))
		if answers < questions {
			t.Fatalf("%d answers to %d questions", answers, questions)
		}
	})
}

func drain(t *testing.T, in *agent.Input) []byte {
	t.Helper()
	var all bytes.Buffer
	if _, err := all.ReadFrom(in); err != nil {
		t.Fatal(err)
	}
	return all.Bytes()
}
