package bench

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// cyclesOf are what whole cycles of an agent cost outside of its program, which does nothing,
// with that many steps in its TASKS.md, and where the time goes.
func cyclesOf(b *testing.B, steps, rounds int) (took []time.Duration, shares string) {
	b.Helper()
	s := newFixture(b, 20, "")
	var text strings.Builder
	text.WriteString("# dev — TASKS\n\n## Active Tasks\n\n")
	for n := range steps {
		fmt.Fprintf(&text, "- **Step %d**: Look at part %d\n  - Status: open\n  - Priority: %s\n", n+1, n+1, []string{"low", "medium", "high"}[n%3])
	}
	text.WriteString("\n## Completed Tasks\n")
	s.write("agents/dev/TASKS.md", text.String())
	s.write("agents/dev/LOOP.md", `---
primitive: loop-config
enabled: true
interval: 15m
agent: command
agent_command: 'echo "{\"outcome\":\"done\",\"no_change\":true}" > "$PAWL_REPORT"'
---
You look at parts.
`)
	s.git("add", "-A")
	s.git("commit", "-q", "-m", "an agent")
	var mu sync.Mutex
	var events []loop.Event
	all := map[loop.Phase]time.Duration{}
	for i := range rounds + 1 {
		events = nil
		p, err := s.svc.Runs.Prepare(b.Context(), runs.StartRequest{Loop: "dev", Live: func(e loop.Event) { mu.Lock(); events = append(events, e); mu.Unlock() }})
		s.must(err)
		v, err := s.svc.Runs.Start(b.Context(), p)
		s.must(err)
		if v.Outcome != loop.OutcomeReported {
			b.Fatalf("cycle = %s %s %q, want it reported", v.Outcome, v.Reason, v.Detail)
		}
		if i == 0 {
			continue // It makes files and trees for the first time.
		}
		addShares(all, events)
		took = append(took, toDuration(v.MS.Overhead))
	}
	return took, shareText(all, rounds)
}

// taskRows measure a cycle with a long TASKS.md beside one with a short one.
func taskRows(b *testing.B) []row {
	b.Helper()
	const rounds = 9
	many, shares := cyclesOf(b, 10_000, rounds)
	few, _ := cyclesOf(b, 10+rounds, rounds)
	long, short := median(many), median(few)
	return []row{
		{"cycle of task files, 10,000 steps, full", millis(long), "< 50 ms", "with 10 steps " + millis(short), ratio(long, short)},
		{"  where its time goes", shares, "", "", ""},
	}
}
