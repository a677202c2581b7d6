package engine_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// What a person allowed is a command on a tree. Whatever else lands meanwhile, it runs there.
func TestAYesToACommandRunsItOnTheTreeForWhichItWasGiven(t *testing.T) {
	t.Parallel()
	for name, writes := range map[string]string{"a step that changed nothing": "", "a step that changed a file": "src/b.txt"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, storetest.SQLite(t))
			def := loop.Definition{Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x"}
			target := r.target("b", boardLike{nil, []string{"clean the table"}}, def)
			ask := agent.Ask{Argv: []string{"/bin/sh", "-c", "cp src/a.txt src/seen.txt && cat src/a.txt"}}
			var prompt string
			r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
				if prompt = req.Prompt; strings.Contains(prompt, "said yes") {
					return says(t, req, `{"outcome":"done","summary":"copied"}`)
				}
				if writes != "" {
					gittest.WriteFile(t, filepath.Join(req.Dir, writes), "mine\n")
				}
				return agent.Result{Ended: proc.Exited, Asks: []agent.Ask{ask}}, nil
			}
			first := r.run(target, engine.Firing{})
			if first.Outcome != loop.OutcomeWaiting || first.Snapshot == "" {
				t.Fatalf("run = %s %q, kept in %q; want a question and the tree kept", first.Outcome, first.Detail, first.Snapshot)
			}
			gittest.WriteFile(t, filepath.Join(r.root, "src/a.txt"), "another one\n")
			gittest.Run(t, r.root, "commit", "-qam", "something else landed")
			gittest.Run(t, r.root, "gc", "-q", "--prune=now")
			_, firing, err := r.engine.Answer(t.Context(), first.Approval, loop.Answer{Yes: true, By: "ann"})
			if err != nil {
				t.Fatal(err)
			}
			second := r.run(target, firing)
			if second.Outcome != loop.OutcomeProposed || !strings.Contains(prompt, "ended with exit status 0\none\n") {
				t.Fatalf("run = %s %s %q, and the agent was told %q; want that the command saw the tree of the question", second.Outcome, second.Reason, second.Detail, prompt)
			}
			if got := gittest.Run(t, r.root, "show", second.Branch+":src/seen.txt"); got != "one" {
				t.Errorf("the command copied %q, want what the tree of the question has", got)
			}
			if got := gittest.Run(t, r.root, "rev-parse", second.Branch+"^"); got != first.BaseCommit {
				t.Errorf("the proposal is made on %s, want %s, from which it is rebased like any other", got, first.BaseCommit)
			}
			r.void(second.Approval)
			third := r.run(target, engine.Again(second.Approval, ada))
			if third.Outcome != loop.OutcomeProposed || gittest.Run(t, r.root, "show", third.Branch+":src/a.txt") != "another one" {
				t.Errorf("the rebased one = %s %s %q, want it on what landed meanwhile", third.Outcome, third.Reason, third.Detail)
			}
		})
	}
}

// A person who has said no is not asked again, and the agent is told so in every turn.
func TestARejectedCommandIsRememberedAsLongAsItsStepLives(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		def := loop.Definition{Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x"}
		target := r.target("b", boardLike{nil, []string{"clean the table"}}, def)
		ask, other := agent.Ask{Argv: []string{"/bin/rm", "-r", "src"}}, agent.Ask{Argv: []string{"/bin/rm", "src/a.txt"}}
		wants := ask
		var prompts []string
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			prompts = append(prompts, req.Prompt)
			res, err := says(t, req, `{"outcome":"failed","reason":"it is in the way"}`)
			res.Asks = []agent.Ask{wants}
			return res, err
		}
		first := r.run(target, engine.Firing{})
		_, firing, err := r.engine.Answer(t.Context(), first.Approval, loop.Answer{By: "ann", Note: "move it to old/ instead"})
		if err != nil {
			t.Fatal(err)
		}
		runs := []loop.Run{r.run(target, firing)}
		for range 4 {
			runs = append(runs, r.run(target, engine.Firing{}))
		}
		for i, run := range runs {
			if run.Approval != "" && run.Approval != first.Approval || run.Outcome == loop.OutcomeWaiting {
				t.Errorf("run %d = %s %q asks again", i+2, run.Outcome, run.Detail)
			}
		}
		if len(prompts) < 4 {
			t.Fatalf("%d turns, want one in each run", len(prompts))
		}
		for i, p := range prompts[1:] {
			if !strings.Contains(p, "/bin/rm -r src: ann said no to it: move it to old/ instead") {
				t.Errorf("turn %d is not told who said no to what, and why:\n%s", i+2, p)
			}
		}
		wants = other
		if run := r.run(target, engine.Firing{}); run.Outcome != loop.OutcomeWaiting || run.Approval == "" {
			t.Errorf("run = %s %q, want that other words are asked about", run.Outcome, run.Detail)
		}
	})
}
