package store

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// answers are what the rows of one loop and its run say.
func answers(ctx context.Context, r *Reader, of string) (map[string]any, error) {
	lp, run, ws := "lp"+of, "run"+of, "ws"+of
	all := map[string]any{}
	var failed error
	say := func(name string, v any, err error) {
		if errors.Is(err, loop.ErrNotFound) {
			v, err = "not found", nil
		}
		all[name] = v
		failed = errors.Join(failed, err)
	}
	agent, err := r.Agent(ctx, "ada"+of)
	say("agent", agent, err)
	approval, err := r.Approval(ctx, "ap"+of)
	say("approval", approval, err)
	approval, err = r.Approval(ctx, "late"+of)
	say("late approval", approval, err)
	approvals, err := r.Approvals(ctx, lp)
	say("approvals", approvals, err)
	approvals, err = r.Approvals(ctx, ws, loop.ApprovalOpen)
	say("open approvals", approvals, err)
	asked, err := r.Asked(ctx, run)
	asked.Lease = 0
	say("asked", asked, err)
	chain, err := r.Chain(ctx, lp)
	say("chain", chain, err)
	head, err := r.ChainHead(ctx, lp)
	say("head", head, err)
	definition, err := r.Definition(ctx, loop.Definition{Name: "ci", Goal: "g" + of}.WithDefaults().Digest())
	say("definition", definition, err)
	definitions, err := r.Definitions(ctx, loop.Definition{Name: "ci", Goal: "g" + of}.WithDefaults().Digest())
	say("definitions", definitions, err)
	effects, err := r.Effects(ctx, run)
	say("effects", effects, err)
	state, err := r.LoopState(ctx, lp, "node_"+run, 9, "claude"+of)
	say("state", state, err)
	undecided, done, err := r.Undecided(ctx, lp, "land")
	say("undecided", undecided, err)
	say("effects done", done, err)
	ended, err := r.Ended(ctx, lp, 9)
	say("ended", ended, err)
	events, err := r.Events(ctx, run, 0, 9)
	say("events", events, err)
	fingerprint, hazards, err := r.GitFingerprint(ctx, ws, "")
	say("fingerprint", fingerprint+hazards, err)
	history, err := r.History(ctx, lp, 9)
	say("history", history, err)
	holds, err := r.Holds(ctx, "claude"+of)
	say("holds", holds, err)
	iterations, err := r.Iterations(ctx, run)
	say("iterations", iterations, err)
	last, err := r.LastEvent(ctx, run)
	say("last event", last, err)
	text, err := r.LastOf(ctx, run, "output")
	say("last output", text, err)
	text, err = r.LastOf(ctx, run, "note")
	say("last note", text, err)
	live, err := r.Live(ctx, lp)
	say("live", live, err)
	row, err := r.Loop(ctx, lp)
	say("loop", row, err)
	row, err = r.LoopNamed(ctx, ws, loop.ProtocolSpine, "ci")
	say("loop by name", row, err)
	loops, err := r.Loops(ctx, ws)
	say("loops", loops, err)
	loops, err = r.LoopsAfter(ctx, ws, "", "", 9)
	say("page of loops", loops, err)
	loops, err = r.LoopsNamed(ctx, ws, "ci", "new")
	say("loops by name", loops, err)
	loops, err = r.UnfinishedLoops(ctx, ws, "")
	say("unfinished loops", loops, err)
	memories, err := r.Memories(ctx, MemoryQuery{Workspace: ws, Limit: 9})
	say("memories", memories, err)
	memories, err = r.Memories(ctx, MemoryQuery{Workspace: ws, Active: true, Limit: 9})
	say("memories that count", memories, err)
	proposed, err := r.ProposedMemories(ctx, ws, lp)
	say("proposed memories", proposed, err)
	messages, err := r.Undelivered(ctx, ws, "ci", 9)
	say("messages", messages, err)
	messages, err = r.MessagesOnTopics(ctx, ws, "ci", 9)
	say("messages on topics", messages, err)
	messages, err = r.MessagesTold(ctx, ws, 9)
	say("messages that were told", messages, err)
	messages, err = r.MessagesAbout(ctx, ws, []string{"t"})
	say("messages about a topic", messages, err)
	sent, err := r.Messages(ctx, ws, MessageQuery{})
	say("all messages", sent, err)
	tasks, err := r.Rows(ctx, ws, loop.RowQuery{Set: "tasks"})
	say("rows", tasks, err)
	counts, err := r.CountRows(ctx, ws, "tasks")
	say("numbers of rows", counts, err)
	task, err := r.Row(ctx, ws, "tasks", "t1")
	say("a row", task, err)
	approvals, err = r.ApprovalsOfSteps(ctx, lp, "st"+of)
	say("approvals of a step", approvals, err)
	paused, err := r.NoCyclesBetween(ctx, lp, 0, 9)
	say("runs without a cycle", paused, err)
	newest, err := r.NewestRuns(ctx, lp)
	say("newest run", newest, err)
	runs, err := r.WorkspaceRuns(ctx, ws, 0, 9)
	say("runs of the workspace", runs, err)
	pending, err := r.Pending(ctx, lp, "")
	say("pending", pending, err)
	one, err := r.Run(ctx, run)
	say("run", one, err)
	one, err = r.RunNumber(ctx, lp, 1)
	say("run by number", one, err)
	runs, err = r.Runs(ctx, lp, 9)
	say("runs", runs, err)
	ends, err := r.RunEnds(ctx, lp)
	say("ends", ends, err)
	session, err := r.Session(ctx, lp, "claude")
	say("session", session, err)
	session, err = r.Session(ctx, lp, "codex")
	say("session of another", session, err)
	one, err = r.SnapshotRun(ctx, ws, "ref", false)
	say("snapshot", one.ID, err)
	standings, err := r.Standings(ctx, []loop.BudgetScope{{Kind: loop.BudgetLoop, ID: lp}}, nil, noon)
	say("standings", standings, err)
	steps, err := r.Steps(ctx, lp)
	say("steps", steps, err)
	record, err := r.TestRecord(ctx, "tree"+of, "gate")
	say("record", record, err)
	record, err = r.TestRecord(ctx, "tree"+of, "another")
	say("record of another gate", record, err)
	switches, err := r.Switches(ctx, ws)
	say("switches", switches, err)
	turns, err := r.Turns(ctx, run)
	say("turns", turns, err)
	waiting, err := r.Waiting(ctx, ws, false)
	say("waiting", waiting, err)
	one.State, one.ID, one.N = loop.RunEnded, run, 1
	at, settled, err := r.Settled(ctx, one)
	say("settled", []any{at, settled}, err)
	reservation, _, err := r.reservation(ctx, run)
	say("reservation", []any{reservation.amount, reservation.used, reservation.settled}, err)
	return all, failed
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// A statement that reaches one row too many would end the run, spend the money or
// show the work of somebody else.
func TestWhatALoopDoesChangesNothingOfAnother(t *testing.T) {
	t.Run("made before it", func(t *testing.T) { changesNothing(t, "_above", true) })
	t.Run("made behind it", func(t *testing.T) { changesNothing(t, "_other", false) })
}

// changesNothing looks at what a loop sees of itself while another does all that
// one can do. The other one is the first of all rows, or the last.
func changesNothing(t *testing.T, of string, first bool) {
	t.Helper()
	ctx := t.Context()
	s, err := Open(ctx, Options{Database: filepath.Join(t.TempDir(), "p.db"), Now: time.Now, Virtual: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	var other rows
	if first {
		other = filledFor(t, s, of)
	}
	filledFor(t, s, "_mine")
	mine := func() (all map[string]any) {
		t.Helper()
		err := s.View(ctx, func(r *Reader) (err error) {
			all, err = answers(ctx, r, "_mine")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := mine()
	same := func(after string) {
		t.Helper()
		if d := cmp.Diff(before, mine()); d != "" {
			t.Errorf("after %s (-before +after):\n%s", after, d)
		}
	}
	if !first {
		other = filledFor(t, s, of)
		same("another loop was made")
	}
	run := other.run
	for _, step := range []struct {
		name string
		do   func(rt *RunTx) error
	}{
		{"a number", func(rt *RunTx) error { _, err := rt.Number(ctx, "ws"+of, loop.ProtocolSpine, "ci"); return err }},
		{"a queued run", func(rt *RunTx) error {
			_, err := rt.Fire(ctx, loop.Run{ID: "next", LoopID: "lp" + of, N: 2, Key: "next", Trigger: "manual"})
			return err
		}},
		{"a pause", func(rt *RunTx) error { return rt.Pause(ctx, "lp"+of, true) }},
		{"its end", func(rt *RunTx) error { return rt.Pause(ctx, "lp"+of, false) }},
		{"a switch", func(rt *RunTx) error { _, err := rt.SetSwitch(ctx, loop.Actor{Who: "ann"}, "ws"+of, ""); return err }},
		{"the end of the switch", func(rt *RunTx) error { _, err := rt.ClearSwitch(ctx, "ws"+of); return err }},
		{"a definition", func(rt *RunTx) error {
			return rt.SaveDefinition(ctx, "lp"+of, loop.Definition{Name: "new"}.WithDefaults())
		}},
		{"a request to stop", func(rt *RunTx) error { _, err := rt.Cancel(ctx, "run"+of, "enough"); return err }},
		{"an extension", func(rt *RunTx) error { _, err := rt.Extend(ctx, "run"+of, run.Fence); return err }},
		{"an answer", func(rt *RunTx) error { return rt.AnswerApproval(ctx, "ap"+of, loop.Answer{Yes: true, By: "ann"}) }},
		{"a void approval", func(rt *RunTx) error { _, err := rt.VoidApproval(ctx, "late"+of, "old"); return err }},
		{"void approvals", func(rt *RunTx) error {
			_, err := rt.VoidProposals(ctx, "lp"+of, []string{"st" + of}, "", "old")
			return err
		}},
		{"a link", func(rt *RunTx) error { return rt.Link(ctx, "lp"+of, loop.LinkKill, "", "x") }},
		{"a budget", func(rt *RunTx) error { b := other.budget; b.Cap = loop.Amount{}; return rt.SetBudget(ctx, b) }},
		{"a use", func(rt *RunTx) error { return rt.Use(ctx, loop.Amount{Tokens: 1}) }},
		{"a settled budget", func(rt *RunTx) error {
			return rt.SettleBudget(ctx, other.scopes, func(_, _ loop.Amount, _ bool) loop.Amount { return loop.Amount{Tokens: 1} })
		}},
		{"changes that are applied", func(rt *RunTx) error { return rt.Applied(ctx, []loop.PendingChange{{RunID: "run" + of, Seq: 1}}) }},
		{"an effect", func(rt *RunTx) error {
			return rt.SaveEffect(ctx, loop.EffectRequested, loop.Effect{RunID: "run" + of, Seq: 1, State: loop.EffectApplying})
		}},
		{"an agent", func(rt *RunTx) error {
			return rt.SaveAgent(ctx, loop.Agent{ID: "ag" + of, Handle: "ada" + of, Model: "m"})
		}},
		{"a session", func(rt *RunTx) error { return rt.SaveSession(ctx, "claude", loop.Session{ID: "t"}) }},
		{"a session that is dropped", func(rt *RunTx) error { return rt.DropSession(ctx, "claude") }},
		{"a hold", func(rt *RunTx) error { _, err := rt.ClearHold(ctx, "claude"+of); return err }},
		{"what it learned", func(rt *RunTx) error {
			return errors.Join(learn(ctx, rt.Tx, of, "use tabs"), learn(ctx, rt.Tx, of, "another thing"))
		}},
		{"a person's word", func(rt *RunTx) error { rt.SaveMemory("ws"+of, loop.Memory{N: 1, State: loop.MemoryActive}); return nil }},
		{"a message", func(rt *RunTx) error {
			_, err := rt.Deliver(ctx, loop.Delivery{To: "ci", Key: "another", From: "ci", Topic: "t", Text: "look"})
			return err
		}},
		{"a message to a person", func(rt *RunTx) error {
			_, err := rt.Deliver(ctx, loop.Delivery{To: "ann", Person: true, Key: "k", From: "ci", Text: "look"})
			return err
		}},
		{"a message that was taken", func(rt *RunTx) error { return rt.Receive(ctx, loop.Delivery{To: "ci", Key: "k"}) }},
		{"a fingerprint", func(rt *RunTx) error { return rt.SaveGitFingerprint(ctx, "ws"+of, "", "g", "{}") }},
		{"counts", func(rt *RunTx) error {
			return rt.SaveTestRecord(ctx, "tree"+of, "another", loop.TestRecord{TestCounts: loop.TestCounts{Passed: 3}})
		}},
		{"a step", func(rt *RunTx) error { st := other.step; st.State = loop.StepDone; return rt.SaveStep(ctx, st) }},
		{"an iteration", func(rt *RunTx) error {
			return rt.SaveIteration(ctx, loop.Iteration{N: 2, StepID: "st" + of, Verdict: loop.VerdictFail})
		}},
		{"a turn", func(rt *RunTx) error { return rt.SaveTurn(ctx, loop.Turn{N: 1, Ended: "exit"}) }},
		{"events", func(rt *RunTx) error {
			return rt.AppendEvents(ctx, []loop.Event{{Seq: 2, Kind: "note"}, {Seq: 3, Kind: "output"}})
		}},
		{"a claim", func(rt *RunTx) error {
			_, _, err := rt.Claim(ctx, "run"+of, run.Fence, loop.Holder{PID: 2}, loop.Holder{PID: 1})
			run.Fence++
			return err
		}},
		{"the end of the run", func(rt *RunTx) error {
			run.Outcome, run.Snapshot, run.Spent.Agent = loop.OutcomeDone, "ref", time.Minute
			_, err := rt.Settle(ctx, run, loop.PhaseConclude, false)
			return err
		}},
	} {
		err := s.Update(ctx, func(tx *Tx) error {
			rt, err := tx.Enter(ctx, run, loop.PhaseAct)
			if err != nil {
				return err
			}
			return step.do(rt)
		})
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		same(step.name + " of another loop")
	}
}
