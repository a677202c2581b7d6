package store

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// A listing that reads every run of the store gets slower with each of them.
func TestListingsUseIndexes(t *testing.T) {
	ctx := t.Context()
	s, err := Open(ctx, Options{Database: filepath.Join(t.TempDir(), "p.db"), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	inList := func(query string) string { return strings.ReplaceAll(query, "{list}", "'a', 'b'") }
	for name, c := range map[string]struct{ query, index string }{
		"loops by name":        {inList(loopsNamed), "loops_name"},
		"a page of loops":      {loopsAfter, "loops_name"},
		"loops that are due":   {dueLoops, "loops_due (due_ms>? AND due_ms<?)"},
		"overdue loops":        {overdueLoops, "loops_due (due_ms>? AND due_ms<?)"},
		"broken overdue loops": {overdueLoops, "loops_broken (due_ms>? AND due_ms<?)"},
		"the next due loop":    {nextDue, "loops_due (due_ms>?)"},
		"the next event":       {nextEvent, "sqlite_autoindex_loops_1 (id=?)"},
		"loops with events":    {loopsWithEvents, "firing_events_waiting"},
		"loops that listen":    {listeningLoops, "loops_listening (workspace_id=?)"},
		"lapsed runs":          {lapsedWorkspaces, "runs_unfinished (workspace_id=?)"},
		"unfinished loops":     {unfinishedLoops, "runs_unfinished"},
		"runs of a workspace":  {workspaceRuns, "runs_newest"},
		"newest runs":          {inList(newestRuns), "(loop_id=?)"},
		"watched runs":         {watchRuns, "(id=?)"},
		"extended runs":        {extendRuns, "(id=?"},
		"stopped runs":         {stoppedRuns, "(id=?"},
		"held runs":            {heldRuns, "runs_one_live"},
		"planned runs":         {inList(plannedRuns), "runs_queued (workspace_id=? AND loop_id=?)"},
		"queued by an event":   {queuedByEvent, "runs_queued (workspace_id=? AND loop_id=?)"},
		"unheard answers":      {unheardAnswers, "approvals_heard"},
		"overdue approvals":    {overdueApprovals, "approvals_expire"},
		"due deliveries":       {dueDeliveries, "deliveries_due"},
		"claimed deliveries":   {claimDeliveries, "deliveries_due"},
		"newest delivery":      {newestOf, "deliveries_channel"},
		"pending deliveries":   {pendingOf, "deliveries_channel"},
		"turns of a step":      {stepTurns, "(loop_id=?)"},
		"a lasting notice":     {lastingNotice, "notices_last"},
		"all that last":        {lastingNotices, "notices_lasting"},
		"lasting notices":      {inList(lastingKeys), "notices_last"},
		"a page of notices":    {noticesBefore, "INTEGER PRIMARY KEY"},
		"messages that wait":   {waitingMessages, "messages_waiting (workspace_id=? AND recipient=?)"},
		"messages by topic":    {topicMessages, "messages_topic (workspace_id=? AND sender=?)"},
		"messages about tasks": {inList(aboutMessages), "messages_about (workspace_id=? AND topic=?)"},
		"messages to people":   {toldMessages, "messages_told (workspace_id=?)"},
		"rows of a board":      {queryOf(loop.RowQuery{Set: "tasks", Scope: "b"}), "protocol_rows_scope (workspace_id=? AND row_set=? AND scope=?)"},
		"rows in a state":      {queryOf(loop.RowQuery{Set: "tasks", Scope: "b", States: []string{"todo"}}), "protocol_rows_state (workspace_id=? AND row_set=? AND scope=? AND state=?)"},
		"numbers of rows":      {rowCounts, "protocol_rows_state (workspace_id=? AND row_set=?)"},
		"rows of somebody":     {queryOf(loop.RowQuery{Set: "tasks", Owner: "dev"}), "protocol_rows_owner (workspace_id=? AND row_set=? AND owner=?)"},
		"a row":                {strings.TrimSuffix(queryOf(loop.RowQuery{Set: "tasks", Keys: []string{"t1"}}), " LIMIT $4"), "sqlite_autoindex_protocol_rows_1 (workspace_id=? AND row_set=? AND row_key=?)"},
		"runs without a cycle": {idleNumbers, "(loop_id=? AND n>? AND n<?)"},
		"a page of memories":   {memoriesBefore, "sqlite_autoindex_memories_1 (workspace_id=? AND n<?)"},
		"memories that count":  {activeBefore, "memories_active (workspace_id=? AND n<?)"},
		"proposed memories":    {countProposed, "memories_proposed (workspace_id=? AND proposed_by=?)"},
		"memories by text":     {inList(memoriesByDigest), "(workspace_id=? AND digest=?)"},
		"effects of a loop":    {effectsDone, "effects_done (loop_id=? AND kind=?)"},
		"open approvals":       {strings.ReplaceAll(approvalsIn, "{among}", " AND state IN ('open')"), "approvals_open"},
	} {
		var plan []string
		err := s.View(ctx, func(r *Reader) (err error) {
			plan, err = collect(ctx, r, "EXPLAIN QUERY PLAN "+c.query, func(row interface{ Scan(...any) error }) (detail string, err error) {
				var id, parent, unused int
				err = row.Scan(&id, &parent, &unused, &detail)
				return detail, err
			}, make([]any, strings.Count(c.query, "$"))...)
			return err
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		steps := strings.Join(plan, "\n")
		sorted := strings.Contains(steps, "TEMP B-TREE FOR ORDER BY") && strings.Contains(c.query, "LIMIT")
		if !strings.Contains(steps, c.index) || strings.Contains(steps, "SCAN runs") || strings.Contains(steps, "SCAN approvals") || sorted {
			t.Errorf("%s (want %s):\n%s", name, c.index, steps)
		}
	}
}

// queryOf is the statement of a query for rows.
func queryOf(q loop.RowQuery) string {
	query, _ := rowsQuery("ws", q)
	return query
}
