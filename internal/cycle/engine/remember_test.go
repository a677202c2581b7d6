package engine_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/memory"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// memories are what the workspace remembers, the oldest first.
func (r *rig) memories() (list []loop.Memory, texts []string) {
	r.t.Helper()
	r.view(func(rd *store.Reader) (err error) {
		list, err = rd.Memories(r.t.Context(), store.MemoryQuery{Workspace: "ws", Limit: 100})
		return err
	})
	for _, m := range list {
		texts = append([]string{fmt.Sprintf("%d %s %s %q +%d -%d by %s", m.N, m.State, m.Kind, m.Text, m.Confirmed, m.Failed, m.Last.Run)}, texts...)
	}
	return list, texts
}

func (r *rig) wantMemories(when string, want ...string) {
	r.t.Helper()
	if _, got := r.memories(); cmp.Diff(want, got) != "" {
		r.t.Errorf("%s (-want +got):\n%s", when, cmp.Diff(want, got))
	}
}

func TestARunRemembersTheCommandsThatPassedAndWhatItsAgentProposes(t *testing.T) {
	t.Setenv("KEY_TOKEN", "hunter2hunter2")
	onBoth(t, func(t *testing.T, r *rig) {
		reports := map[string]string{}
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			name := variable(req, "PAWL_LOOP")
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), name+variable(req, "PAWL_RUN")+"\n")
			return says(t, req, reports[name])
		}
		target := func(name string) engine.Target {
			return r.target(name, boardLike{nil, []string{"write it"}}, loop.Definition{
				Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x", Verify: "! grep -q bad src/a.txt", Guard: "test -s README.md", MaxIterations: 1,
			})
		}
		const verify, guard = `1 active command "! grep -q bad src/a.txt"`, `2 active command "test -s README.md"`
		reports["a"] = `{"outcome":"done","memory":["Use tabs","the token is hunter2hunter2"],"pitfalls":["gen/ is generated"]}`
		if run := r.run(target("a"), engine.Firing{}); run.Outcome != loop.OutcomeProposed {
			t.Fatalf("run = %s %s", run.Outcome, run.Detail)
		}
		list, _ := r.memories()
		for _, m := range list {
			if strings.Contains(m.Text, "hunter2") {
				t.Errorf("a secret is remembered: %q", m.Text)
			}
			s := m.Sources[0]
			if s.LoopID != "lp_a" || s.RunID == "" || s.Agent == "" || len(s.Commit) != 40 || s.At.IsZero() || m.Kind == loop.MemoryCommand && s.Gate == "" {
				t.Errorf("#%d comes from %+v", m.N, s)
			}
			if m.Kind != loop.MemoryCommand && memory.Text([]loop.Memory{m}) != "" {
				t.Errorf("what was only proposed is given: %q", m.Text)
			}
		}
		reports["a"] = `{"outcome":"done"}`
		if len(list) != 5 {
			t.Fatalf("%d entries: %+v", len(list), list)
		}
		proposed := func(n int, rest string) string { return fmt.Sprintf("%d proposed %s", n, rest) }
		hidden := fmt.Sprintf("fact %q +0 -0 by a#1", list[1].Text)
		r.wantMemories("after the first run", verify+" +1 -0 by a#1", guard+" +1 -0 by a#1",
			proposed(3, `fact "Use tabs" +0 -0 by a#1`), proposed(4, hidden), proposed(5, `pitfall "gen/ is generated" +0 -0 by a#1`))

		// Seen again is confirmed again; others confirm what was proposed.
		for i, name := range []string{"b", "bad", "c"} {
			reports[name] = `{"outcome":"done","memory":["use tabs"]}`
			run := r.run(target(name), engine.Firing{})
			if failed := run.Outcome == loop.OutcomeFailed; failed != (name == "bad") {
				t.Fatalf("run %d = %s %s", i, run.Outcome, run.Detail)
			}
			if name == "bad" { // Its verify fails; its guard passes.
				r.wantMemories("after a run that fails", verify+" +2 -1 by b#1", guard+" +3 -0 by bad#1",
					`3 active fact "Use tabs" +2 -0 by bad#1`, proposed(4, hidden), proposed(5, `pitfall "gen/ is generated" +0 -0 by a#1`))
			}
		}
		r.wantMemories("in the end", verify+" +3 -0 by c#1", guard+" +4 -0 by c#1",
			`3 active fact "Use tabs" +3 -0 by c#1`, proposed(4, hidden), proposed(5, `pitfall "gen/ is generated" +0 -0 by a#1`))
	})
}

func TestARunThatLearnsSomethingNeedsNoMoreCommits(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		report := `{"outcome":"done","no_change":true}`
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) { return says(t, req, report) }
		count := func(name, verify string) int64 {
			before := r.store.Commits()
			r.run(r.target(name, boardLike{nil, []string{"look"}}, loop.Definition{
				Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x", Verify: verify, MaxIterations: 1,
			}), engine.Firing{})
			return r.store.Commits() - before
		}
		count("warm", "") // The first run of a rig registers more than later ones.
		nothing := count("a", "")
		r.wantMemories("after runs without gates and proposals")
		report = `{"outcome":"done","no_change":true,"memory":["one","two"]}`
		if got := count("b", "true"); got != nothing {
			t.Errorf("a run that learns something takes %d commits, one that learns nothing %d", got, nothing)
		}
		r.wantMemories("after a run that learns something", `1 active command "true" +1 -0 by b#1`, `2 proposed fact "one" +0 -0 by b#1`, `3 proposed fact "two" +0 -0 by b#1`)
	})
}

func TestOneLoopCannotFillTheMemoryWithProposals(t *testing.T) {
	r := newRig(t, databases["sqlite"](t))
	n := 0
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		var words []string
		for range memory.MostProposals + 3 {
			n++
			words = append(words, fmt.Sprintf("%q", fmt.Sprint("word ", n)))
		}
		return says(t, req, `{"outcome":"done","no_change":true,"memory":[`+strings.Join(words, ",")+`]}`)
	}
	open := 0
	for i := range memory.MostOpen/memory.MostProposals + 3 {
		r.run(r.target("a", boardLike{nil, []string{fmt.Sprint("task ", i)}}, loop.Definition{Protocol: loop.ProtocolBoard, Tier: loop.TierReport, AgentCommand: "x", MaxIterations: 1}), engine.Firing{})
		r.view(func(rd *store.Reader) (err error) {
			open, err = rd.ProposedMemories(t.Context(), "ws", "lp_a")
			return err
		})
		if want := min((i+1)*memory.MostProposals, memory.MostOpen); open != want {
			t.Errorf("after run %d %d proposals are open, want %d", i+1, open, want)
		}
	}
}
