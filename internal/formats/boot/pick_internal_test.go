package boot

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/boot/bootrepo"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// With whatever rows the store has, a run works on the task that the files name, or on none
// if they name none. Only a question that a person has not answered keeps it from that.
func TestTheSameFilesGiveTheSameTaskWithAnyStore(t *testing.T) {
	now := time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)
	states := []loop.StepState{
		loop.StepOpen, loop.StepClaimed, loop.StepDone, loop.StepFailed, loop.StepBlocked, loop.StepEscalated, loop.StepDropped,
	}
	rapid.Check(t, func(rt *rapid.T) {
		s := &session{contract: bootrepo.Contract{Schemas: bootstate.FormatSchemas()}}
		s.v = engine.View{Now: now, Run: loop.Run{ID: "run_now", N: rapid.Int64Range(1, 50).Draw(rt, "number")}}
		s.v.Run.Request = rapid.SampledFrom([]string{"", "", "T-1", "Make the till"}).Draw(rt, "request")
		s.memory = bootstate.Memory{State: bootstate.NewState("shop", now), Tasks: bootstate.NewTodo(now)}
		s.memory.State.SetNextIntent(rapid.SampledFrom([]string{"", "T-0", "T-2", "go on with T-1"}).Draw(rt, "intent"))
		for i := range rapid.IntRange(0, 5).Draw(rt, "tasks") {
			task := bootstate.Task{
				ID: fmt.Sprint("T-", i), Title: fmt.Sprint("Title ", i),
				Status:   rapid.SampledFrom([]bootstate.Status{"pending", "pending", "in-progress", "blocked", "done"}).Draw(rt, "status"),
				Priority: rapid.SampledFrom([]bootstate.Priority{"critical", "high", "medium", "low"}).Draw(rt, "priority"),
			}
			if i > 0 && rapid.Bool().Draw(rt, "depends") {
				task.Dependencies = []string{fmt.Sprint("T-", i-1)}
			}
			s.memory.Tasks.Add(task, now)
			if !rapid.Bool().Draw(rt, "has a row") {
				continue
			}
			row := loop.Step{
				ID: fmt.Sprint("st_", i), Key: task.ID, Kind: loop.StepWork, State: rapid.SampledFrom(states).Draw(rt, "row"),
				Attempts: rapid.IntRange(0, 9).Draw(rt, "attempts"), BlockedAt: rapid.Int64Range(0, 60).Draw(rt, "blocked at"),
				RunID: rapid.SampledFrom([]string{"", "run_before"}).Draw(rt, "run"), WaitsFor: rapid.SampledFrom([]string{"", "ap_1"}).Draw(rt, "waits"),
				Inputs: rapid.SampledFrom([]string{"", "digest"}).Draw(rt, "inputs"), Feedback: "it failed",
			}
			s.v.Steps = append(s.v.Steps, row)
		}
		want, _ := bootstate.Plan(s.memory.State, s.memory.Tasks, s.v.Run.Request, nil, now)
		rules := plan.Rules{MaxIterations: 3, MaxItems: 1, MaxWallClock: time.Hour, RetryBlockedAfter: 3}
		d := plan.Next(plan.Snapshot{Rules: rules, Run: s.v.Run.N, RunID: s.v.Run.ID, Candidates: s.Candidates(engine.Sensed{}, now), Started: now}, now)
		got := ""
		if d.Choice != nil {
			got = d.Choice.Step.Key
		}
		if got != want.Task {
			rt.Fatalf("with the rows %+v the run works on %q, and the files say %q (%s)", s.v.Steps, got, want.Task, want.Reason)
		}
	})
}
