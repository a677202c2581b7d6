package compose_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/roster"
	"github.com/pawl-run/pawl/internal/verbs/runs"
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
			shown, err := v.svc.Runs.Show(t.Context(), run.ID)
			must(t, err)
			why, err := v.svc.Runs.Why(t.Context(), child.Spec.ID)
			must(t, err)
			if len(shown.Calls) < len(plan)-2 || !slices.Equal(shown.Children, []string{child.Spec.ID}) || why.Parent != "fix" {
				t.Errorf("the trace has the calls %q and the loops %q; the child's why has the parent %q", shown.Calls, shown.Children, why.Parent)
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

// chaining is an agent that makes a loop for an agent like itself and steps it, which does the same.
func chaining(t *testing.T, keys ...string) *victim {
	t.Helper()
	v := hosting(t, full, []step{
		{"loop_create", map[string]any{"goal": "heard.json tells of it.", "agentId": "deep"}},
		{"loop_run_step", map[string]any{"loopId": "$ID"}},
	}, keys...)
	driver, command, model := "claude", "sh agent.sh", "claude-haiku-4-5"
	_, err := v.d.Roster().Create(t.Context(), "deep", roster.Change{Driver: &driver, Command: &command, Model: &model})
	must(t, err)
	return v
}

// family lists the loops that agents have made, by depth.
func (v *victim) family() (all []specs.View) {
	v.t.Helper()
	rows, err := v.svc.Specs.List(v.t.Context(), specs.Query{})
	must(v.t, err)
	for _, r := range rows {
		s, err := v.svc.Specs.Get(v.t.Context(), r.ID)
		must(v.t, err)
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b specs.View) int { return a.Depth - b.Depth })
	return all
}

// TestAttack100AgentsMakeLoopsForAgentsThatMakeLoops has each loop make one below it: none is too
// deep, none has more than what is left above it, and all of it is charged to the first.
func TestAttack100AgentsMakeLoopsForAgentsThatMakeLoops(t *testing.T) {
	t.Parallel()
	const day = 200_000
	v := chaining(t, "budget_tokens_day", fmt.Sprint(day))
	v.heardIn(v.runs())
	chain := v.family()
	if len(chain) != loop.MaxDepth {
		t.Fatalf("there are %d loops below the first, want %d", len(chain), loop.MaxDepth)
	}
	most := int64(day)
	parent := "fix"
	for i, c := range chain {
		if c.Depth != i+1 || c.Parent != parent || len(c.Iterations) != 1 {
			t.Errorf("loop %d is %+v with %d iterations, want it below %s with one", i, c.Family, len(c.Iterations), parent)
		}
		if got := c.Spec.Budget.MaxTokens; got < 1 || got >= most {
			t.Errorf("the loop of depth %d may use %d tokens, and the one above it %d", c.Depth, got, most)
		}
		most, parent = c.Spec.Budget.MaxTokens, c.Spec.ID
	}
	last, err := v.svc.Runs.List(t.Context(), chain[len(chain)-1].Spec.ID, 1)
	must(t, err)
	v.toldOfCalls(last[0].ID, "loop_create: depth", "loop_run_step: not_found")
	for _, row := range v.standing("fix") {
		if row.Window == loop.WindowDay && row.What == "tokens" && row.Used+row.Reserved > day {
			t.Errorf("of %d tokens a day, %d are used and %d reserved", day, row.Used, row.Reserved)
		}
	}
}

// standing is how the budgets of a loop stand.
func (v *victim) standing(name string) []budgets.Row {
	v.t.Helper()
	rows, err := v.svc.Budgets.Show(v.t.Context(), budgets.Target{Loop: name})
	must(v.t, err)
	return rows
}

func TestAttack100AnAgentMakesElevenLoopsInADay(t *testing.T) {
	t.Parallel()
	var plan []step
	for i := range loop.MaxChildrenDay + 1 {
		plan = append(plan, step{"loop_create", map[string]any{"goal": fmt.Sprintf("a.txt says %d.", i), "agentId": "fixer"}})
	}
	v := hosting(t, bare, plan)
	var outcomes []string
	for _, h := range v.heardIn(v.runs()) {
		outcomes = append(outcomes, h.Outcome)
	}
	want := append(slices.Repeat([]string{"ok"}, loop.MaxChildrenDay), "children")
	if !slices.Equal(outcomes, want) {
		t.Errorf("the calls came to %q, want %q", outcomes, want)
	}
}

// sleeping is a loop whose agent has made another one, which sleeps, and waits for it. It returns when
// both are at work, and what ends when the first run has.
func sleeping(t *testing.T) (v *victim, word string, ended chan runs.View) {
	t.Helper()
	v = hosting(t, full, []step{
		{"loop_create", map[string]any{"goal": "a.txt says two.", "agentId": "sleeper"}},
		{"loop_run_step", map[string]any{"loopId": "$ID"}},
	})
	word = nap(t)
	driver, command := "command", "sleep "+word
	_, err := v.d.Roster().Create(t.Context(), "sleeper", roster.Change{Driver: &driver, Command: &command})
	must(t, err)
	ended = make(chan runs.View, 1)
	go func() {
		run, err := v.start()
		if err != nil {
			t.Error(err)
		}
		ended <- run
	}()
	for alive(t, word) == 0 {
		select {
		case run := <-ended:
			t.Fatalf("the run has ended: %s %s %q", run.Outcome, run.Reason, run.Detail)
		case <-t.Context().Done():
			t.Fatal("the loop that was made never began")
		case <-time.After(50 * time.Millisecond):
		}
	}
	return v, word, ended
}

// TestWhoStopsALoopStopsWhatItsAgentHasBegun kills, pauses and stops a loop whose agent waits for a loop
// that it has made.
func TestWhoStopsALoopStopsWhatItsAgentHasBegun(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(v *victim) error{
		"kill":  func(v *victim) error { _, err := v.svc.Loops.Kill(v.t.Context(), ann, "fix", ""); return err },
		"pause": func(v *victim) error { _, err := v.svc.Loops.Pause(v.t.Context(), ann, "fix", ""); return err },
		"stop":  func(v *victim) error { _, err := v.svc.Runs.Stop(v.t.Context(), ann, "fix", ""); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, word, ended := sleeping(t)
			must(t, stop(v))
			if run := <-ended; run.Outcome != loop.OutcomePaused && run.Outcome != loop.OutcomeInterrupted {
				t.Errorf("the run ended %s", run.Outcome)
			}
			if n := alive(t, word); n != 0 {
				t.Errorf("%d processes of the loop that it made are alive", n)
			}
			child := v.family()[0]
			list, err := v.svc.Runs.List(t.Context(), child.Spec.ID, 1)
			must(t, err)
			if len(list) != 1 || !api.HasEnded(list[0]) {
				t.Errorf("the run of the loop that it made is %+v, want it ended", list)
			}
			if name == "stop" {
				return
			}
			if child.Status != loopspec.StatusPaused {
				t.Errorf("the loop that it made is %s, want it paused too", child.Status)
			}
			agent := loop.Actor{Who: "agent", Role: loop.RoleAgent, From: "mcp"}
			if _, err := v.svc.Loops.Resume(t.Context(), agent, child.Spec.ID); !errors.Is(err, loop.ErrRole) {
				t.Errorf("an agent resumes what a person stopped: %v", err)
			}
			_, err = v.svc.Loops.Resume(t.Context(), ann, "fix")
			must(t, err)
			if now := v.family()[0].Status; now == loopspec.StatusPaused {
				t.Errorf("after the one above was resumed it is still %s", now)
			}
		})
	}
}

// TestALoopThatIsMadeWhilePawlIsKilledIsThereOnceAndItsBudgetIsCounted kills pawl before and after a loop is
// stored, and while a run of it is under way inside of another one.
func TestALoopThatIsMadeWhilePawlIsKilledIsThereOnceAndItsBudgetIsCounted(t *testing.T) {
	t.Parallel()
	const day = 400_000
	for at, made := range map[string]int{
		"specs.child.commit.before:1": 0, "specs.child.commit.after:1": 1, "specs.child.commit.before:2": 1, "engine.claim.commit.after:2": 2, "engine.act.after:1": 2,
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			v := hosting(t, bare, []step{
				{"loop_create", map[string]any{"goal": "a.txt says one.", "agentId": "fixer"}},
				{"loop_create", map[string]any{"goal": "a.txt says two.", "agentId": "fixer"}},
				{"loop_run_step", map[string]any{"loopId": "$ID"}},
			}, "budget_tokens_day", fmt.Sprint(day))
			if told := v.pawl("run", "PAWL_FAULTS=1", "PAWL_CRASH_AT="+at); told != nil {
				t.Fatalf("pawl was not killed at %s: %+v", at, told)
			}
			_, err := v.svc.Runs.Recover(t.Context())
			must(t, err)
			if n := len(v.family()); n != made {
				t.Errorf("%d loops are there, want %d", n, made)
			}
			sum := func() (held int64) {
				for _, row := range v.standing("fix") {
					if row.Window != loop.WindowDay || row.What != "tokens" {
						continue
					}
					if held = row.Reserved; row.Used+held > day {
						t.Errorf("of %d tokens a day, %d are used and %d held", day, row.Used, held)
					}
				}
				return held
			}
			if held := sum(); held != 0 {
				t.Errorf("after recovery %d tokens are held", held)
			}
			list, err := v.svc.Runs.List(t.Context(), "", 10)
			must(t, err)
			for _, run := range list {
				if !api.HasEnded(run) {
					t.Errorf("%s#%d is %s", run.Loop, run.N, run.State)
				}
			}
			if all := v.heardIn(v.runs()); all[0].Outcome != "ok" || all[1].Outcome != "ok" || all[2].Outcome != "ok" {
				t.Errorf("the next run heard %+v", all)
			}
			sum()
		})
	}
}

// TestAttack101AnAgentAsksForARunOfAnotherWorkspace names a run of a repository that is not its own, which
// the same store has.
func TestAttack101AnAgentAsksForARunOfAnotherWorkspace(t *testing.T) {
	t.Parallel()
	v := hosting(t, bare, nil)
	other := v.besides("echo two >src/a.txt", nil).runs()
	plan, err := json.Marshal([]step{
		{"loop_trace", map[string]any{"run": other.ID}},
		{"loop_diff", map[string]any{"run": other.ID}},
		{"run_events", map[string]any{"run": other.ID}},
		{"loop_stop_run", map[string]any{"run": other.ID}},
		{"approval_show", map[string]any{"approval": other.Approval}},
		{"loop_trace", map[string]any{"run": "fix"}},
	})
	must(t, err)
	v.write(planFile, string(plan))
	v.git("commit", "-q", "-a", "-m", "another plan")
	v.main = v.git("rev-parse", "main")
	var got []string
	for _, h := range v.heardIn(v.runs()) {
		got = append(got, h.Outcome)
	}
	if want := []string{"not_found", "not_found", "not_found", "not_found", "not_found", "ok"}; !slices.Equal(got, want) {
		t.Errorf("it heard %q, want %q", got, want)
	}
}
