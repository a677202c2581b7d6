package taskfile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const foundHeartbeat = "# HEARTBEAT\r\n\r\n## Current Status\r\n- State: idle <!-- by hand -->\r\n- Last Cycle: never\r\n- Steps Completed: 0  \r\nA note.\r\n\r\n" +
	"## Cycle Log\r\n\r\n| Timestamp | Step | Outcome | Duration | Notes |\r\n|---|:--|---|---|---|\r\n| _awaiting first cycle_ | — | — | — | — |\r\n\r\n## Health Trends\r\n_none_\r\n"

func TestTheStatusBlockChangesOnlyWhereItSaysSomethingElse(t *testing.T) {
	h := ParseHeartbeat(foundHeartbeat)
	h.SetStatus(Status{State: "working", LastCycle: noon, CyclesToday: 3, Blocked: 1})
	want := strings.NewReplacer("State: idle", "State: working", "Cycle: never", "Cycle: 2026-11-27T12:00:00Z",
		"Completed: 0  \r\n", "Completed: 0  \r\n- Cycles Today: 3\r\n- Steps Blocked Today: 1\r\n- Steps Failed Today: 0\r\n").Replace(foundHeartbeat)
	// New lines go below those that are there, each after the one before.
	if d := cmp.Diff(sortedLines(want), sortedLines(h.String())); d != "" {
		t.Error(d)
	}
	again := h.String()
	h.SetStatus(Status{State: "working", LastCycle: noon, CyclesToday: 3, Blocked: 1})
	if h.String() != again {
		t.Errorf("the second time it changed: %s", cmp.Diff(again, h.String()))
	}
}

func TestAStatusTableIsWrittenAsATable(t *testing.T) {
	h := ParseHeartbeat("## Current Status\n| Field | Value |\n|---|---|\n| **State** | idle |\n| Uptime |  |\n")
	h.SetStatus(Status{State: "a|b", Uptime: "2h"})
	want := "## Current Status\n| Field | Value |\n|---|---|\n| **State** | a\\|b |\n| Uptime | 2h |\n"
	if got := h.String(); !strings.HasPrefix(got, want[:len(want)-len("| Uptime | 2h |\n")]) || !strings.Contains(got, "| Cycles Today | 0 |\n") || !strings.Contains(got, "| Uptime | 2h |\n") {
		t.Errorf("got %q", got)
	}
}

func TestARowFollowsTheColumnsOfTheHeader(t *testing.T) {
	row := Row{At: noon, Step: "step-3", Outcome: "blocked", Duration: 62*time.Second + 300*time.Millisecond, Tokens: 1234, Notes: "no | key\n## Cycle Log"}
	for name, c := range map[string]struct{ text, want string }{
		"tokens without a column are in the notes": {
			foundHeartbeat, strings.Replace(foundHeartbeat, "— | — |\r\n\r\n## H", "— | — |\r\n| 2026-11-27T12:00:00Z | step-3 | blocked | 1m2s | no \\| key ## Cycle Log (1234 tokens) |\r\n\r\n## H", 1),
		},
		"other columns stay empty": {
			"## Cycle Log\n| Step | Mood | Time | Tokens |\n|--|--|--|--|", "## Cycle Log\n| Step | Mood | Time | Tokens |\n|--|--|--|--|\n| step-3 |  | 2026-11-27T12:00:00Z | 1234 |",
		},
		"without a table there is one": {
			"# x\n", "# x\n\n## Cycle Log\n\n| Timestamp | Step | Outcome | Duration | Tokens | Notes |\n|-----------|------|---------|----------|--------|-------|\n" +
				"| 2026-11-27T12:00:00Z | step-3 | blocked | 1m2s | 1234 | no \\| key ## Cycle Log |\n",
		},
	} {
		h := ParseHeartbeat(c.text)
		h.AddRow(row)
		if d := cmp.Diff(c.want, h.String()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestRowsAreReadInBothShapes(t *testing.T) {
	h := ParseHeartbeat(foundHeartbeat)
	h.AddRow(Row{At: noon, Step: "step-1", Outcome: "completed", Duration: 5 * time.Second, Notes: "a|b"})
	h.Append("### 2026-11-27T13:00:00Z Cycle Result\n- **Step**: task-002\n- Outcome: failed\n- Duration: 1m 5s\n- Tokens: 1,200\n- Summary: no | luck\n\n### Other\n- Step: none\n")
	want := []Row{
		{At: noon, Step: "step-1", Outcome: "completed", Duration: 5 * time.Second, Notes: "a|b", Line: 14},
		{At: noon.Add(time.Hour), Step: "task-002", Outcome: "failed", Duration: 65 * time.Second, Tokens: 1200, Notes: "no | luck", Line: 18},
	}
	if d := cmp.Diff(want, h.Rows()); d != "" {
		t.Error(d)
	}
}

func TestOnlyOldRowsOfPawlAreDropped(t *testing.T) {
	var b strings.Builder
	b.WriteString("## Cycle Log\n| Timestamp | Step | Outcome | Duration | Tokens | Notes |\n|---|---|---|---|---|---|\n| _awaiting first cycle_ | | | | | |\n|2026-01-01|step-1|done|1s|0|by hand|\n")
	for i := range MaxRows {
		fmt.Fprintf(&b, "| %s | step-1 | completed | 1s | 0 | |\n", noon.Add(time.Duration(i)*time.Minute).Format(stamp))
	}
	text := strings.ReplaceAll(b.String(), "| 0 | |\n", "| 0 |  |\n")
	h := ParseHeartbeat(text)
	h.AddRow(Row{At: noon.Add(48 * time.Hour), Step: "step-2", Outcome: "idle"})
	h.AddRow(Row{At: noon.Add(49 * time.Hour), Step: "step-2", Outcome: "idle"})
	rows := h.Rows()
	if len(rows) != MaxRows+1 || rows[0].Notes != "by hand" || !rows[1].At.Equal(noon.Add(2*time.Minute)) || !rows[MaxRows].At.Equal(noon.Add(49*time.Hour)) {
		t.Errorf("%d rows, the first %v and %v", len(rows), rows[0], rows[1])
	}
	if !strings.Contains(h.String(), "| _awaiting first cycle_ | | | | | |\n") {
		t.Error("the placeholder is lost")
	}
}

func TestTrendsKeepTheNewestWeeksAndEveryOtherLine(t *testing.T) {
	h := ParseHeartbeat("## Health Trends\nGetting better.\n- 2026-W40: was good\n## End\n")
	for _, n := range []int{44, 42, 43, 45, 46, 47, 48, 50, 49} {
		h.SetTrends(Week{Year: 2026, Week: n, Runs: n})
	}
	h.SetTrends(Week{Year: 2026, Week: 50, Runs: 96, Completed: 80, Blocked: 4, Failed: 2, Idle: 10, Tokens: 12345})
	var weeks strings.Builder
	for n := 43; n < 50; n++ {
		weeks.WriteString(Week{Year: 2026, Week: n, Runs: n}.line() + "\n")
	}
	want := "## Health Trends\nGetting better.\n- 2026-W40: was good\n\n" + weeks.String() +
		"- 2026-W50: 96 runs, 80 completed, 4 blocked, 2 failed, 10 idle, 12345 tokens\n\n## End\n"
	if d := cmp.Diff(want, h.String()); d != "" {
		t.Error(d)
	}
	if w := h.Trends(); len(w) != MaxWeeks || w[7].Tokens != 12345 {
		t.Errorf("trends: %v", w)
	}
}

func TestANewHeartbeatIsReadBack(t *testing.T) {
	h := ParseHeartbeat(NewHeartbeat("dev", "15m", "10m"))
	text := h.String()
	h.SetStatus(Status{State: "idle", Uptime: "0s"})
	if h.String() != text {
		t.Errorf("its status is written again: %s", cmp.Diff(text, h.String()))
	}
	h.AddRow(Row{At: noon, Step: "step-1", Outcome: "completed"})
	h.SetTrends(Week{Year: 2026, Week: 48, Runs: 1})
	if !isInside(text, h.String()) || len(h.Rows()) != 1 || len(h.Trends()) != 1 || strings.Count(h.String(), "## ") != 4 {
		t.Errorf("got %s", h)
	}
}

var heartbeatLines = []string{
	"# dev", "## Current Status", "## Cycle Log", "## Health Trends", "### Cycle Log", "- State: x", "- **Uptime**: 1h", "| Uptime | 2h |", "| Timestamp | Step | Notes |", "|---|---|---|", "|--|", "| a | b | c |",
	"| 2026-11-27T10:00:00Z | step-1 |  |", "- 2026-W01: 1 runs, 0 completed, 0 blocked, 0 failed, 0 idle, 0 tokens", "text", "```", "<!--", "-->", "### 2026-11-27T10:00:00Z Cycle Result", "- Outcome: failed",
}

func TestACycleKeepsWhatItDoesNotOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawLines(t, heartbeatLines)
		h := ParseHeartbeat(text)
		if h.String() != text {
			t.Fatalf("%q became %q", text, h)
		}
		rows := len(h.Rows())
		h.AddRow(Row{At: noon, Step: "step-9", Outcome: "idle", Notes: "```"})
		if got := len(h.Rows()); got != rows+1 || !isInside(text, h.String()) {
			t.Fatalf("%d rows became %d: %q became %q", rows, got, text, h)
		}
		h = ParseHeartbeat(text)
		h.SetTrends(Week{Year: 2026, Week: 48})
		if !isInside(text, h.String()) {
			t.Fatalf("%q became %q", text, h)
		}
		h = ParseHeartbeat(text)
		h.SetStatus(Status{State: "idle", CyclesToday: 7, Uptime: "3h"})
		kept := func(text string) (kept []string) {
			for _, line := range sortedLines(text) {
				if !strings.Contains(line, "State") && !strings.Contains(line, "Uptime") {
					kept = append(kept, line)
				}
			}
			return kept
		}
		if lost := without(kept(text), kept(h.String())); len(lost) > 0 {
			t.Fatalf("%q is lost: %q became %q", lost, text, h)
		}
	})
}

func FuzzHeartbeat(f *testing.F) {
	f.Add(foundHeartbeat, "x")
	f.Add("## Cycle Log\n|a|\n|-|", "|\\|\n")
	f.Fuzz(func(t *testing.T, text, notes string) {
		h := ParseHeartbeat(text)
		if h.String() != text {
			t.Fatalf("%q became %q", text, h)
		}
		h.AddRow(Row{At: noon, Step: notes, Outcome: notes, Notes: notes})
		h.SetTrends(Week{Year: 2026, Week: 1})
		h.SetStatus(Status{State: notes})
		h.Rows()
		h.Trends()
	})
}
