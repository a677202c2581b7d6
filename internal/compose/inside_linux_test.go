package compose_test

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/api"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/specs"
	"github.com/pawl-run/pawl/internal/store"
)

// TestAnAgentInsideOfARunReachesWhatItWasGrantedAndNothingElse has an agent in each tier make a loop,
// step it, and ask for what it may not.
func TestAnAgentInsideOfARunReachesWhatItWasGrantedAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{full, "landlock", bare} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			plan := []struct {
				step
				want string
			}{
				{step{"loop_create", map[string]any{"goal": "a.txt says two.", "agentId": "fixer", "maxTokens": 1 << 40}}, "usage"},
				{step{"loop_create", map[string]any{"goal": "a.txt says two.", "agentId": "fixer", "idempotency_key": "one"}}, "ok"},
				{step{"loop_run_step", map[string]any{"loopId": "$ID"}}, "ok"},
				{step{"loop_get", map[string]any{"loopId": "$ID"}}, "ok"},
				{step{"loop_stop", map[string]any{"loopId": "$ID"}}, "ok"},
				{step{"loop_overview", map[string]any{}}, "ok"},
				{step{"loop_overview", map[string]any{"workspace": "/"}}, "grant"},
				{step{"loop_run", map[string]any{"loop": "fix"}}, "grant"},
				{step{"loop_pause", map[string]any{"loop": "fix"}}, "grant"},
				{step{"loop_stop_run", map[string]any{"run": "fix"}}, "grant"},
				{step{"agent_message_post", map[string]any{"from": "ann", "to": "human", "kind": "question", "content": "?"}}, "grant"},
				{step{"budget_show", map[string]any{"all": true}}, "grant"},
				{step{"loop_resume", map[string]any{"loop": "fix"}}, "no such tool"},
				{step{"notice_list", map[string]any{}}, "no such tool"},
			}
			var steps []step
			for _, p := range plan {
				steps = append(steps, p.step)
			}
			v := hosting(t, tier, steps, "verify", "bash -c '! (exec 3<>/dev/tcp/127.0.0.1/3130) 2>/dev/null'")
			run := v.runs()
			all := v.heardIn(run)
			if len(all) != len(plan) {
				t.Fatalf("it heard %+v", all)
			}
			for i, p := range plan {
				if all[i].Outcome != p.want {
					t.Errorf("%s %v: %s %s, want %s", p.Tool, p.Args, all[i].Outcome, all[i].Text, p.want)
				}
			}
			v.toldOfCalls(run.ID, "loop_create: ok", "loop_run_step: ok", "loop_pause: grant")

			rows, err := v.svc.Specs.List(t.Context(), specs.Query{})
			must(t, err)
			if len(rows) != 1 {
				t.Fatalf("there are the loops %+v, want one", rows)
			}
			child, err := v.svc.Specs.Get(t.Context(), rows[0].ID)
			must(t, err)
			if child.Parent != "fix" || child.Depth != 1 || child.MadeBy != run.ID || len(child.Iterations) != 1 {
				t.Errorf("the child is %+v with %d iterations", child.Family, len(child.Iterations))
			}
			links := v.links(child.Spec.ID, loop.LinkDefinition)
			if !strings.Contains(links, run.ID) {
				t.Errorf("its chain does not say which run made it: %s", links)
			}
		})
	}
}

// toldOfCalls holds that the events of a run tell of these calls.
func (v *victim) toldOfCalls(run string, want ...string) {
	v.t.Helper()
	events, _, err := v.svc.Runs.Events(v.t.Context(), run, 0, 1000)
	must(v.t, err)
	var told []string
	for _, e := range events {
		if e.Kind == loop.EventPawlTool {
			told = append(told, e.Text)
		}
	}
	for _, w := range want {
		if !strings.Contains(strings.Join(told, "\n"), w) {
			v.t.Errorf("the events do not tell of %q, but of %q", w, told)
		}
	}
}

// links are the bodies of the links of a kind in the chain of a spec's loop.
func (v *victim) links(spec, kind string) (bodies string) {
	v.t.Helper()
	must(v.t, v.d.Store().View(v.t.Context(), func(r *store.Reader) error {
		row, err := r.Spec(v.t.Context(), spec)
		if err != nil {
			return err
		}
		links, err := r.Chain(v.t.Context(), row.LoopID)
		for _, l := range links {
			if l.Kind == kind {
				bodies += l.Body + "\n"
			}
		}
		return err
	}))
	return bodies
}

var _ = api.Verbs
