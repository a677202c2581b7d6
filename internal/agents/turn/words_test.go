package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/meter"
	"github.com/pawl-run/pawl/internal/agents/meter/model"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

var reset = time.Date(2026, 9, 3, 12, 0, 0, 0, time.UTC)

func TestWhatHappensInATurnIsSaidOnOneLine(t *testing.T) {
	long := strings.Repeat("x", 500)
	for name, c := range map[string]struct {
		event      agent.Event
		kind, text string
	}{
		"a command":           {agent.Event{Kind: agent.EventCall, Tool: "shell", Input: json.RawMessage(`{"timeout":3,"command":"go  test\n./..."}`)}, loop.EventTool, "shell go test ./..."},
		"nothing says most":   {agent.Event{Kind: agent.EventCall, Tool: "x", Input: json.RawMessage(`{"a": 1}`)}, loop.EventTool, `x {"a": 1}`},
		"it is not an object": {agent.Event{Kind: agent.EventCall, Tool: "x", Input: json.RawMessage(`oops`)}, loop.EventTool, "x oops"},
		"it is long":          {agent.Event{Kind: agent.EventCall, Tool: "x", Input: json.RawMessage(`{"path":"` + long + `"}`)}, loop.EventTool, "x " + long[:400] + "…"},
		"a tool failed":       {agent.Event{Kind: agent.EventReturn, Tool: "edit", Bad: true, Text: "no such file:\nmore"}, loop.EventTool, "edit failed: no such file"},
		"a tool went well":    {agent.Event{Kind: agent.EventReturn, Tool: "edit"}, "", ""},
		"it is denied":        {agent.Event{Kind: agent.EventPermission, Tool: "edit", Answer: policy.Answer{Rule: "scope", Words: "not yours"}}, loop.EventNote, "edit is denied (scope): not yours"},
		"it is allowed":       {agent.Event{Kind: agent.EventPermission, Answer: policy.Answer{Allow: true}}, "", ""},
		"a limit":             {agent.Event{Kind: agent.EventLimit, Text: "slow down"}, loop.EventNote, "limit: slow down"},
		"a limit with an end": {agent.Event{Kind: agent.EventLimit, Text: "slow down", Reset: reset}, loop.EventNote, "limit: slow down, until 2026-09-03 12:00 UTC"},
		"another try":         {agent.Event{Kind: agent.EventRetry, Text: "busy"}, loop.EventNote, "the agent asks its model again: busy"},
		"an error": {
			agent.Event{Kind: agent.EventError, Failure: &loop.Failure{Class: loop.FailureRateLimit, Status: 429, Reset: reset}},
			loop.EventNote, "the agent reports " + string(loop.FailureRateLimit) + ": it gave no reason (status 429, until 2026-09-03T12:00:00Z)",
		},
		"its own text": {agent.Event{Kind: agent.EventText, Text: "hello"}, "", ""},
		"a count":      {agent.Event{Kind: agent.EventUsage}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if kind, text := turn.DescribeEvent(c.event); kind != c.kind || text != c.text {
				t.Errorf("Words = %q, %q; want %q, %q", kind, text, c.kind, c.text)
			}
		})
	}
}

func TestATurnAsksAHumanForOneThing(t *testing.T) {
	asks := &turn.PermissionAsks{Guard: policy.Guard{Root: t.TempDir()}}
	if got := asks.List(); got != nil {
		t.Errorf("before: %v", got)
	}
	for _, line := range []string{"git push origin main", "git push origin next"} {
		if a := asks.Judge(context.Background(), policy.Call{Kind: policy.CallRun, Tool: "shell", Command: line}); a.Allow || !a.Ask {
			t.Fatalf("%s: %+v, want that a human is asked", line, a)
		}
	}
	got := asks.List()
	if len(got) != 1 || !strings.Contains(strings.Join(got[0].Argv, " "), "git push origin main") || got[0].Why == "" {
		t.Errorf("asks = %+v, want the first alone", got)
	}
}

func TestATurnThatIsRefusedSaysWhatToDo(t *testing.T) {
	want := agent.Result{
		Ended: proc.NotStarted, Claims: true,
		Failure: &loop.Failure{Class: loop.FailureAuth, Text: (&loop.Fault{What: "act", Why: "there is no key", Fix: "set one"}).Error() + "; set one", Typed: true},
	}
	if diff := cmp.Diff(want, turn.RefusedResult(loop.FailureAuth, &loop.Fault{What: "act", Why: "there is no key", Fix: "set one"})); diff != "" {
		t.Errorf("Refused (-want +got):\n%s", diff)
	}
}

func TestADeniedPathThatIsNoCallOfAModelIsToldOnce(t *testing.T) {
	var told, refused []string
	tell := turn.ReportDenials(func(text string) { told = append(told, text) }, func(text string) { refused = append(refused, text) })
	telemetry := meter.Denial{Reason: model.ReasonNoCall, Detail: "GET /telemetry"}
	news, host := meter.Denial{Reason: model.ReasonNoCall, Detail: "GET /news"}, meter.Denial{Reason: "host", Detail: "x"}
	tool := meter.Denial{Reason: model.ReasonModelTool, Detail: "the tool web_search"}
	for _, d := range []meter.Denial{telemetry, telemetry, news, host, host, tool, tool, {Reason: loop.ReasonPriceUnknown, Detail: "m has no price"}} {
		tell(d)
	}
	if len(told) != 5 || !strings.HasPrefix(told[0], loop.NoteDenied) {
		t.Errorf("told %q, want the first path once and everything else", told)
	}
	if diff := cmp.Diff([]string{"m has no price"}, refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

func TestTheNewestHomeThatHasAFileCounts(t *testing.T) {
	var homes turn.PastHomes
	for _, files := range []map[string]string{{"new": "n"}, {"new": "o", "old": "o"}} {
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		homes = append(homes, dir)
	}
	for name, want := range map[string]string{"new": "n", "old": "o"} {
		if got, err := homes.Read(name); string(got) != want || err != nil {
			t.Errorf("%s = %q, %v; want %q", name, got, err, want)
		}
	}
	if _, err := homes.Read("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	if err := homes.Write("new", nil); !errors.Is(err, fs.ErrPermission) || homes.Path() != homes[0] {
		t.Errorf("Write = %v, Path = %s", err, homes.Path())
	}
}
