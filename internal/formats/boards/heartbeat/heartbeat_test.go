package heartbeat_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestATaskIsClaimedWorkedOnAndDone(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.team("dev")
		r.add(task("tk_1"))
		r.act = func(w worked) string {
			now := r.task("tk_1")
			if now.Status != board.InProgress || now.AssigneeID != "dev" || now.ExecutionStatus != board.ExecutionRunning || now.ClaimedAt == 0 {
				t.Errorf("while it is worked on the task is %+v", now)
			}
			if m := r.mind("dev"); m.Status != board.Working || m.CurrentTaskID != "tk_1" {
				t.Errorf("while it works the agent is %+v", m)
			}
			if !strings.Contains(w.Prompt, "as it says") || !strings.Contains(w.Prompt, "You are @dev") {
				t.Errorf("the prompt lacks the task or the role:\n%s", w.Prompt)
			}
			return `{"outcome":"done","summary":"it was right already","no_change":true,"pitfalls":["look first"]}`
		}
		run := r.beat("dev")
		if got := r.task("tk_1"); got.Status != board.Done || got.ExecutionStatus != board.ExecutionCompleted || got.CompletedAt == 0 || got.AssigneeID != "dev" {
			t.Errorf("after run %s %s %q the task is %+v", run.Outcome, run.Reason, run.Detail, got)
		}
		m := r.mind("dev")
		if took := m.HealthMetrics.AvgCompletionTime; took <= 0 {
			t.Errorf("the task took %d ms by what the agent knows", took)
		}
		if m.Status != board.Idle || m.CurrentTaskID != "" || m.HealthMetrics.TasksCompleted != 1 || !slices.Contains(m.WorkingMemory.Reflections, "look first") || m.LastHeartbeat == 0 {
			t.Errorf("after it the agent is %+v", m)
		}
		var kinds []board.ActionType
		for _, a := range rows[board.Activity](r, loop.RowQuery{Set: board.SetActivity, Scope: "bd_core"}) {
			kinds = append(kinds, a.ActionType)
		}
		if diff := cmp.Diff([]board.ActionType{board.TaskClaimed, board.TaskCompleted, board.AgentHeartbeat}, kinds); diff != "" {
			t.Errorf("activity (-want +got):\n%s", diff)
		}
		if log := rows[board.LogEntry](r, loop.RowQuery{Set: board.SetLog, Scope: "tk_1"}); len(log) != 2 || !strings.HasPrefix(log[0].Content, "claimed by @dev") || !strings.Contains(log[1].Content, "right already") {
			t.Errorf("execution log: %+v", log)
		}
		for _, phase := range []string{"wake: ", "mentions: ", "messages: ", "route: core", "claim: tk_1", "sleep: idle"} {
			if !r.noted(phase) {
				t.Errorf("the trace says nothing of %q: %q", phase, r.notes)
			}
		}
		if again := r.beat("dev"); again.Outcome != loop.OutcomeQuiet || again.Usage.ChargedTokens() != 0 {
			t.Errorf("with nothing to do the run is %s", again.Outcome)
		}
	})
}

func TestAChangeIsProposedAndTheTaskIsDoneWhenItHasLanded(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.team("dev")
		r.add(task("tk_1"))
		run := r.beat("dev")
		if got := r.task("tk_1"); run.Outcome != loop.OutcomeProposed || got.Status != board.Review {
			t.Fatalf("run %s %q, the task is in %s", run.Outcome, run.Detail, got.Status)
		}
		_, firing, err := r.engine.Answer(t.Context(), run.Approval, loop.Answer{By: "ann", Note: "too short"})
		if err != nil {
			t.Fatal(err)
		}
		_ = firing
		r.wait(20 * time.Minute)
		r.act = func(w worked) string {
			if !strings.Contains(w.Prompt, "too short") {
				t.Errorf("the prompt does not say why it was rejected:\n%s", w.Prompt)
			}
			w.write(t, "src/b.txt", "longer\n")
			return `{"outcome":"done","summary":"longer"}`
		}
		again := r.beat("dev")
		if got := r.task("tk_1"); again.Outcome != loop.OutcomeProposed || got.Status != board.Review {
			t.Fatalf("after the rejection: run %s %s %q, the task is in %s", again.Outcome, again.Reason, again.Detail, got.Status)
		}
		_, firing, err = r.engine.Answer(t.Context(), again.Approval, loop.Answer{Yes: true, By: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		if landed, err := r.engine.Run(t.Context(), r.target("dev"), firing); err != nil || landed.Outcome != loop.OutcomeLanded {
			t.Fatalf("landing: %s %q %v", landed.Outcome, landed.Detail, err)
		}
		r.wait(20 * time.Minute)
		r.beat("dev")
		if got := r.task("tk_1"); got.Status != board.Done {
			t.Errorf("after it has landed the task is in %s", got.Status)
		}
	})
}

func TestMentionsAndMessagesAreAnsweredBeforeWorkAndOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.team("lead", "dev")
		r.add(task("tk_1"), task("tk_2", func(t *board.Task) { t.Status = board.Backlog; t.AssigneeID = "lead" }),
			board.Comment{ID: "cm_1", TaskID: "tk_1", AuthorType: board.ByHuman, AuthorID: board.Human, Content: "@dev which port?", Mentions: []string{"dev"}},
			board.Subscription{ID: "sb_1", AgentID: "dev", TaskID: "tk_1", CommentID: "cm_1"})
		r.act = func(w worked) string {
			switch {
			case w.handle == "lead" && w.Purpose == loop.PurposeAct:
				return `{"outcome":"done","no_change":true,"summary":"planned","messages":[{"to":"@dev","kind":"order","content":"do tk_1 first"},{"to":"@nobody","kind":"order","content":"x"}]}`
			case w.Purpose == loop.PurposeReply && strings.Contains(w.step, "port"):
				return `{"outcome":"done","summary":"8080"}`
			case w.Purpose == loop.PurposeReply:
				return `{"outcome":"done","summary":"understood"}`
			}
			return `{"outcome":"done","no_change":true,"summary":"did it"}`
		}
		r.beat("lead")
		if !r.noted("the order to @nobody is not sent") {
			t.Errorf("an order to nobody: %q", r.notes)
		}
		r.turns = nil
		r.beat("dev")
		want := []string{"reply dev: answer a person: @dev which port?", "reply dev: answer the order of @lead: do tk_1 first", "act dev: do tk_1"}
		if diff := cmp.Diff(want, r.turns); diff != "" {
			t.Errorf("turns (-want +got):\n%s", diff)
		}
		comments := rows[board.Comment](r, loop.RowQuery{Set: board.SetComments, Scope: "tk_1"})
		if len(comments) != 2 || comments[1].Content != "8080" || comments[1].ParentID != "cm_1" || comments[1].AuthorID != "dev" {
			t.Errorf("comments: %+v", comments)
		}
		r.turns = nil
		r.wait(time.Hour)
		r.beat("dev")
		r.beat("lead")
		for _, turn := range r.turns {
			if strings.HasPrefix(turn, "reply") {
				t.Errorf("answered again, or an answer was answered: %v", r.turns)
			}
		}
	})
}

func TestAPersonIsAnsweredAlsoBelowAThreadThatIsLongerThanWhatIsRead(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.team("lead", "dev")
		r.add(task("tk_1", func(t *board.Task) { t.AssigneeID = "lead"; t.Status = board.Backlog }))
		const comments = 60
		mention := func(n int, id string) {
			r.add(board.Subscription{ID: id, AgentID: "dev", TaskID: "tk_1", CommentID: fmt.Sprintf("cm_%02d", n)})
		}
		for n := range comments {
			r.add(board.Comment{ID: fmt.Sprintf("cm_%02d", n), TaskID: "tk_1", AuthorType: board.ByHuman, AuthorID: board.Human, Content: fmt.Sprintf("@dev number %d", n), Mentions: []string{"dev"}})
			mention(n, fmt.Sprintf("sb_%02d", n))
		}
		r.act = func(w worked) string { return fmt.Sprintf(`{"outcome":"done","summary":"turn %d"}`, len(r.turns)) }
		r.beat("dev")
		mention(0, "sb_again") // Of a comment that fifty others follow, answers of the agent among them.
		r.beat("dev")
		answers := map[string]int{}
		for _, c := range rows[board.Comment](r, loop.RowQuery{Set: board.SetComments}) {
			if c.AuthorID == "dev" {
				answers[c.ParentID]++
			}
		}
		if len(answers) != comments || answers["cm_00"] != 2 {
			t.Errorf("%d comments are answered, the first one %d times; want %d and 2", len(answers), answers["cm_00"], comments)
		}
	})
}

func TestATaskStaysInReviewWhileItsChangeIsMadeAgainOnABaseThatHasMoved(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.team("ada", "ben")
		r.add(task("tk_1"), task("tk_2"))
		first, second := r.beat("ada"), r.beat("ben")
		land := func(handle, approval string) loop.Run {
			_, firing, err := r.engine.Answer(t.Context(), approval, loop.Answer{Yes: true, By: "ann"})
			if err != nil {
				t.Fatal(err)
			}
			run, err := r.engine.Run(t.Context(), r.target(handle), firing)
			if err != nil {
				t.Fatal(err)
			}
			return run
		}
		land("ada", first.Approval)
		err := r.store.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.VoidApproval(t.Context(), second.Approval, "main has moved")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		again, err := r.engine.Run(t.Context(), r.target("ben"), engine.Firing{Trigger: loop.TriggerApproval, Rebase: second.Approval})
		if got := r.task("tk_2"); err != nil || got.Status != board.Review || again.Approval == "" {
			t.Fatalf("made again: %s %q %v, the task is in %s", again.Outcome, again.Detail, err, got.Status)
		}
		land("ben", again.Approval)
		r.wait(20 * time.Minute)
		r.beat("ben")
		if got, m := r.task("tk_2"), r.mind("ben"); got.Status != board.Done || m.HealthMetrics.TasksCompleted != 1 {
			t.Errorf("after it has landed the task is in %s, and %d are completed", got.Status, m.HealthMetrics.TasksCompleted)
		}
	})
}
