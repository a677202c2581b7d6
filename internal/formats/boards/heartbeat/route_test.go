package heartbeat_test

import (
	"testing"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
)

// A board whose tasks nobody may begin would win each heartbeat, and keep the agent from those
// of its other boards for ever.
func TestABoardWithNothingToBeginLeavesTheHeartbeatToTheNext(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.team()
		r.add(
			board.Board{ID: "bd_docs", Name: "Docs", Slug: "docs"}, // Without a document its tasks are not ready.
			board.Member{Handle: "dev", Role: "developer", Layer: board.Specialist, BoardIDs: []string{"bd_core", "bd_docs"}},
			task("tk_urgent", func(t *board.Task) { t.BoardID, t.Priority = "bd_docs", board.Urgent }),
			task("tk_low", func(t *board.Task) { t.Priority = board.Low }),
		)
		r.act = func(worked) string { return `{"outcome":"done","summary":"it was right already","no_change":true}` }
		r.beat("dev")
		if got := r.task("tk_low"); got.Status != board.Done {
			t.Errorf("the task that may be begun is in %s", got.Status)
		}
		if got := r.task("tk_urgent"); got.Status != board.Todo || got.Flagged == "" {
			t.Errorf("the task that may not is %+v", got)
		}
	})
}
