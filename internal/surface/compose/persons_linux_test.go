package compose_test

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/formats/boards/boards"
	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/formats/spine"
	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/verbs/roster"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// A step is what the store knows of it and what a person has written of it, and both may be
// anything: the person's word is a fact, which no state of the row makes an error of.

// rowStates are those in which a run may find the row of a step; "" is no row. A claim is none
// of them: it ends with its run, before another one begins.
var rowStates = []loop.StepState{
	"", loop.StepOpen, loop.StepBlocked, loop.StepFailed, loop.StepWaiting, loop.StepEscalated, loop.StepDone, loop.StepDropped,
}

// What the decision says of a step. A step that may be worked on was chosen or outranked.
const (
	mayBeWorked = "may be worked on"
	notListed   = "not listed"
)

// written is a step by the state of its row and by what a person has written of it.
type written struct {
	had loop.StepState
	is  string
}

// becomes is what follows of it: what the decision says, and the state of the row after the
// run; "": as it was.
type becomes struct {
	says string
	row  loop.StepState
}

// memoryOfPeople is a format whose memory people write.
type memoryOfPeople struct {
	open  func(t *testing.T) team
	loop  string                                  // as commands name it
	words []string                                // what a person may write of a step
	key   func(n int) string                      // of a step
	write func(w people, words map[string]string) // writes them all, by key
	want  func(s written) becomes
}

// ofWord is what follows of a word whatever the row is, with exceptions by row.
func ofWord(all becomes, except map[loop.StepState]becomes) func(loop.StepState) becomes {
	return func(had loop.StepState) becomes {
		if b, is := except[had]; is {
			return b
		}
		return all
	}
}

// byWord is the table of a format.
func byWord(table map[string]func(loop.StepState) becomes) func(written) becomes {
	return func(s written) becomes { return table[s.is](s.had) }
}

var (
	waits   = becomes{says: string(loop.ReasonStepWaiting)}
	blocked = becomes{says: string(loop.ReasonStepBackoff), row: loop.StepBlocked}
	drops   = becomes{says: string(loop.ReasonNotEligible)}
	works   = becomes{says: mayBeWorked}
	absent  = becomes{says: notListed}

	unlessItWaits = map[loop.StepState]becomes{loop.StepWaiting: waits}
)

var memoriesOfPeople = map[string]memoryOfPeople{
	"tasks": {
		open: func(t *testing.T) team {
			t.Helper()
			return openTeam(agentsFixture(t, "", map[string]string{"agents/dev/LOOP.md": agentLoop("sandbox: none", "agent_command: 'exit 1'"), "agents/dev/TASKS.md": tasksText()}))
		},
		loop: "dev", words: taskfile.Statuses, key: func(n int) string { return fmt.Sprintf("step-%d", n) },
		write: func(w people, words map[string]string) {
			var b strings.Builder
			for n := range len(words) {
				fmt.Fprintf(&b, "- **Step %d**: do %d\n  - Status: %s\n", n+1, n+1, words[fmt.Sprintf("step-%d", n+1)])
			}
			w.write("agents/dev/TASKS.md", tasksText(b.String()))
		},
		want: byWord(map[string]func(loop.StepState) becomes{
			taskfile.StatusOpen: ofWord(works, unlessItWaits), taskfile.StatusInProgress: ofWord(works, unlessItWaits),
			taskfile.StatusBlocked: ofWord(blocked, unlessItWaits), taskfile.StatusFailed: ofWord(drops, nil),
			taskfile.StatusDone: ofWord(absent, nil), taskfile.StatusCancelled: ofWord(absent, nil),
		}),
	},
	"spine": {
		open: func(t *testing.T) team {
			t.Helper()
			s := newFixture(t, "")
			keys, _, _ := strings.Cut(fixConfig, "agent_command: ")
			gittest.WriteFile(t, filepath.Join(s.root, ".loops/fix/loop.config.yaml"), keys+"agent_command: 'exit 1'\nsandbox: none\n")
			s.loop = "fix"
			return openTeam(s)
		},
		loop: "fix", words: []string{"Priority", "Watch", "Noise", "in no list"}, key: func(n int) string { return spine.ItemKey(fmt.Sprintf("do %d", n)) },
		write: func(w people, words map[string]string) {
			var text strings.Builder
			text.WriteString("# fix — STATE\n_Updated: 2026-01-01T00:00:00Z · run #0 · readiness 100/100_\n")
			for _, list := range []string{"Priority", "Watch", "Noise"} {
				text.WriteString("\n## " + list + "\n")
				for n := range len(words) {
					if title := fmt.Sprintf("do %d", n+1); words[spine.ItemKey(title)] == list {
						text.WriteString("- " + title + "\n")
					}
				}
			}
			w.write(".loops/fix/STATE.md", text.String())
		},
		want: byWord(map[string]func(loop.StepState) becomes{
			"Priority": ofWord(works, map[loop.StepState]becomes{loop.StepWaiting: waits, loop.StepBlocked: blocked}),
			"Watch":    ofWord(drops, nil), "Noise": ofWord(drops, nil),
			"in no list": ofWord(becomes{says: notListed, row: loop.StepDropped}, map[loop.StepState]becomes{"": absent}),
		}),
	},
	"boot": {
		open: func(t *testing.T) team {
			t.Helper()
			s := newBootFixture(t, "")
			s.configureBoot("sandbox: none\nagent_command: 'exit 1'")
			return openTeam(s)
		},
		loop: "boot", words: []string{string(bootstate.StatusPending), string(bootstate.StatusBlocked), string(bootstate.StatusDone)}, key: func(n int) string { return fmt.Sprintf("T-%d", n) },
		write: func(w people, words map[string]string) {
			now := time.Now()
			tasks := bootstate.NewTodo(now)
			for n := range len(words) {
				id := fmt.Sprintf("T-%d", n+1)
				tasks.Add(bootstate.Task{ID: id, Title: "Do " + id, Status: bootstate.Status(words[id]), Priority: bootstate.PriorityMedium}, now)
			}
			w.write(bootlink.DefaultTasks, string(tasks.Encode()))
		},
		want: byWord(map[string]func(loop.StepState) becomes{
			string(bootstate.StatusPending): ofWord(works, unlessItWaits), string(bootstate.StatusBlocked): ofWord(drops, nil),
			string(bootstate.StatusDone): ofWord(becomes{says: string(loop.ReasonStepDone)}, nil),
		}),
	},
	"boards": {
		open: func(t *testing.T) team {
			t.Helper()
			s := newFixture(t, "")
			w := openTeam(s)
			person := loop.Actor{Who: "Ann", Role: loop.RoleHuman}
			if _, err := w.svc.Boards.CreateBoard(t.Context(), person, "Core", boards.BoardChange{Waived: new(true)}); err != nil {
				t.Fatal(err)
			}
			driver := &roster.Change{Driver: new("command"), Command: new("exit 1")}
			if _, err := w.svc.Boards.CreateAgent(t.Context(), person, "@ann", boards.AgentChange{Boards: []string{"core"}, Driver: driver}); err != nil {
				t.Fatal(err)
			}
			return w
		},
		loop: "@ann", words: []string{"backlog", "todo", "review", "done", "failed"},
		key: func(n int) string { return fmt.Sprintf("tk_%d", n) },
		write: func(w people, words map[string]string) {
			for n := range len(words) {
				id := fmt.Sprintf("tk_%d", n+1)
				task := board.Task{ID: id, BoardID: w.boardID(), Title: "do " + id, Description: "as it says", Status: board.Status(words[id]), Priority: board.Medium}
				if task.Status == board.Review {
					task.AssigneeID = "ann"
				}
				w.change(func(tx *store.Tx) error { return tx.WriteRow(w.t.Context(), w.of.WorkspaceID, task.Row()) })
			}
		},
		want: byWord(map[string]func(loop.StepState) becomes{
			"backlog": ofWord(works, map[loop.StepState]becomes{loop.StepWaiting: waits, loop.StepBlocked: blocked}),
			"todo":    ofWord(works, map[loop.StepState]becomes{loop.StepWaiting: waits, loop.StepBlocked: blocked}),
			"review":  ofWord(absent, nil), "done": ofWord(absent, nil), "failed": ofWord(absent, nil),
		}),
	},
}

// people is a workspace whose memory people write, after the first run of its loop.
type people struct {
	team

	first loop.Run
	of    loop.Loop
}

func TestWhatAPersonWritesIsAFactWhateverTheRowOfTheStepSays(t *testing.T) {
	for name, format := range memoriesOfPeople {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := people{team: format.open(t)}
			made := w.cycle(runs.StartRequest{Loop: format.loop, By: loop.Actor{Who: "Ann", Role: loop.RoleHuman}}) // It makes the rows that others refer to.
			w.change(func(tx *store.Tx) (err error) {
				w.first, err = tx.Run(t.Context(), made.ID)
				if err == nil {
					w.of, err = tx.Loop(t.Context(), w.first.LoopID)
				}
				return err
			})
			steps, words := map[string]written{}, map[string]string{}
			for _, had := range rowStates {
				for _, is := range format.words {
					key := format.key(len(steps) + 1)
					steps[key], words[key] = written{had, is}, is
					w.putRow(key, had)
				}
			}
			format.write(w, words)
			run := w.cycle(runs.StartRequest{Loop: format.loop, By: loop.Actor{Who: "Ann", Role: loop.RoleHuman}})
			if len(run.Iterations) == 0 {
				t.Fatalf("the run is %s: %s, and has worked on nothing", run.Outcome, run.Detail)
			}
			said, workedOn := map[string]string{}, ""
			for _, c := range run.Iterations[0].Considered {
				if said[c.Key] = string(c.Reason); c.Reason == loop.ReasonChosen || c.Reason == loop.ReasonOutranked {
					said[c.Key] = mayBeWorked
				}
				if c.Chosen {
					workedOn = c.Key
				}
			}
			rows := w.rowStates()
			for key, s := range steps {
				want := format.want(s)
				if got := cmp.Or(said[key], notListed); got != want.says {
					t.Errorf("row %q, a person writes %q: %s, want %s", s.had, s.is, got, want.says)
				}
				if key == workedOn {
					continue
				}
				if got, want := rows[key], cmp.Or(want.row, s.had); got != want {
					t.Errorf("row %q, a person writes %q: the row becomes %q, want %q", s.had, s.is, got, want)
				}
			}
		})
	}
}

// change writes rows as other verbs do.
func (w people) change(fn func(*store.Tx) error) {
	w.t.Helper()
	db, err := store.Open(w.t.Context(), store.Options{Database: filepath.Join(w.home, "pawl.db"), Now: clock.System{}.Now})
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.Update(w.t.Context(), fn); err != nil {
		w.t.Fatal(err)
	}
}

// putRow lets the loop have a step in a state, as an earlier run has left it.
func (w people) putRow(key string, state loop.StepState) {
	w.t.Helper()
	if state == "" {
		return
	}
	ctx, id := w.t.Context(), engine.StepID(w.first.LoopID, key)
	w.change(func(tx *store.Tx) error {
		a := loop.Approval{
			ID: "ap_" + id, LoopID: w.first.LoopID, RunID: w.first.ID, StepID: id, Action: loop.Action{Kind: loop.ActionCommand, Argv: []string{"true"}}, Definition: w.first.Definition,
			State: loop.ApprovalOpen, Created: tx.Now(), Expires: tx.Now().Add(time.Hour),
		}
		a.Hash = a.BindingHash()
		waitsFor, err := "", error(nil)
		if state == loop.StepWaiting {
			waitsFor, err = a.ID, tx.AskApproval(ctx, a)
		}
		const insert = `INSERT INTO steps (id, loop_id, step_key, kind, title, state, attempts, blocked_at, waits_for, feedback, updated_ms) VALUES ($1, $2, $3, 'work', 'as it was', $4, 1, $5, $6, 'something', 1)`
		_, wrong := tx.SQLite().ExecContext(ctx, insert, id, w.first.LoopID, key, string(state), w.first.N, waitsFor)
		return errors.Join(err, wrong)
	})
}

// rowStates are the states of the rows of all steps of the loop, by key.
func (w people) rowStates() map[string]loop.StepState {
	w.t.Helper()
	states := map[string]loop.StepState{}
	w.change(func(tx *store.Tx) error {
		rows, err := tx.SQLite().QueryContext(w.t.Context(), `SELECT step_key, state FROM steps WHERE loop_id = $1`, w.first.LoopID)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var key string
			var state loop.StepState
			if err := rows.Scan(&key, &state); err != nil {
				return err
			}
			states[key] = state
		}
		return rows.Err()
	})
	return states
}

// boardID is the id of the only board.
func (w people) boardID() string {
	w.t.Helper()
	list, err := w.svc.Boards.ListBoards(w.t.Context())
	if err != nil || len(list) != 1 {
		w.t.Fatalf("boards = %v %v", list, err)
	}
	return list[0].ID
}
