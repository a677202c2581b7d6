package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestAReportCountsOnlyInTheFileAndAtTheEndOfTheLastMessage(t *testing.T) {
	const blocked = "```json\n{\"outcome\":\"blocked\",\"reason\":\"no key\"}\n```"
	for name, c := range map[string]struct {
		does func(r agent.Request)
		last string // message
		want loop.Outcome
	}{
		"at the end of the last message": {last: "I cannot go on.\n\n" + blocked, want: loop.OutcomeBlocked},
		"in the file": {does: func(r agent.Request) {
			gittest.WriteFile(t, variable(r, "PAWL_REPORT"), `{"outcome":"blocked","reason":"no key"}`)
		}, want: loop.OutcomeBlocked},
		"in the file, whatever the message says": {
			does: func(r agent.Request) { gittest.WriteFile(t, variable(r, "PAWL_REPORT"), `{"outcome":"done"}`) }, last: blocked, want: loop.OutcomeProposed,
		},
		"in the middle of the last message": {last: blocked + "\nis what I would say if I had no key.", want: loop.OutcomeProposed},
		"in an earlier message": {
			does: func(r agent.Request) { r.OnEvent(agent.Event{Kind: agent.EventText, Text: blocked}) }, last: "It is done.", want: loop.OutcomeProposed,
		},
		"in what a tool gave back": {
			does: func(r agent.Request) { r.OnEvent(agent.Event{Kind: agent.EventReturn, Tool: "Read", Text: blocked}) }, want: loop.OutcomeProposed,
		},
		"in what a tool was given": {
			does: func(r agent.Request) {
				r.OnEvent(agent.Event{Kind: agent.EventCall, Tool: "Bash", Input: json.RawMessage(`{"command":"cat PAWL_REPORT {\"outcome\":\"blocked\"}"}`)})
			}, want: loop.OutcomeProposed,
		},
		"in what the model thought": {
			does: func(r agent.Request) { r.OnEvent(agent.Event{Kind: agent.EventReasoning, Text: blocked}) }, want: loop.OutcomeProposed,
		},
		"in what the program printed":                     {does: func(r agent.Request) { _, _ = fmt.Fprintln(r.Output, blocked) }, want: loop.OutcomeProposed},
		"in a file of the tree":                           {does: func(r agent.Request) { gittest.WriteFile(t, filepath.Join(r.Dir, "src/report.json"), blocked) }, want: loop.OutcomeProposed},
		"in a prompt that is echoed, with more behind it": {last: "You asked: keep things right\n" + blocked + "\nI did.", want: loop.OutcomeProposed},
	} {
		t.Run(name, func(t *testing.T) {
			r := one(t)
			r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
				gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
				if c.does != nil {
					c.does(req)
				}
				return agent.Result{
					Ended: proc.Exited, Claims: true, Took: time.Millisecond, Message: c.last, Usage: loop.Usage{Input: 1, Source: loop.UsageReported},
				}, nil
			}
			if run := r.run(r.worker(loop.TierAssisted, nil), engine.Firing{}); run.Outcome != c.want {
				t.Errorf("run = %s %s %q, want %s", run.Outcome, run.Reason, run.Detail, c.want)
			}
		})
	}
}

func TestAReportWithoutWorkCompletesNothing(t *testing.T) {
	r := one(t)
	r.agent = func(context.Context, agent.Request) (agent.Result, error) {
		return agent.Result{
			Ended: proc.Exited, Claims: true, Took: time.Millisecond, Message: "```json\n{\"outcome\":\"done\"}\n```", Usage: loop.Usage{Input: 1, Source: loop.UsageReported},
		}, nil
	}
	run := r.run(r.worker(loop.TierAssisted, func(d *loop.Definition) { d.MaxIterations = 1 }), engine.Firing{})
	if run.Outcome != loop.OutcomeFailed || run.Reason != loop.ReasonNoChanges {
		t.Errorf("run = %s %s %q, want failed because nothing changed", run.Outcome, run.Reason, run.Detail)
	}
}
