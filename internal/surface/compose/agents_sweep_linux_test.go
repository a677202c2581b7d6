package compose_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

const (
	// greeter writes a file and tells another agent of it.
	greeter = `echo hello > src/greeting.txt
cat > "$PAWL_REPORT" <<END
{"outcome":"done","summary":"wrote it","messages":[{"to":"qa","kind":"message","content":"read the greeting"}]}
END
`
	// waiter waits for something, and knows what it has learned from that.
	waiter = `cat > "$PAWL_REPORT" <<END
{"outcome":"blocked","reason":"the key is missing","pitfalls":["no key is kept; ask for it first"]}
END
`
)

// cycleFixture is a workspace whose agent dev does what a script says with what its files
// hold, beside agents that only read.
func cycleFixture(t *testing.T, database, script string, files map[string]string) *fixture {
	t.Helper()
	all := map[string]string{
		"org.yaml": "owner: Ada\nchief: boss\ndepartments:\n  engineering:\n    lead: lead\n    members: [dev, qa]\n", "work.sh": script,
		"agents/dev/LOOP.md": agentLoop(`scope: ["src/**"]`, "agent_command: sh work.sh", "verify: test -s src/greeting.txt", "sandbox: "+tierFor(t, database)),
	}
	for _, name := range []string{"boss", "lead", "qa"} {
		all["agents/"+name+"/LOOP.md"] = agentLoop(idleAgent, "sandbox: "+tierFor(t, database))
	}
	maps.Copy(all, files)
	return agentsFixture(t, database, all)
}

// inboxFixture is one with an entry that a person has written.
func inboxFixture(t *testing.T, database string) *fixture {
	t.Helper()
	return cycleFixture(t, database, greeter, map[string]string{
		"agents/dev/INBOX.md": "# INBOX\n\n## Pending\n\n### [2026-01-02T03:04:05Z] From: Ada | Priority: high\n\nWrite a greeting\nTask-ID: 7\n\n## Processed\n",
	})
}

// blockedFixture is one with a step that waits for something.
func blockedFixture(t *testing.T, database string) *fixture {
	t.Helper()
	return cycleFixture(t, database, waiter, map[string]string{"agents/dev/TASKS.md": tasksText(taskStep(1, "Open the door", "critical", 0))})
}

// toldFixture is one in which the chief has to be told of that.
func toldFixture(t *testing.T, database string) *fixture {
	t.Helper()
	s := blockedFixture(t, database)
	if v := s.pawl("run"); v == nil || v.Run.Outcome != loop.OutcomeBlocked {
		t.Fatalf("the cycle before = %+v, want blocked", v)
	}
	s.loop = "boss"
	return s
}

// disturbCycle strikes at a point of a cycle, and recovers. Whatever became of it, its files
// can be read before anything is mended.
func disturbCycle(s *fixture, k kind, at string) bool {
	t := s.t
	t.Helper()
	if !k.hit(s, "run", at) {
		return false
	}
	for _, agent := range []string{"dev", s.loop} {
		s.statusOf(agent)
		s.entriesOf(agent)
	}
	reported := s.pawl("recover").Recovered
	if again := s.pawl("recover"); len(again.Recovered) != 0 {
		t.Errorf("a second recovery found %v", again.Recovered)
	}
	s.nothingLeft()
	area := strings.Split(at, ".")[1]
	if want := s.loop + "#"; strings.HasPrefix(at, "engine.") && (area == "act" || area == "gather" || area == "verify") &&
		(len(reported) != 1 || !strings.HasPrefix(reported[0], want) || !strings.Contains(reported[0], " "+area+" interrupted ")) {
		t.Errorf("recovery reports %q, want that %s was interrupted in %s", reported, s.loop, area)
	}
	return true
}

// disturbInbox strikes at a cycle that takes an entry in and is done with it. Whatever comes
// next, the entry is one step, its work is proposed once, and the other agent is told once.
func disturbInbox(s *fixture, k kind, at string) bool {
	t := s.t
	t.Helper()
	if !disturbCycle(s, k, at) {
		return false
	}
	s.cycleOf("dev")
	entries := s.entriesOf("dev")
	if len(entries) != 1 || !strings.Contains(entries[0].Processed, "→ Step 1") || !strings.Contains(entries[0].Text, "Task-ID: 7") {
		t.Errorf("the inbox of dev has %+v, want its entry processed once", entries)
	}
	s.wantSteps("dev", map[string]string{"step-1": taskfile.StatusDone})
	proposed := slices.DeleteFunc(s.checkCycles("dev"), func(v runs.View) bool { return v.Outcome != loop.OutcomeProposed })
	if len(proposed) != 1 {
		t.Fatalf("%d runs proposed the work, want 1", len(proposed))
	}
	s.checkBranch(proposed[0])
	if branches := s.git("for-each-ref", "--format=%(refname:short)", "refs/heads/pawl"); branches != proposed[0].Branch {
		t.Errorf("the branches are %q, want %q", branches, proposed[0].Branch)
	}
	s.cycleOf("lead")
	s.wantTold("lead", "dev has done all of its steps")
	s.cycleOf("qa")
	s.wantTold("qa", "read the greeting")
	s.checkMoves()
	s.nothingLeft()
	return true
}

// disturbBlocked strikes at a cycle that waits for something. Whatever comes next, it counts
// as blocked once, what it learned is written down once, and the chief is told once.
func disturbBlocked(s *fixture, k kind, at string) bool {
	s.t.Helper()
	if !disturbCycle(s, k, at) {
		return false
	}
	s.cycleOf("dev")
	s.checkBlocked()
	s.cycleOf("boss")
	s.wantTold("boss", "the key is missing")
	s.nothingLeft()
	return true
}

// disturbTold strikes at the cycle of the chief that takes that message in.
func disturbTold(s *fixture, k kind, at string) bool {
	s.t.Helper()
	if !disturbCycle(s, k, at) {
		return false
	}
	s.cycleOf("boss")
	s.wantTold("boss", "the key is missing")
	s.checkCycles("boss")
	s.checkBlocked()
	s.nothingLeft()
	return true
}

func (s *fixture) checkBlocked() {
	t := s.t
	t.Helper()
	s.wantSteps("dev", map[string]string{"step-1": taskfile.StatusBlocked})
	list := s.checkCycles("dev")
	tasks, _ := taskfile.ParseTasks(s.agentFile("dev", taskfile.TasksFile))
	if st := tasks.Steps()[0]; st.Retries != 1 || st.BlockedReason != "the key is missing" {
		t.Errorf("the step is blocked %d times: %q, want once", st.Retries, st.BlockedReason)
	}
	causes := map[string]int{}
	for _, p := range taskfile.ParseContext(s.agentFile("dev", taskfile.ContextFile)).Pitfalls() {
		causes[p.Cause] += max(1, p.Times)
	}
	var its []loop.Iteration
	for _, v := range list {
		s.inStore(func(ctx context.Context, tx *store.Tx) error {
			more, err := tx.Iterations(ctx, v.ID)
			its = append(its, more...)
			return err
		})
	}
	// What an agent has reported counts also if its run was cut off afterwards.
	reports := len(slices.DeleteFunc(its, func(it loop.Iteration) bool { return it.Report == "" }))
	if len(causes) != 2 || causes["no key is kept"] != reports || causes["blocked: the key is missing"] != 1 {
		t.Errorf("the pitfalls are %v, want what %d reports say and one block", causes, reports)
	}
}

// cycleOf carries out one cycle of an agent.
func (s *fixture) cycleOf(agent string) {
	s.t.Helper()
	was := s.loop
	defer func() { s.loop = was }()
	s.loop = agent
	fine := []loop.Outcome{loop.OutcomeQuiet, loop.OutcomeProposed, loop.OutcomeBlocked, loop.OutcomeDone, loop.OutcomeReported}
	if v := s.pawl("run"); v == nil || !slices.Contains(fine, v.Run.Outcome) {
		s.t.Errorf("the next cycle of %s is %+v", agent, v)
	}
}

// entriesOf are the entries of an agent's inbox; none if it has no inbox yet.
func (s *fixture) entriesOf(agent string) []taskfile.Entry {
	s.t.Helper()
	inbox, problems := taskfile.ParseInbox(s.agentFile(agent, taskfile.InboxFile))
	if len(problems) > 0 {
		s.t.Errorf("INBOX.md of %s: %v", agent, problems)
	}
	return append(inbox.Pending(), inbox.Processed()...)
}

// wantTold holds that an agent has been told something once and has made one step of it,
// which is done, and that no message to it waits.
func (s *fixture) wantTold(agent, words string) {
	t := s.t
	t.Helper()
	var told []taskfile.Entry
	for _, e := range s.entriesOf(agent) {
		if strings.Contains(e.Text, words) {
			told = append(told, e)
		}
	}
	if len(told) != 1 || !strings.Contains(told[0].Processed, "→ Step 1") {
		t.Errorf("%s was told %+v, want %q once, and one step made of it", agent, told, words)
	}
	s.wantSteps(agent, map[string]string{"step-1": taskfile.StatusDone})
	var waiting []loop.Delivery
	id := s.loopID(agent)
	s.inStore(func(ctx context.Context, tx *store.Tx) error {
		l, err := tx.Loop(ctx, id)
		if err == nil {
			waiting, err = tx.Undelivered(ctx, l.WorkspaceID, agent, 10)
		}
		return err
	})
	if len(waiting) > 0 {
		t.Errorf("messages to %s wait still: %+v", agent, waiting)
	}
}

// wantSteps holds that an agent has exactly these steps in its file, and that its rows agree.
func (s *fixture) wantSteps(agent string, want map[string]string) {
	t := s.t
	t.Helper()
	got := s.statusOf(agent)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the steps of %s are %v, want %v", agent, got, want)
	}
	var steps []loop.Step
	id := s.loopID(agent)
	s.inStore(func(ctx context.Context, tx *store.Tx) (err error) {
		steps, err = tx.Steps(ctx, id)
		return err
	})
	rows := map[string]loop.StepState{}
	for _, st := range steps {
		rows[st.Key] = st.State
	}
	for key, status := range want {
		if string(rows[key]) != status {
			t.Errorf("%s of %s is %s in the file and %s in its row", key, agent, status, rows[key])
		}
	}
	if len(rows) != len(want) {
		t.Errorf("%s has the rows %v, want one of each step", agent, rows)
	}
}

// loopID is the id of an agent that has run.
func (s *fixture) loopID(agent string) string {
	s.t.Helper()
	list, err := s.reader().Runs.List(s.t.Context(), agent, 1)
	if err != nil || len(list) != 1 {
		s.t.Fatalf("runs of %s: %v, %v", agent, list, err)
	}
	return list[0].Run.LoopID
}

// checkCycles holds that each run of an agent has ended and has one row in its heartbeat.
func (s *fixture) checkCycles(agent string) []runs.View {
	t := s.t
	t.Helper()
	list, err := s.reader().Runs.List(t.Context(), agent, 20)
	if err != nil {
		t.Fatal(err)
	}
	rows := taskfile.ParseHeartbeat(s.agentFile(agent, taskfile.HeartbeatFile)).Rows()
	if len(rows) != len(list) {
		t.Errorf("the heartbeat of %s has %d rows for %d runs:\n%s", agent, len(rows), len(list), s.agentFile(agent, taskfile.HeartbeatFile))
	}
	for i, v := range list {
		if v.State != "ended" || v.Outcome == "" {
			t.Errorf("%s#%d is %s %s, want ended", agent, v.N, v.State, v.Outcome)
		}
		if at := len(list) - 1 - i; at < len(rows) && !rows[at].At.Equal(v.Run.Started.UTC().Truncate(time.Second)) {
			t.Errorf("row %d is of %s, and %s#%d began at %s", at+1, rows[at].At, agent, v.N, v.Run.Started)
		}
	}
	if err := s.reader().Audit.VerifyChain(t.Context(), agent); err != nil {
		t.Error(err)
	}
	return list
}
