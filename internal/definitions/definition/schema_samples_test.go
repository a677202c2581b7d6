package definition

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/report"
)

const (
	specSample = `{"id": "lp_0a1b2c3", "agentId": "agent_planner", "goal": "Keep the tests green", "loopType": "deterministic",
		"trigger": {"type": "manual"}, "stateSource": "test output",
		"gates": [{"name": "tests_pass", "kind": "command", "check": "` + "`go test ./...`" + `"}],
		"budget": {"maxIterations": 8, "maxTokens": 400000, "maxWallClockMs": 2700000, "maxItems": 50},
		"giveUp": "same gate fails 3× with no diff → escalate", "errorPolicy": "retry once w/ backoff, then pause + log",
		"guardrails": ["edits limited to /src and /tests"], "humanGate": "open a PR, do not merge",
		"memoryWrites": "", "role": "worker", "concurrency": "parallel", "parentId": "lp_zzzzzzz", "childIds": ["lp_0000000"],
		"boardEntry": "task_1", "createdAt": 1, "updatedAt": 2}`
	stateSample = `{"version": "1.0.0", "lastUpdated": "2026-09-03T08:20:00+02:00", "activeProject": "", "currentPhase": "blocked",
		"lastCommitSha": "0123456789abcdef0123456789abcdef01234567", "nextIntent": "T2",
		"errors": [{"timestamp": "2026-09-03T08:20:00Z", "message": "push rejected", "code": "E1", "recoverable": true}],
		"metadata": {"plan": [{"task": "T2", "steps": ["write the test"]}], "x": 1}}`
	todoSample = `{"version": "1.0.0", "tasks": [{"id": "a-B_1", "title": "x", "status": "in-progress", "priority": "critical",
		"dependencies": ["t2"], "description": "d", "createdAt": "c", "updatedAt": "u", "completedAt": null, "blockedReason": "",
		"metadata": {}}], "metadata": {"note": "n"}}`
	reportSample = `{"outcome": "blocked", "summary": "s", "reason": "no compiler", "no_change": false, "item": "pr=31", "items": ["i"],
		"state": {"priority": [], "watch": ["w"], "noise": null}, "readiness": 95, "pitfalls": ["p"], "memory": ["m"],
		"messages": [{"to": "lead", "kind": "report", "content": "c"}], "handoff": "h", "confidence": 0.5, "commands": [{"argv": ["ls"], "why": "w", "expect": {"exit": 1, "output": "o"}}]}`
	eventSample = `{"run_id": "run_1", "seq": 1, "at": "2026-09-03T08:20:00.5Z", "phase": "kill switch", "kind": "phase", "text": ""}`
)

func TestWhatTheFormatsSayIsValid(t *testing.T) {
	scenario, err := os.ReadFile("../../formats/boards/board/testdata/scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ schema, text string }{
		"a spec with every field":         {"spec", specSample},
		"a spec that is yet to be made":   {"spec", without(specSample, "id", "createdAt", "updatedAt", "memoryWrites", "role", "concurrency", "parentId")},
		"empty texts take their defaults": {"spec", setting(specSample, "giveUp", `""`, "errorPolicy", `""`, "humanGate", `""`, "guardrails", `[]`)},
		"a spec without gates":            {"spec", setting(specSample, "gates", `[]`)},
		"the budget of the seed":          {"spec", setting(specSample, "budget", `{"maxTokens": 1, "maxWallClockMs": 1}`)},
		"a spec that senses a command":    {"spec", setting(specSample, "stateSource", "\"`go test ./...`\"")},
		"a spec that senses a queue":      {"spec", setting(specSample, "stateSource", `"queue: gh issue list"`)},
		"a spec that senses a file":       {"spec", setting(specSample, "stateSource", `"file: notes/plan.md"`)},
		"a spec that senses memory":       {"spec", setting(specSample, "stateSource", `"memory"`)},
		"a spec that senses the diff":     {"spec", setting(specSample, "stateSource", `"diff"`)},
		"a schedule of milliseconds":      {"spec", setting(specSample, "trigger", `{"type": "schedule", "on": "300000"}`)},
		"a schedule by default":           {"spec", setting(specSample, "trigger", `{"type": "schedule"}`)},
		"an event of another loop":        {"spec", setting(specSample, "trigger", `{"type": "event", "on": "loop:ci-watch=gave_up"}`)},
		"an event of a file":              {"spec", setting(specSample, "trigger", `{"type": "event", "on": "file:src/**"}`)},
		"a reviewer gate with a reviewer": {"spec", setting(specSample, "gates", `[{"name": "r", "kind": "reviewer", "check": "good", "reviewer": {"agent": "a", "model": "m"}}]`)},

		"a state with every field":  {"state", stateSample},
		"a state with what it must": {"state", without(stateSample, "lastCommitSha", "nextIntent", "errors", "metadata")},
		"the template of the state": {"state", setting(stateSample, "currentPhase", `"idle"`, "nextIntent", `""`, "errors", `[]`, "metadata", `{}`, "lastCommitSha", `null`)},
		"a short commit":            {"state", setting(stateSample, "lastCommitSha", `"1a2b3c4"`)},
		"tasks with every field":    {"todo", todoSample},
		"an empty organisation":     {"org", `{}`},
		"hours as they are written": {"org", `{"hours": "[9, 17)"}`},
		"no boards":                 {"boards", `{}`},
		"boards of the scenario":    {"boards", string(scenario)},
		"the minimal file of tasks": {"todo", `{"version": "1.0.0", "tasks": [], "metadata": {"note": "made anew"}}`},
		"a task of what it must be": {"todo", setting(todoSample, "tasks", `[{"id": "1", "title": "t", "status": "done", "priority": "low"}]`)},

		"a report with every field":        {"report", reportSample},
		"a report that claims nothing":     {"report", `{}`},
		"a report of the demo's agent":     {"report", `{"outcome": "done", "summary": "slug.Make drops punctuation", "item": "pkg=slug"}`},
		"a report that says more than now": {"report", `{"outcome": "quiet", "mood": "good"}`},

		"an event":                        {"events", eventSample},
		"the shape of a newer event":      {"events", strings.Replace(eventSample, "{", `{"turn": 3, `, 1)},
		"a definition with a key unknown": {"config", strings.Replace(configJSON(t, configA), "{", `{"colour": "red", `, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			if err := compiled(t, c.schema).Validate(decoded(t, c.text)); err != nil {
				t.Errorf("%s\n%v", c.text, err)
			}
		})
	}
}

// without removes fields from a JSON object.
func without(text string, names ...string) string {
	return edited(text, func(fields map[string]json.RawMessage) {
		for _, name := range names {
			delete(fields, name)
		}
	})
}

// setting sets fields of a JSON object: names and values take turns.
func setting(text string, pairs ...string) string {
	return edited(text, func(fields map[string]json.RawMessage) {
		for pair := range slices.Chunk(pairs, 2) {
			fields[pair[0]] = json.RawMessage(pair[1])
		}
	})
}

func edited(text string, change func(map[string]json.RawMessage)) string {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		panic(err)
	}
	change(fields)
	body, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return string(body)
}

// TestTheEventsOfARunAreValid reads what pawl logs -f --json printed of a run
// of the demo.
func TestTheEventsOfARunAreValid(t *testing.T) {
	body, err := os.ReadFile("testdata/events.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	schema, kinds := compiled(t, "events"), map[string]bool{}
	for line := range strings.Lines(string(body)) {
		if err := schema.Validate(decoded(t, line)); err != nil {
			t.Errorf("%s%v", line, err)
		}
		var event loop.Event
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		kinds[event.Kind] = true
		if err := schema.Validate(asJSON(t, event)); err != nil {
			t.Errorf("%+v: %v", event, err)
		}
	}
	if len(kinds) != 7 {
		t.Errorf("the run has kinds %v, want all seven", kinds)
	}
}

func TestTheReportThatPromptsAskForIsValid(t *testing.T) {
	page, err := os.ReadFile("../../../docs/report.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "| `state` | `")
	example, _, closed := strings.Cut(rest, "`")
	if !found || !closed {
		t.Fatal("docs/report.md has lost its example of a state")
	}
	text := `{"state": ` + example + `}`
	if _, err := report.Parse([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := compiled(t, "report").Validate(decoded(t, text)); err != nil {
		t.Error(err)
	}
}
