package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// rows are what each method of a transaction finds: one of everything.
type rows struct {
	run      loop.Run
	approval loop.Approval
	scopes   []loop.BudgetScope
	budget   loop.Budget
	step     loop.Step
	effect   loop.EffectRequest
	change   loop.Change
	d        loop.Definition
}

func filled(t *testing.T, s *Store) rows { t.Helper(); return filledFor(t, s, "") }

// filledFor is filled for one of several loops, whose names end with of.
func filledFor(t *testing.T, s *Store, of string) (have rows) {
	t.Helper()
	ctx, day := t.Context(), s.Now().Add(time.Hour)
	lp, run, ws := "lp"+of, "run"+of, "ws"+of
	have = rows{
		approval: loop.Approval{ID: "ap" + of, LoopID: lp, RunID: run, StepID: "st" + of, Action: loop.Action{Kind: loop.ActionLand}, State: loop.ApprovalOpen, Expires: day},
		scopes:   []loop.BudgetScope{{Kind: loop.BudgetAll}, {Kind: loop.BudgetLoop, ID: lp}},
		budget:   loop.Budget{Scope: loop.BudgetScope{Kind: loop.BudgetLoop, ID: lp}, Window: loop.WindowDay, Cap: loop.Amount{Tokens: 100}},
		step:     loop.Step{ID: "st" + of, LoopID: lp, Key: "k", Kind: loop.StepWork, Title: "do it", State: loop.StepClaimed, Snapshot: "ref"},
		effect:   loop.EffectRequest{Kind: "land", Key: "land/1" + of},
		change:   loop.Change{Kind: loop.ChangeAppend, Path: "run-log.md", Content: "line"},
		d:        loop.Definition{Name: "ci", Goal: "g" + of}.WithDefaults(),
	}
	err := s.Update(ctx, func(tx *Tx) error {
		err := tx.AddLoop(ctx, loop.Workspace{ID: ws, Root: "/repo" + of}, loop.Loop{ID: lp, WorkspaceID: ws, Name: "ci", Protocol: loop.ProtocolSpine})
		if err == nil {
			have.run, err = tx.FireClaimed(ctx, loop.Run{ID: run, LoopID: lp, N: 1, Key: "ci-1" + of, Trigger: "manual"}, loop.Holder{PID: 1})
		}
		if err != nil {
			return err
		}
		rt, err := tx.Enter(ctx, have.run, loop.PhaseAct)
		if err != nil {
			return err
		}
		late := have.approval
		late.ID, late.Expires = "late"+of, s.Now().Add(-time.Hour)
		recorded, changed := rt.RecordChanges(ctx, []loop.Change{have.change})
		if changed == nil && recorded[0].Seq != 1 {
			changed = fmt.Errorf("the first change of run %s has number %d", run, recorded[0].Seq)
		}
		_, reserved := rt.Reserve(ctx, have.scopes, nil, loop.Amount{Tokens: 1})
		return errors.Join(
			changed, reserved, tx.SetBudget(ctx, have.budget), tx.SaveDefinition(ctx, lp, have.d),
			tx.AskApproval(ctx, have.approval), tx.AskApproval(ctx, late), tx.SetHold(ctx, loop.Hold{Subject: "claude" + of, Reason: "limited"}),
			tx.SaveAgent(ctx, loop.Agent{ID: "ag" + of, Handle: "ada" + of}), tx.SaveTestRecord(ctx, "tree"+of, "gate", loop.TestRecord{}),
			tx.SaveGitFingerprint(ctx, ws, "", "f", "[]"), tx.AddWorkspace(ctx, loop.Workspace{ID: "bare_" + run}), tx.SaveNode(ctx, loop.Node{ID: "node_" + run, Name: run}),
			tx.Place(ctx, loop.Placement{WorkspaceID: ws, NodeID: "node_" + run, Path: "/repo"}),
			rt.SaveStep(ctx, have.step), rt.SaveIteration(ctx, loop.Iteration{RunID: run, N: 1, StepID: have.step.ID, Verdict: loop.VerdictPass}),
			rt.SaveTurn(ctx, loop.Turn{RunID: run, N: 1}), rt.RequestEffect(ctx, have.effect), rt.SaveSession(ctx, "claude", loop.Session{ID: "s"}),
			rt.AppendEvents(ctx, []loop.Event{{RunID: run, Seq: 1, Kind: "output", Text: "x"}}), fillNotices(ctx, tx, of), fillEvents(ctx, tx, of), learn(ctx, tx, of, "use tabs"), send(ctx, rt, of))
	})
	if err != nil {
		t.Fatal(err)
	}
	return have
}

// fillNotices adds a channel and a notice on its way in it, which was tried.
func fillNotices(ctx context.Context, tx *Tx, of string) error {
	_, added := tx.AddChannel(ctx, loop.Channel{Name: "ch" + of, Kind: loop.ChannelCommand, Node: "node_run" + of})
	_, told := tx.AddNotice(ctx, loop.Notice{ID: "nt" + of, Key: "late" + of, Event: loop.NoticeLate})
	_, tried := tx.exec(ctx, `UPDATE deliveries SET tries = 1`)
	_, begun := tx.StartNoticeCursor(ctx, loop.Cursor{Seq: 1})
	return errors.Join(added, told, tried, begun)
}

// fillEvents adds an event that waits, and how its source looks.
func fillEvents(ctx context.Context, tx *Tx, of string) error {
	_, added := tx.AddEvent(ctx, loop.FiringEvent{LoopID: "lp" + of, ID: "ev" + of, Source: "file:*", Payload: "a"}, nil)
	return errors.Join(added, tx.StartSource(ctx, "lp"+of, "node_run"+of, "file:*", "a"), tx.SaveEventCursor(ctx, "node_run"+of, loop.Cursor{Seq: 1}))
}

// learn adds a proposal of a loop to the memory, or confirms it.
func learn(ctx context.Context, tx *Tx, of, text string) error {
	m := loop.Memory{Kind: loop.MemoryFact, Text: text, State: loop.MemoryProposed, Sources: []loop.MemorySource{{LoopID: "lp" + of}}}
	_, err := tx.ChangeMemories(ctx, "ws"+of, []string{m.Digest()}, func(known []loop.Memory) []loop.Memory {
		for i := range known {
			known[i].Confirmed++
		}
		if len(known) > 0 {
			return known
		}
		return []loop.Memory{m}
	})
	return err
}

// send adds a message that waits for the loop ci.
func send(ctx context.Context, rt *RunTx, of string) error {
	_, err := rt.Deliver(ctx, loop.Delivery{To: "ci", Key: "k", From: "ci", Topic: "t", Text: "look"})
	return errors.Join(err, rt.ChangeRow(ctx, "ws"+of, loop.Row{Set: "tasks", Key: "t1", Hold: true, Body: json.RawMessage(`{}`)}))
}
