package compose_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/storetest"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// Nobody but its own cycles writes an inbox, so that no message is lost to another one.
func TestEightAgentsTellTheirSuperiorAtTheSameTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		database  func(t *testing.T) string
		processes bool
	}{
		"in one process, on SQLite":         {func(*testing.T) string { return "" }, false},
		"in eight processes, on SQLite":     {func(*testing.T) string { return "" }, true},
		"in eight processes, on PostgreSQL": {func(t *testing.T) string { t.Helper(); return storetest.PostgreSQL(t) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const agents = 8
			files := map[string]string{"agents/boss/LOOP.md": agentLoop(idleAgent, "sandbox: none")}
			var members []string
			for n := range agents {
				name := fmt.Sprintf("dev%d", n+1)
				members = append(members, name)
				files["agents/"+name+"/LOOP.md"] = agentLoop("sandbox: none",
					`agent_command: 'printf "{\"outcome\":\"done\",\"no_change\":true,\"messages\":[{\"to\":\"boss\",\"kind\":\"report\",\"content\":\"news of $PAWL_LOOP\"}]}" > "$PAWL_REPORT"'`)
				files["agents/"+name+"/TASKS.md"] = tasksText(taskStep(1, "Tell the news", "high", 0), taskStep(2, "Go on", "low", 0))
			}
			files["org.yaml"] = "owner: Ada\nchief: boss\ndepartments:\n  all:\n    lead: boss\n    members: [" + strings.Join(members, ", ") + "]\n"
			s := agentsFixture(t, c.database(t), files)
			w := team{&victim{fixture: s}}
			if !c.processes {
				w = openTeam(s)
			}
			var all sync.WaitGroup
			for _, name := range members {
				all.Go(func() {
					if !c.processes {
						if v := w.cycle(runs.StartRequest{Loop: name}); v.Outcome != loop.OutcomeReported {
							t.Errorf("%s = %s %s %q", name, v.Outcome, v.Reason, v.Detail)
						}
						return
					}
					cmd := s.command("run", loopEnv+"="+name)
					v, stderr := s.told(cmd, cmd.Run())
					if v == nil || v.Run.Outcome != loop.OutcomeReported {
						t.Errorf("%s = %+v %s", name, v, stderr)
					}
				})
			}
			all.Wait()
			for range 2 { // The second one finds nothing new.
				if v, stderr := s.try("run", loopEnv+"=boss"); v == nil || v.Run.Outcome != loop.OutcomeReported {
					t.Fatalf("boss = %+v %s", v, stderr)
				}
				inbox, problems := taskfile.ParseInbox(s.agentFile("boss", taskfile.InboxFile))
				told := map[string]int{}
				for _, e := range append(inbox.Pending(), inbox.Processed()...) {
					told[e.From+": "+e.Text]++
				}
				for _, name := range members {
					if told[name+": news of "+name] != 1 {
						t.Errorf("boss has %d entries of %s, want 1", told[name+": news of "+name], name)
					}
				}
				if steps := s.statusOf("boss"); len(told) != agents || len(steps) != agents || len(problems) > 0 {
					t.Errorf("boss has %d entries and %d steps, want %d of each; %v", len(told), len(steps), agents, problems)
				}
			}
		})
	}
}

const idleAgent = `agent_command: 'echo "{\"outcome\":\"done\",\"no_change\":true}" > "$PAWL_REPORT"'`
