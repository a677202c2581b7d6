package boardsim

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/sim"
	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// company is 12 agents in three layers on three boards, with 40 tasks.
func company() (from Start, loops []sim.Loop) {
	from.Taken = map[string]bool{}
	add := func(r loop.Row) { r.Version = 1; from.Rows = append(from.Rows, r) }
	boards := []string{"bd_a", "bd_b", "bd_c"}
	for _, id := range boards {
		add(board.Board{ID: id, Name: id, Slug: id, Waived: true}.Row())
	}
	for n := range 12 {
		m := board.Member{Handle: fmt.Sprintf("agent%d", n), Role: "developer", Layer: board.Specialist, BoardIDs: []string{boards[n%3]}}
		switch {
		case n == 0:
			m.Layer, m.BoardIDs = board.Strategic, boards
		case n < 4:
			m.Layer, m.LeadBoardID = board.Lead, boards[n%3]
		}
		add(m.Row())
		loops = append(loops, sim.Loop{Definition: loop.Definition{
			Name: board.LoopName(m.Handle), Protocol: loop.ProtocolBoard, Pattern: "custom", Tier: loop.TierAssisted, Scope: []string{"**"}, Cadence: "20m", Goal: "keep the boards empty", Group: loop.AgentsGroup,
		}})
	}
	for n := range 40 {
		t := board.Task{ID: fmt.Sprintf("tk_%02d", n), BoardID: boards[n%3], Title: fmt.Sprintf("task %d", n), Description: "do it", Status: board.Todo, Priority: board.Priorities()[n%4], Order: n}
		if n%9 == 8 {
			t.Description = "" // Nobody can begin it.
		}
		add(t.Row())
	}
	return from, loops
}

func simulateDay(t *testing.T, seed uint64) (sim.Result, Result) {
	t.Helper()
	from, loops := company()
	r, result, err := Run(t.Context(), sim.Options{Loops: loops, Start: time.Date(2026, 5, 4, 16, 0, 0, 0, time.UTC), For: 24 * time.Hour, Seed: seed, Now: time.Now}, from)
	if err != nil {
		t.Fatal(err)
	}
	return r, result
}

func TestADayOfTwelveAgentsDrainsTheirBoards(t *testing.T) {
	r, result := simulateDay(t, 1)
	if result.Before[board.Todo] != 40 || result.Total.Heartbeats < 12*70 {
		t.Errorf("before: %s, %d heartbeats", result.Before, result.Total.Heartbeats)
	}
	const unready = 4
	if left := result.After[board.Todo] + result.After[board.InProgress] + result.After[board.Backlog]; left < unready || left > unready+2 {
		t.Errorf("after a day %s, want all but the %d that are not ready, and at most two more, to be through", result.After, unready)
	}
	if result.After[board.Done] == 0 || result.Open > 0 || result.Total.Answered < unready {
		t.Errorf("after a day: %s, %d open questions, %d answered", result.After, result.Open, result.Total.Answered)
	}
	if result.LongestMS < (12 * time.Hour).Milliseconds() {
		t.Errorf("the longest approval took %d ms, want one that waits overnight", result.LongestMS)
	}
	if result.Total.QuietRatio < 0.5 || result.Total.Tokens == 0 {
		t.Errorf("quiet ratio %.2f, %d tokens", result.Total.QuietRatio, result.Total.Tokens)
	}
	_, again := simulateDay(t, 1)
	if diff := cmp.Diff(result, again); diff != "" {
		t.Errorf("the same seed gives another history:\n%s", diff)
	}
	_, other := simulateDay(t, 2)
	if cmp.Equal(result, other) {
		t.Error("another seed gives the same history")
	}
	t.Logf("%s; %d heartbeats, quiet %.0f%%, %d answered, %d done, %d blocked, %d failed, %d claims lost, %d tokens, %d loops", result.After, result.Total.Heartbeats, 100*result.Total.QuietRatio,
		result.Total.Answered, result.Total.Done, result.Total.Blocked, result.Total.Failed, result.Total.Lost, result.Total.Tokens, len(r.Loops))
}
