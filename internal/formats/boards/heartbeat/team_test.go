package heartbeat_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestOfManyAgentsThatWakeAtOnceEachHasATaskOfItsOwn(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		const agents, tasks = 12, 8
		var handles []string
		for n := range agents {
			handles = append(handles, fmt.Sprintf("dev%d", n))
		}
		r.team(handles...)
		for n := range tasks {
			r.add(task(fmt.Sprintf("tk_%d", n)))
		}
		var mu sync.Mutex
		workers := map[string][]string{} // by task
		r.act = func(w worked) string {
			mu.Lock()
			defer mu.Unlock()
			workers[w.step] = append(workers[w.step], w.handle)
			return `{"outcome":"done","no_change":true,"summary":"done"}`
		}
		var all sync.WaitGroup
		for _, h := range handles {
			all.Go(func() {
				if _, err := r.engine.Run(t.Context(), r.target(h), engine.Firing{Trigger: "manual"}); err != nil {
					t.Errorf("@%s: %v", h, err)
				}
			})
		}
		all.Wait()
		for n := range tasks {
			got := r.task(fmt.Sprintf("tk_%d", n))
			if w := workers[got.Title]; len(w) != 1 || got.AssigneeID != w[0] || got.Status != board.Done {
				t.Errorf("%s was worked on by %v; it is in %s of %q", got.ID, w, got.Status, got.AssigneeID)
			}
		}
	})
}

func TestAClaimIsFreeWhenTheLeaseOfItsRunIsOver(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.team("dev", "ops")
		r.add(task("tk_1"))
		var once sync.Once
		r.act = func(w worked) string {
			if w.handle == "dev" {
				once.Do(func() {
					r.lapse("dev") // As if its process stood still. Another agent wakes.
					if got := r.beat("ops"); got.Outcome != loop.OutcomeDone && got.Outcome != loop.OutcomeProposed {
						t.Errorf("another agent after the lease: %s %s %q", got.Outcome, got.Reason, got.Detail)
					}
				})
			}
			return `{"outcome":"done","no_change":true,"summary":"done by ` + w.handle + `"}`
		}
		_, err := r.engine.Run(t.Context(), r.target("dev"), engine.Firing{Trigger: "manual"})
		got := r.task("tk_1")
		if got.AssigneeID != "ops" || got.Status != board.Done {
			t.Errorf("the task is in %s of %q (the first run: %v), want done by ops", got.Status, got.AssigneeID, err)
		}
	})
}

func TestAQuestionBlocksItsTaskUntilItIsAnswered(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.team("lead", "dev")
		r.add(task("tk_1"))
		r.act = func(w worked) string {
			switch {
			case w.handle == "lead":
				return `{"outcome":"done","summary":"take the second one"}`
			case strings.Contains(w.Prompt, "take the second one"):
				return `{"outcome":"done","no_change":true,"summary":"took it"}`
			}
			return `{"outcome":"blocked","reason":"which one?","messages":[{"to":"@lead","kind":"question","content":"the first or the second?"}]}`
		}
		if run := r.beat("dev"); run.Outcome != loop.OutcomeBlocked {
			t.Fatalf("run %s %s %q, want blocked", run.Outcome, run.Reason, run.Detail)
		}
		for range 5 { // More than a step that is blocked waits for by itself.
			r.wait(20 * time.Minute)
			if run := r.beat("dev"); run.Outcome != loop.OutcomeQuiet {
				t.Errorf("while the question is open: %s %s %q", run.Outcome, run.Reason, run.Detail)
			}
		}
		r.beat("lead")
		r.wait(20 * time.Minute)
		r.beat("dev")
		if got := r.task("tk_1"); got.Status != board.Done {
			t.Errorf("after the answer the task is in %s: %v", got.Status, r.turns)
		}
	})
}

func TestAnAnswerLetsItsTaskGoOnAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.team("lead", "dev")
		r.add(task("tk_1"))
		r.act = func(w worked) string {
			switch {
			case w.handle == "lead":
				return `{"outcome":"done","summary":"take the second one"}`
			case strings.Contains(w.Prompt, "take the second one"):
				return `{"outcome":"done","no_change":true,"summary":"took it"}`
			}
			return `{"outcome":"blocked","reason":"which one?","messages":[{"to":"@lead","kind":"question","content":"the first or the second?"}]}`
		}
		r.beat("dev")
		r.beat("lead")
		r.wait(20 * time.Minute)
		r.beat("dev")
		if got := r.task("tk_1"); got.Status != board.Done {
			t.Errorf("in the heartbeat after the answer the task stays in %s: %v", got.Status, r.turns)
		}
	})
}

func TestEachIterationOfATaskMaySendMessages(t *testing.T) {
	r := newRig(t, databases["sqlite"](t))
	r.team("lead", "dev")
	r.add(task("tk_1"))
	r.act = func(w worked) string {
		if len(r.turns) == 1 { // Done is claimed, and nothing has changed: it is tried again.
			return `{"outcome":"done","messages":[{"to":"@lead","kind":"report","content":"the first attempt"}]}`
		}
		return `{"outcome":"done","no_change":true,"messages":[{"to":"@lead","kind":"report","content":"the second attempt"}]}`
	}
	r.beat("dev")
	var got []string
	err := r.store.View(t.Context(), func(rd *store.Reader) error {
		list, err := rd.Undelivered(t.Context(), "ws", "@lead", 10)
		for _, d := range list {
			got = append(got, d.Text)
		}
		return err
	})
	if err != nil || len(got) != 2 {
		t.Errorf("the lead got %q, %v; want both reports", got, err)
	}
}

func TestAfterThreeErrorsAnAgentCoolsOffAndAsksNoModel(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.team("dev")
		for n := range 9 {
			r.add(task(fmt.Sprintf("tk_%d", n)))
		}
		broken := true
		r.act = func(worked) string {
			if broken {
				return `{"outcome":`
			}
			return `{"outcome":"done","no_change":true,"summary":"fine"}`
		}
		for len(r.turns) < 3 {
			r.beat("dev")
			r.wait(20 * time.Minute)
		}
		m := r.mind("dev")
		if m.WorkingMemory.ErrorCount < 3 || m.CoolUntil == 0 {
			t.Fatalf("after three errors: %+v", m)
		}
		if errors := rows[board.Error](r, loop.RowQuery{Set: board.SetErrors, Owner: "dev"}); len(errors) != m.WorkingMemory.ErrorCount {
			t.Errorf("%d errors are stored, want %d", len(errors), m.WorkingMemory.ErrorCount)
		}
		turns := len(r.turns)
		if run := r.beat("dev"); len(r.turns) != turns || run.Outcome != loop.OutcomeQuiet {
			t.Errorf("while it cools off: %s %s, %d more turns", run.Outcome, run.Reason, len(r.turns)-turns)
		}
		broken = false
		r.wait(time.Hour)
		r.beat("dev")
		if m := r.mind("dev"); m.WorkingMemory.ErrorCount != 0 || m.CoolUntil != 0 {
			t.Errorf("after a success: %+v", m)
		}
	})
}

func TestAnAgentThatLookedAShortTimeAgoStandsBy(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.team("dev")
		r.beat("dev")
		r.add(task("tk_1"))
		r.wait(time.Minute)
		if run := r.beat("dev"); run.Outcome != loop.OutcomeQuiet || !r.noted("route: not scanned") {
			t.Errorf("a minute later: %s, %q", run.Outcome, r.notes)
		}
		r.wait(15 * time.Minute)
		r.beat("dev")
		if got := r.task("tk_1"); got.Status == board.Todo {
			t.Error("16 minutes later the task is not taken")
		}
	})
}

func TestATaskThatIsNotReadyIsFlaggedOnceForEachOfItsStates(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.team("lead", "dev")
		bare := task("tk_1", func(t *board.Task) { t.Description = "" })
		r.add(bare)
		asked := func() int {
			n := 0
			for _, turn := range r.turns {
				if strings.HasPrefix(turn, "reply lead: answer the question of @dev") {
					n++
				}
			}
			return n
		}
		for range 3 {
			r.beat("dev")
			r.wait(20 * time.Minute)
			r.beat("lead")
			r.wait(20 * time.Minute)
		}
		if got := r.task("tk_1"); got.Status != board.Todo || got.AssigneeID != "" || asked() != 1 {
			t.Errorf("the task is in %s of %q, and the lead was asked %d times: %v", got.Status, got.AssigneeID, asked(), r.turns)
		}
	})
}

func TestAnAnswerTurnsTheHeartbeatToTheBoardOfItsTask(t *testing.T) {
	r := newRig(t, databases["sqlite"](t))
	r.team("ops")
	r.add(board.Board{ID: "bd_a", Name: "A", Slug: "a", Waived: true}, board.Member{Handle: "dev", Role: "developer", Layer: board.Specialist, BoardIDs: []string{"bd_core", "bd_a"}},
		task("tk_1", func(t *board.Task) { t.BoardID = "bd_a" }))
	r.act = func(w worked) string {
		if strings.Contains(w.Prompt, "rm src/a.txt") {
			return `{"outcome":"done","summary":"it is gone"}`
		}
		return `{"outcome":"continue","commands":[{"argv":["rm","src/a.txt"],"why":"it is in the way"}]}`
	}
	run := r.beat("dev")
	r.add(task("tk_2", func(t *board.Task) { t.Priority = board.Urgent }))
	_, firing, err := r.engine.Answer(t.Context(), run.Approval, loop.Answer{Yes: true, By: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := r.engine.Run(t.Context(), r.target("dev"), firing)
	if got := r.task("tk_1"); err != nil || second.Outcome != loop.OutcomeProposed || got.Status != board.Review {
		t.Errorf("after the yes: run %s %s %q %v, the task is in %s: %v", second.Outcome, second.Reason, second.Detail, err, got.Status, r.turns)
	}
}

func TestCommandsAreInTheLogBeforeTheyRunAndOneThatIsIrreversibleWaitsForAPerson(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.team("dev")
		r.add(task("tk_1"), task("tk_2", func(t *board.Task) { t.Order = 1 }))
		asked := 0
		r.act = func(w worked) string {
			switch {
			case strings.Contains(w.step, "tk_2"):
				return `{"outcome":"done","no_change":true,"summary":"the other one"}`
			case asked == 0:
				asked++
				return `{"outcome":"continue","commands":[{"argv":["cat","src/a.txt"],"why":"to see it"},{"argv":["rm","src/a.txt"],"why":"it is in the way"}]}`
			}
			return `{"outcome":"done","summary":"it is gone"}`
		}
		first := r.beat("dev")
		if first.Outcome != loop.OutcomeWaiting || first.Approval == "" {
			t.Fatalf("run %s %s %q, want waiting_human", first.Outcome, first.Reason, first.Detail)
		}
		if got := r.task("tk_1"); got.Status != board.InProgress || got.ExecutionStatus != board.ExecutionApproval || got.AssigneeID != "dev" {
			t.Errorf("while a person thinks the task is %+v", got)
		}
		var log []string
		for _, e := range rows[board.LogEntry](r, loop.RowQuery{Set: board.SetLog, Scope: "tk_1"}) {
			log = append(log, string(e.Type)+" "+strings.ReplaceAll(e.Content, "\n", "|"))
		}
		for n, want := range []string{"info claimed by", "command plan 1 of 2 (run): cat src/a.txt|to see it", "command plan 2 of 2 (ask): rm src/a.txt|it is in the way", "output met: cat src/a.txt|one", "output asked: rm src/a.txt"} {
			if n >= len(log) || !strings.HasPrefix(log[n], want) {
				t.Errorf("the log has no %q at %d: %q", want, n, log)
			}
		}
		r.wait(20 * time.Minute)
		r.beat("dev")
		if got := r.task("tk_2"); got.Status != board.Done {
			t.Errorf("the agent is free meanwhile, and tk_2 is in %s: %q", got.Status, r.turns)
		}
		_, firing, err := r.engine.Answer(t.Context(), first.Approval, loop.Answer{Yes: true, By: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		second, err := r.engine.Run(t.Context(), r.target("dev"), firing)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.task("tk_1"); second.Outcome != loop.OutcomeProposed || got.Status != board.Review {
			t.Errorf("after the yes: run %s %s %q, the task is in %s", second.Outcome, second.Reason, second.Detail, got.Status)
		}
	})
}

func TestTheLogOfATaskIsARing(t *testing.T) {
	r := newRig(t, databases["sqlite"](t))
	r.team("dev")
	r.add(task("tk_1", func(t *board.Task) { t.AssigneeID = "dev" }))
	step := loop.Step{ID: engine.StepID("lp_dev", "tk_1"), LoopID: "lp_dev", Key: "tk_1", Kind: loop.StepWork, Title: "do tk_1", State: loop.StepOpen, Attempts: 60}
	r.act = func(worked) string { return `{"outcome":"blocked","reason":"not now"}` }
	r.beat("dev")
	err := r.store.Update(t.Context(), func(tx *store.Tx) error {
		for n := range board.MostLog + 20 {
			e := board.LogEntry{Type: board.LogInfo, Content: fmt.Sprint(n)}
			if err := tx.WriteRow(t.Context(), "ws", e.Row(fmt.Sprintf("tk_1/old/%04d", n), "tk_1", "dev")); err != nil {
				return err
			}
		}
		_, err := tx.SQLite().ExecContext(t.Context(), `UPDATE steps SET attempts = $1 WHERE id = $2`, step.Attempts, step.ID)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r.wait(20 * time.Minute)
	r.beat("dev")
	log := rows[board.LogEntry](r, loop.RowQuery{Set: board.SetLog, Scope: "tk_1", Limit: 5000})
	if len(log) > board.MostLog+4 || len(log) < board.MostLog || log[len(log)-1].Content == "" {
		t.Errorf("the log has %d entries, want about %d", len(log), board.MostLog)
	}
}

func TestOnlyTheFilesOfTheTasksBoardMayBeChanged(t *testing.T) {
	r := newRig(t, databases["sqlite"](t))
	r.team("dev")
	r.add(board.Board{ID: "bd_docs", Name: "Docs", Slug: "docs", Waived: true, Scope: []string{"src/docs/**"}})
	r.add(board.Member{Handle: "ops", Role: "writer", Layer: board.Specialist, BoardIDs: []string{"bd_core", "bd_docs"}},
		task("tk_1", func(t *board.Task) { t.BoardID, t.Priority = "bd_docs", board.Urgent }))
	r.act = func(w worked) string {
		if !strings.Contains(w.Prompt, "Change only files that match: src/docs/**") {
			t.Errorf("the prompt allows more than the board does:\n%s", w.Prompt)
		}
		w.write(t, "src/a.txt", "of another board\n")
		return `{"outcome":"done","summary":"changed"}`
	}
	run := r.beat("ops") // Its definition allows src/**.
	if got := r.task("tk_1"); run.Outcome != loop.OutcomeRefused || got.Status == board.Review || got.Status == board.Done {
		t.Errorf("run %s %q, the task is in %s; want it refused", run.Outcome, run.Detail, got.Status)
	}
}
