package specs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/approvals"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// begunBefore lets the first iteration of a spec have begun so long ago, and its last one have
// ended then.
func (r rig) begunBefore(id string, ago time.Duration) {
	r.T.Helper()
	r.EditStore(fmt.Sprintf("UPDATE steps SET begun_ms = CASE WHEN begun_ms = 0 THEN 0 ELSE begun_ms - %d END, updated_ms = updated_ms - %d WHERE loop_id = (SELECT loop_id FROM specs WHERE id = '%s')", ago.Milliseconds(), ago.Milliseconds(), id))
}

// run is a run of a spec as `pawl run` and the tool loop_run fire it, by an agent that is a
// line for the shell.
func (r rig) run(id, agent string) runs.View {
	r.T.Helper()
	return r.RunLoop(runs.StartRequest{Loop: id, Overrides: loop.Overrides{AgentCommand: agent, Sandbox: "none"}})
}

func TestASpecThatGaveUpRestsUntilAPersonAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*loopspec.Spec)
		giveUp func(r rig, id string) runs.View
		asks   bool
	}{
		"its time is over between two iterations": {nil, func(r rig, id string) runs.View {
			r.step(id, fails)
			r.begunBefore(id, time.Hour)
			return r.run(id, fails)
		}, true},
		"its time is over inside of an iteration": {
			func(s *loopspec.Spec) { s.Budget.MaxWallClockMs = 1000 },
			func(r rig, id string) runs.View { return r.run(id, "sleep 60") }, true,
		},
		"its iterations are used": {
			func(s *loopspec.Spec) { s.Budget.MaxIterations = 1 },
			func(r rig, id string) runs.View { return r.run(id, fails) }, true,
		},
		"the rule is met": {
			func(s *loopspec.Spec) { s.GiveUp = "same gate 1×" },
			func(r rig, id string) runs.View { return r.run(id, fails) }, true,
		},
		"the rule is met, and ends with stop": {
			func(s *loopspec.Spec) { s.GiveUp = "same gate 1× → stop" },
			func(r rig, id string) runs.View { return r.run(id, fails) }, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(verbtest.New(t))
			id := r.create(c.change).Spec.ID
			gave := c.giveUp(r, id)
			before := r.get(id)
			if gave.Outcome != loop.OutcomeGaveUp || before.Status != loopspec.StatusGaveUp || (before.Approval != "") != c.asks {
				t.Fatalf("the run is %s: %s %q; the spec is %s and asks %q; want it given up with a question: %v", gave.Outcome, gave.Reason, gave.Detail, before.Status, before.Approval, c.asks)
			}

			// Neither a run, nor a change of what it works on, nor the request of a person in a run is an answer.
			gittest.WriteFile(t, r.Root+"/src/b.txt", "new\n")
			gittest.Run(t, r.Root, "add", "-A")
			gittest.Run(t, r.Root, "commit", "-q", "-m", "the base moves")
			for range 2 {
				if again := r.run(id, fails); again.Outcome != loop.OutcomeQuiet || len(again.Iterations) > 0 {
					t.Errorf("one more run is %s with %d iterations, want quiet", again.Outcome, len(again.Iterations))
				}
			}
			if _, err := r.CheckStep(t.Context(), id); err == nil {
				t.Error("it may be stepped")
			}
			after := r.get(id)
			if after.Status != loopspec.StatusGaveUp || after.Used != before.Used || after.TokensUsed != before.TokensUsed || after.StartedAt != before.StartedAt || after.Approval != before.Approval {
				t.Errorf("after more runs it is %s with %d iterations, %d tokens, since %d, asking %q; before: %d, %d, %d, %q",
					after.Status, after.Used, after.TokensUsed, after.StartedAt, after.Approval, before.Used, before.TokensUsed, before.StartedAt, before.Approval)
			}
			if list := must[[]specs.Row](t)(r.List(t.Context(), specs.Query{})); list[0].Status != loopspec.StatusGaveUp {
				t.Errorf("the list says %s", list[0].Status)
			}
			if !c.asks {
				return
			}
			if asked := must[approvals.View](t)(r.Approvals.Find(t.Context(), after.Approval)); !strings.Contains(asked.Action.Why, "Its budget begins anew") || asked.Action.KeepsBudget {
				t.Errorf("the question is %q, and keeps the budget: %v", asked.Action.Why, asked.Action.KeepsBudget)
			}
			must[runs.View](t)(r.Approvals.Approve(t.Context(), after.Approval, loop.Answer{By: "Ann", From: "test"}))
			if v := r.get(id); v.StartedAt <= before.StartedAt {
				t.Errorf("after a yes it is %s with %d iterations since %d, want its budget anew", v.Status, v.Used, v.StartedAt)
			}
		})
	}
}

func TestTheAnswerToWhatAnAgentAsksKeepsWhatWasUsed(t *testing.T) {
	r := newRig(verbtest.New(t))
	id := r.create(nil).Spec.ID
	r.step(id, handsUp)
	before := r.get(id)
	if before.Status != loopspec.StatusWaitingHuman || before.Used != 1 {
		t.Fatalf("it is %s after %d iterations", before.Status, before.Used)
	}
	r.begunBefore(id, time.Hour) // Nobody answers for an hour.
	r.EditStore("UPDATE steps SET begun_ms = begun_ms + 3600000")
	must[runs.View](t)(r.Approvals.Approve(t.Context(), before.Approval, loop.Answer{By: "Ann", From: "test"}))
	v := r.get(id)
	if v.Used < 2 || v.TokensUsed < before.TokensUsed {
		t.Errorf("after the answer %d iterations and %d tokens are used, before %d and %d: they go on", v.Used, v.TokensUsed, before.Used, before.TokensUsed)
	}
	if began := time.UnixMilli(v.StartedAt); time.Since(began) > 30*time.Minute {
		t.Errorf("it began %s: the time of the question is not the agent's", began)
	}
}

func TestWhatIsWorkedOnAgainKeepsWhatWasUsed(t *testing.T) {
	r := newRig(verbtest.New(t))
	id := r.create(nil).Spec.ID
	r.step(id, fails)
	before := r.get(id)
	again := r.RunLoop(runs.StartRequest{Loop: id, Overrides: loop.Overrides{Step: "goal", MaxIterations: 1, AgentCommand: fails, Sandbox: "none"}})
	if v := r.get(id); len(again.Iterations) != 1 || v.Used != 2 || v.StartedAt != before.StartedAt {
		t.Errorf("worked on again, it has %d iterations since %d, want two since %d", v.Used, v.StartedAt, before.StartedAt)
	}
}

func TestRunsThatFindNothingTakeNoTimeOfALife(t *testing.T) {
	queue := func(s *loopspec.Spec) { s.StateSource = "queue: cat src/queue" }
	commit := func(r rig, text string) {
		gittest.WriteFile(r.T, r.Root+"/src/queue", text)
		gittest.Run(r.T, r.Root, "add", "-A")
		gittest.Run(r.T, r.Root, "commit", "-q", "-m", "queue")
	}
	r := newRig(verbtest.New(t))
	commit(r, "one\n")
	id := r.create(queue).Spec.ID
	r.step(id, fails)
	commit(r, "")
	r.begunBefore(id, time.Hour)
	if v := r.run(id, fails); v.Outcome != loop.OutcomeQuiet {
		t.Fatalf("with an empty queue the run is %s: %s", v.Outcome, v.Detail)
	}
	commit(r, "two\n")
	if v := r.step(id, fails); len(v.Iterations) != 1 {
		t.Errorf("after an hour in which nothing was found the run is %s: %s %s", v.Outcome, v.Reason, v.Detail)
	}
	if v := r.get(id); v.Status != loopspec.StatusRunning || v.Used != 2 {
		t.Errorf("it is %s after %d iterations", v.Status, v.Used)
	}

	looks := r.create(nil).Spec.ID
	for range 2 {
		if v := r.step(looks, verbtest.FindsNone); v.Outcome != loop.OutcomeQuiet {
			t.Fatalf("an agent that finds nothing ends the run %s: %s", v.Outcome, v.Detail)
		}
		r.begunBefore(looks, time.Hour)
	}
	if v := r.step(looks, fails); len(v.Iterations) != 1 || v.Outcome == loop.OutcomeGaveUp {
		t.Errorf("after two hours in which its agent found nothing the run is %s: %s %s", v.Outcome, v.Reason, v.Detail)
	}
}

func TestWhatAPersonDoesWithASpecCountsWhateverTheRowOfItsGoalSays(t *testing.T) {
	const works, rests = true, false
	acts := map[string]func(r rig, id string){
		"looks on": func(rig, string) {},
		"edits it": func(r rig, id string) {
			edit := specs.EditRequest{Spec: id, File: "spec.json", Document: contract(func(s *loopspec.Spec) { s.Goal = "It says two, always." })}
			must[specs.View](r.T)(r.Edit(r.T.Context(), verbtest.Ann, edit))
		},
		"flags what was missed": func(r rig, id string) { must[specs.View](r.T)(r.Flag(r.T.Context(), verbtest.Ann, id, "the docs")) },
	}
	for state, want := range map[loop.StepState]map[string]bool{
		loop.StepOpen:      {"looks on": works, "edits it": works, "flags what was missed": works},
		loop.StepBlocked:   {"looks on": works, "edits it": works, "flags what was missed": works},
		loop.StepFailed:    {"looks on": works, "edits it": works, "flags what was missed": works},
		loop.StepDropped:   {"looks on": works, "edits it": works, "flags what was missed": works},
		loop.StepEscalated: {"looks on": rests, "edits it": works, "flags what was missed": rests},
		loop.StepDone:      {"looks on": rests, "edits it": rests, "flags what was missed": works},
	} {
		t.Run(string(state), func(t *testing.T) {
			r := newRig(verbtest.New(t))
			for act, works := range want {
				id := r.create(nil).Spec.ID
				r.step(id, fails)
				r.EditStore(fmt.Sprintf("UPDATE steps SET state = '%s', blocked_at = -9 WHERE loop_id = (SELECT loop_id FROM specs WHERE id = '%s')", state, id))
				acts[act](r, id)
				run := r.RunLoop(runs.StartRequest{Loop: id, Overrides: loop.Overrides{MaxIterations: 1, AgentCommand: fails, Sandbox: "none"}})
				if got := len(run.Iterations) == 1; got != works || run.Reason == loop.ReasonInternal || run.Reason == loop.ReasonMemory {
					t.Errorf("a person %s: the run is %s (%s: %s) with %d iterations, want it worked on: %v", act, run.Outcome, run.Reason, run.Detail, len(run.Iterations), works)
				}
			}
		})
	}
}
