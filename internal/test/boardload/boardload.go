// Package boardload lets many agents of boards claim tasks at once: the real sessions of
// package heartbeat on a real store, without trees and agents' programs between a claim and
// its end.
package boardload

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/formats/boards/heartbeat"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// Workspace is the id of the workspace that the boards are in.
const Workspace = "ws"

// Size says how much there is.
type Size struct{ Agents, Boards, Tasks int }

// Op is one line of the history: a claim that was begun, or what came of one.
type Op struct {
	Agent string        `json:"agent"`
	Task  string        `json:"task"`
	Done  bool          `json:"done"` // it has returned
	Won   bool          `json:"won"`  // it has the task
	At    time.Duration `json:"at"`
}

// Fill makes boards, tasks, and agents that work on two boards each.
func Fill(ctx context.Context, s *store.Store, size Size) error {
	err := s.Update(ctx, func(tx *store.Tx) error {
		return tx.AddWorkspace(ctx, loop.Workspace{ID: Workspace, Root: "/repo"})
	})
	var rows []loop.Row
	boardID := func(n int) string { return fmt.Sprintf("bd_%02d", n%size.Boards) }
	for n := range size.Boards {
		rows = append(rows, board.Board{ID: boardID(n), Name: boardID(n), Slug: boardID(n), Waived: true}.Row())
	}
	for n := range size.Agents {
		m := board.Member{Handle: Handle(n), Role: "developer", Layer: board.Specialist, BoardIDs: []string{boardID(n)}}
		if size.Boards > 1 {
			m.BoardIDs = append(m.BoardIDs, boardID(n+1))
		}
		rows = append(rows, m.Row())
	}
	for n := range size.Tasks {
		t := board.Task{ID: fmt.Sprintf("tk_%05d", n), BoardID: boardID(n), Title: fmt.Sprintf("task %d", n), Description: "do it", Status: board.Todo, Priority: board.Priorities()[n%4], Order: n}
		rows = append(rows, t.Row())
	}
	const each = 500
	for err == nil && len(rows) > 0 {
		part := rows[:min(each, len(rows))]
		rows = rows[len(part):]
		err = s.Update(ctx, func(tx *store.Tx) error {
			for _, r := range part {
				if err := tx.WriteRow(ctx, Workspace, r); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return err
}

// Handle is that of an agent by its number.
func Handle(n int) string { return fmt.Sprintf("a%04d", n) }

// Work lets agents claim and finish tasks, all at once, until none is left for them, and
// writes the history, with times of since.
func Work(ctx context.Context, s *store.Store, handles []string, since func() time.Duration, out io.Writer) error {
	w := &worker{store: s, since: since, out: bufio.NewWriter(out)}
	var all sync.WaitGroup
	errs := make([]error, len(handles))
	for n, h := range handles {
		all.Go(func() { errs[n] = w.drain(ctx, h) })
	}
	all.Wait()
	return errors.Join(append(errs, w.out.Flush())...)
}

type worker struct {
	store *store.Store
	since func() time.Duration

	mu  sync.Mutex
	out *bufio.Writer
}

// write adds a line, which is there although the process dies at once.
func (w *worker) write(op Op) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	op.At = w.since()
	if err := json.NewEncoder(w.out).Encode(op); err != nil {
		return err
	}
	return w.out.Flush()
}

// drain is one agent: each of its runs claims a task and finishes it.
func (w *worker) drain(ctx context.Context, handle string) error {
	l := loop.Loop{ID: "lp_" + handle, WorkspaceID: Workspace, Name: board.LoopName(handle), Protocol: loop.ProtocolBoard}
	err := w.store.Update(ctx, func(tx *store.Tx) error { return tx.AddLoop(ctx, loop.Workspace{ID: Workspace, Root: "/repo"}, l) })
	for n, more := 1, true; err == nil && more; n++ {
		id := fmt.Sprintf("run_%s_%d_%d", handle, n, os.Getpid())
		run := loop.Run{ID: id, LoopID: l.ID, N: int64(w.since()), Key: id, Trigger: loop.TriggerApproval}
		err = w.store.Update(ctx, func(tx *store.Tx) (err error) {
			run, err = tx.FireClaimed(ctx, run, loop.Holder{PID: os.Getpid()})
			return err
		})
		if err == nil {
			more, err = w.takeOne(ctx, handle, l, run)
		}
	}
	return err
}

// takeOne is one run, which reports whether it found a task.
func (w *worker) takeOne(ctx context.Context, handle string, l loop.Loop, run loop.Run) (found bool, err error) {
	reader := reader{w.store}
	session, err := heartbeat.Protocol{}.Open(ctx, engine.View{Loop: l, Run: run, Rows: reader, Mail: reader, Now: w.store.Now()})
	if err != nil {
		return false, err
	}
	lost := map[string]bool{}
	for {
		candidates := session.Candidates(engine.Sensed{}, w.store.Now())
		first := slices.IndexFunc(candidates, func(c plan.Candidate) bool { return c.Drop == "" && !lost[c.Step.Key] })
		if first < 0 {
			run.Outcome, run.Reason = loop.OutcomeQuiet, loop.ReasonNoCandidates
			return false, w.end(ctx, run, session.Close(engine.Summary{Run: run, Now: w.store.Now()}))
		}
		step := candidates[first].Step
		changes, _, err := session.Begin(plan.Choice{Step: step, Detail: candidates[first].Detail})
		if err == nil {
			err = w.write(Op{Agent: handle, Task: step.Key})
		}
		if err != nil {
			return false, err
		}
		err = w.claim(ctx, run, changes)
		won := err == nil
		if werr := w.write(Op{Agent: handle, Task: step.Key, Done: true, Won: won}); werr != nil {
			return false, werr
		}
		if won {
			step.State, run.Outcome, run.Reason = loop.StepDone, loop.OutcomeDone, loop.ReasonNoChange
			changes, _ := session.Record(engine.Result{Run: run, Iteration: loop.Iteration{Verdict: loop.VerdictPass, N: 1}, Settlement: plan.Settlement{Step: step}})
			return true, w.end(ctx, run, append(changes, session.Close(engine.Summary{Run: run, Iterations: []loop.Iteration{{}}, Now: w.store.Now()})...))
		}
		if !errors.Is(err, loop.ErrRowChanged) {
			return false, err
		}
		lost[step.Key] = true
		if err := session.(engine.SharedSteps).Refresh(ctx); err != nil {
			return false, err
		}
	}
}

// claim writes the changes with which a step begins.
func (w *worker) claim(ctx context.Context, run loop.Run, changes []loop.Change) error {
	return w.store.Update(ctx, func(tx *store.Tx) error {
		rt, err := tx.Enter(ctx, run, loop.PhaseDecide)
		if err != nil {
			return err
		}
		return writeRows(ctx, rt, changes)
	})
}

// end writes the changes with which a run ends.
func (w *worker) end(ctx context.Context, run loop.Run, changes []loop.Change) error {
	return w.store.Update(ctx, func(tx *store.Tx) error {
		rt, err := tx.Settle(ctx, run, loop.PhaseSleep, false)
		if err != nil {
			return err
		}
		return writeRows(ctx, rt, changes)
	})
}

func writeRows(ctx context.Context, rt *store.RunTx, changes []loop.Change) error {
	for _, ch := range changes {
		if ch.Kind != loop.ChangeRow {
			continue
		}
		if err := rt.ChangeRow(ctx, Workspace, *ch.Row); err != nil {
			return err
		}
	}
	return nil
}

// reader is what a session reads.
type reader struct{ *store.Store }

// List implements engine.Rows.
func (r reader) List(ctx context.Context, q loop.RowQuery) (list []loop.Row, err error) {
	err = r.View(ctx, func(rd *store.Reader) (err error) {
		list, err = rd.Rows(ctx, Workspace, q)
		return err
	})
	return list, err
}

// Waiting implements engine.Mail.
func (reader) Waiting(context.Context) ([]loop.Delivery, error) { return nil, nil }

// Sent implements engine.Mail.
func (reader) Sent(context.Context) ([]loop.Delivery, error) { return nil, nil }

// About implements engine.Mail.
func (reader) About(context.Context, ...string) ([]loop.Delivery, error) { return nil, nil }
