package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/formats/boards/boards"
	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/boardload"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/verbs/roster"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// boardRows measure heartbeats that find nothing to do, and many agents that claim at once.
func boardRows(b *testing.B) []row {
	b.Helper()
	return []row{
		emptyHeartbeats(b), claims(b, "SQLite", filepath.Join(b.TempDir(), "claims.db"), "p99 < 250 ms"), claims(b, "PostgreSQL", pgtest.URL(b), "p99 < 50 ms"),
	}
}

func emptyHeartbeats(b *testing.B) row {
	b.Helper()
	s := newFixture(b, 20, "")
	ctx, by := b.Context(), loop.Actor{Who: "bench", Role: loop.RoleTrigger, From: "bench"}
	_, err := s.svc.Boards.CreateBoard(ctx, by, "Core", boards.BoardChange{Waived: new(true)})
	s.must(err)
	_, err = s.svc.Boards.CreateAgent(ctx, by, "@dev", boards.AgentChange{Role: new("developer"), Boards: []string{"core"}, Driver: &roster.Change{Command: new("true")}})
	s.must(err)
	var took []time.Duration
	for i := range 101 {
		p, err := s.svc.Runs.Prepare(ctx, runs.StartRequest{Loop: "@dev"})
		s.must(err)
		v, err := s.svc.Runs.Start(ctx, p)
		s.must(err)
		if v.Outcome != loop.OutcomeQuiet {
			b.Fatalf("heartbeat = %s %s %q", v.Outcome, v.Reason, v.Detail)
		}
		if i > 0 {
			took = append(took, toDuration(v.MS.Overhead))
		}
	}
	return row{"heartbeat of a board with nothing to do", millis(median(took)), "< 5 ms", "", ""}
}

// claims lets a thousand agents of fifty boards claim and finish tasks at once.
func claims(b *testing.B, name, database, target string) row {
	b.Helper()
	const tasks = 1000
	s, err := store.Open(b.Context(), store.Options{Database: database, Now: clock.System{}.Now, Lease: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	size := boardload.Size{Agents: 1000, Boards: 50, Tasks: tasks}
	if err := boardload.Fill(b.Context(), s, size); err != nil {
		b.Fatal(err)
	}
	var handles []string
	for n := range size.Agents {
		handles = append(handles, boardload.Handle(n))
	}
	var history bytes.Buffer
	began := time.Now()
	if err := boardload.Work(b.Context(), s, handles, func() time.Duration { return time.Since(began) }, &history); err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	begun, won := map[string]time.Duration{}, map[string]int{}
	var times []time.Duration
	for lines := json.NewDecoder(&history); lines.More(); {
		var op boardload.Op
		if err := lines.Decode(&op); err != nil {
			b.Fatal(err)
		}
		if !op.Done {
			begun[op.Agent] = op.At
			continue
		}
		times = append(times, op.At-begun[op.Agent])
		if op.Won {
			won[op.Task]++
		}
	}
	for task, n := range won {
		if n != 1 {
			b.Errorf("%s was claimed %d times", task, n)
		}
	}
	if len(won) != tasks {
		b.Errorf("%d tasks were claimed, want %d", len(won), tasks)
	}
	slices.Sort(times)
	return row{
		fmt.Sprintf("claims of 1,000 agents at once, %d tasks, %s", tasks, name),
		fmt.Sprintf("%.0f tasks/s, a claim %s, p99 %s", tasks/took.Seconds(), millis(median(times)), millis(times[len(times)*99/100])), target, fmt.Sprintf("%d claims", len(times)), "",
	}
}
