package boards_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	driver "github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/agent/command"
	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/formats/boards/boards"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/roster"
)

// rig is the verbs for boards in one workspace. The only secret is hunter2hunter2.
type rig struct {
	*verbtest.Rig
	*boards.Service
}

func newRig(t *testing.T, r *verbtest.Rig) rig {
	t.Helper()
	return rig{r, boards.New(r.Workspace, boards.Deps{
		Roster: roster.Roster{Store: r.Store, Profiles: []driver.Profile{command.Driver{}.Profile()}, Now: r.Store.Now, NewID: r.NewID},
		NewID:  r.NewID, Hide: func(s string) string { return strings.ReplaceAll(s, "hunter2hunter2", "***") },
	})}
}

func onBoth(t *testing.T, test func(t *testing.T, r rig)) {
	t.Helper()
	verbtest.OnBoth(t, func(t *testing.T, r *verbtest.Rig) {
		t.Helper()
		test(t, newRig(t, r))
	})
}

func must[T any](t *testing.T) func(v T, err error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// addBoard makes a board whose tasks need no document.
func (r rig) addBoard(t *testing.T, name string) boards.BoardView {
	t.Helper()
	waived := true
	return must[boards.BoardView](t)(r.CreateBoard(t.Context(), verbtest.Ann, name, boards.BoardChange{Waived: &waived, Scope: []string{"src/**"}, Verify: new("true")}))
}

func (r rig) addTask(t *testing.T, in, title string) boards.TaskView {
	t.Helper()
	return must[boards.TaskView](t)(r.CreateTask(t.Context(), verbtest.Ann, boards.CreateTaskRequest{Board: in, TaskChange: boards.TaskChange{Title: &title, Description: new("d")}}))
}

func (r rig) addAgent(t *testing.T, handle string, c boards.AgentChange) boards.AgentView {
	t.Helper()
	return must[boards.AgentView](t)(r.CreateAgent(t.Context(), verbtest.Ann, handle, c))
}

// wantFault checks how an error ends a command, and that it says something.
func wantFault(t *testing.T, err error, exit int, says ...string) {
	t.Helper()
	f, ok := errors.AsType[*loop.Fault](err)
	if !ok || f.Exit != exit || f.Fix == "" {
		t.Errorf("%v is not a fault that exits with %d", err, exit)
		return
	}
	for _, s := range says {
		if all := f.What + "\n" + f.Why + "\n" + f.Fix; !strings.Contains(all, s) {
			t.Errorf("%q does not say %q", all, s)
		}
	}
}

// definition is that of the loop of an agent, with its registration.
func (r rig) definition(t *testing.T, handle string) (d loop.Definition, l loop.Loop) {
	t.Helper()
	e, err := r.Workspace.Loops.Lookup(t.Context(), "@"+handle)
	if err != nil {
		t.Fatal(err)
	}
	return e.Definition, e.Row
}

// claim claims a task for an agent, as a run does that is over.
func (r rig) claim(t *testing.T, id, handle string, change ...func(*board.Task)) {
	t.Helper()
	err := r.Store.Update(t.Context(), func(tx *store.Tx) error {
		row, err := tx.Row(t.Context(), r.Workspace.ID, board.SetTasks, id)
		if err != nil {
			return err
		}
		task, err := board.FromRow[board.Task](row)
		if err != nil {
			return err
		}
		task.Status, task.AssigneeID, task.ExecutionStatus, task.ClaimedAt = board.InProgress, handle, board.ExecutionRunning, 1
		for _, c := range change {
			c(&task)
		}
		to := task.Row()
		to.Version = row.Version
		return tx.WriteRow(t.Context(), r.Workspace.ID, to)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// allRows are all rows of boards, and the heads of nothing else.
func (r rig) allRows(t *testing.T) (all []loop.Row) {
	t.Helper()
	err := r.Store.View(t.Context(), func(rd *store.Reader) error {
		all = nil
		for _, set := range []string{board.SetBoards, board.SetTasks, board.SetComments, board.SetMembers, board.SetMinds, board.SetActivity, board.SetSubscriptions, board.SetResources, board.SetErrors, board.SetLog} {
			rows, err := rd.Rows(context.WithoutCancel(t.Context()), r.Workspace.ID, loop.RowQuery{Set: set})
			if err != nil {
				return err
			}
			all = append(all, rows...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
