//go:build unix

package boot_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func wantDone(t *testing.T, run loop.Run) {
	t.Helper()
	if run.Outcome != loop.OutcomeDone {
		t.Fatalf("run = %s %s %q, want done", run.Outcome, run.Reason, run.Detail)
	}
}

func TestACloneGoesOnWhereTheLastSessionEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{todoPath: `{"version":"1.0.0","tasks":[
		{"id":"plan","title":"Plan the parser","status":"pending","priority":"high"},
		{"id":"implement","title":"Implement the parser","status":"pending","priority":"low"},
		{"id":"write","title":"Write about it","status":"pending","priority":"high"},
		{"id":"review","title":"Review the parser","status":"pending","priority":"low"}]}`})
	var last loop.Run
	for i, c := range []struct{ task, handoff string }{{"plan", "implement"}, {"implement", "review"}, {"review", ""}} {
		if i > 0 {
			r = r.clone() // With an empty store.
		}
		r.works(c.handoff)
		run := r.run(engine.Firing{})
		wantDone(t, run)
		r.inOrder()
		if got := r.status(c.task); got != bootstate.StatusDone {
			t.Fatalf("session %d: %s is %s", i, c.task, got)
		}
		state, _, _ := r.memory("main")
		if want := last.Commit; state.LastCommit() != want {
			t.Errorf("session %d: lastCommitSha = %q in the commit, want that of the session before, %q", i, state.LastCommit(), want)
		}
		last = run
	}
	state, _, changelog := r.memory("main")
	if state.NextIntent() != "write" || state.Phase() != bootstate.PhaseIdle {
		t.Errorf("in the end the next intent is %q in phase %s", state.NextIntent(), state.Phase())
	}
	if got := r.git("log", "--format=%s", "-4"); got != "agent: worked\nagent: worked\nagent: worked\nfirst" {
		t.Errorf("history:\n%s", got)
	}
	for _, id := range []string{"plan", "implement", "review"} {
		if !strings.Contains(changelog, "- "+id+": done: worked") {
			t.Errorf("the changelog has no %s:\n%s", id, changelog)
		}
	}
}

func TestWhatTheAgentWritesIntoTheMemoryIsDropped(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{".gitignore": ""})
	r.reports(`{"outcome":"done","summary":"worked"}`, map[string]string{
		statePath: "mine", todoPath: "mine", changelogPath: "mine", "scratch/notes.txt": "secret", "outputs/a.txt": "two\n", "audits/of-the-agent.md": "a\n",
	})
	wantDone(t, r.run(engine.Firing{}))
	r.inOrder()
	if got := r.git("ls-tree", "-r", "--name-only", "main"); strings.Contains(got, "scratch") || !strings.Contains(got, "audits/of-the-agent.md") {
		t.Errorf("committed:\n%s", got)
	}
	if got := r.git("show", "main:outputs/a.txt"); got != "two" {
		t.Errorf("the work is %q", got)
	}
	trail := r.git("grep", "-h", "a: ", "main", "--", "audits/2*.md")
	if !strings.Contains(trail, "a: began (") || !strings.Contains(trail, "a: iteration 1 pass: no_gate") {
		t.Errorf("audit trail:\n%s", trail)
	}
}

func TestAnAgentThatOnlyWritesTheMemoryHasChangedNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.reports(`{"outcome":"done"}`, map[string]string{statePath: "mine", "scratch/x": "x"})
	run := r.run(engine.Firing{})
	if run.Outcome != loop.OutcomeFailed || run.Reason != loop.ReasonNoChanges {
		t.Errorf("run = %s %s %q", run.Outcome, run.Reason, run.Detail)
	}
	r.inOrder()
}

func TestEachOutcomeIsWrittenIntoTheMemory(t *testing.T) {
	for name, c := range map[string]struct {
		report  string
		outcome loop.Outcome
		status  bootstate.Status
		phase   bootstate.Phase
		code    loop.Reason // of the last error; empty: none
		line    string
	}{
		"done":      {`{"outcome":"done","summary":"It parses."}`, loop.OutcomeDone, bootstate.StatusDone, bootstate.PhaseCompleted, "", "- a: done: It parses."},
		"failed":    {`{"outcome":"failed","reason":"no idea"}`, loop.OutcomeFailed, bootstate.StatusInProgress, bootstate.PhaseImplementing, loop.ReasonAgentFailed, "- a: not finished: no idea"},
		"blocked":   {`{"outcome":"blocked","reason":"the key is missing"}`, loop.OutcomeBlocked, bootstate.StatusBlocked, bootstate.PhaseBlocked, loop.ReasonAgentBlocked, "- a: blocked: the key is missing"},
		"escalated": {`{"outcome":"escalate","reason":"two ways"}`, loop.OutcomeEscalated, bootstate.StatusBlocked, bootstate.PhaseBlocked, loop.ReasonAgentEscalated, "- a: blocked: two ways"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.reports(c.report, map[string]string{"outputs/a.txt": "two\n"})
			run := r.run(engine.Firing{})
			if run.Outcome != c.outcome {
				t.Fatalf("run = %s %s %q, want %s", run.Outcome, run.Reason, run.Detail, c.outcome)
			}
			r.inOrder()
			state, _, changelog := r.memory("main")
			code, _ := state.LastError()
			if r.status("a") != c.status || state.Phase() != c.phase || code != string(c.code) {
				t.Errorf("the task is %s in phase %s with the error %q, want %s, %s, %q", r.status("a"), state.Phase(), code, c.status, c.phase, c.code)
			}
			if !strings.Contains(changelog, c.line+"\n") && !strings.HasSuffix(changelog, c.line) {
				t.Errorf("the changelog has no %q:\n%s", c.line, changelog)
			}
			want := "one"
			if c.outcome == loop.OutcomeDone {
				want = "two"
			} else if run.Snapshot == "" {
				t.Error("the work is kept nowhere")
			}
			if got := r.git("show", "main:outputs/a.txt"); got != want {
				t.Errorf("main has the work %q, want %q", got, want)
			}
		})
	}
}

func TestTheSameRequestTwiceIsOneTask(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{todoPath: `{"version":"1.0.0","tasks":[]}`})
	r.reports(`{"outcome":"failed","reason":"no"}`, map[string]string{"outputs/a.txt": "x\n"})
	for _, request := range []string{"Write the docs", "  write   the DOCS "} {
		r.run(engine.Firing{Request: request})
	}
	_, todo, _ := r.memory("main")
	if list := todo.Tasks(); len(list) != 1 || list[0].Status != bootstate.StatusInProgress {
		t.Errorf("tasks = %s", todo.Encode())
	}
	r.works("")
	wantDone(t, r.run(engine.Firing{}))
	r.inOrder()
}

func TestTheSameStateHasTheSameOutcome(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{statePath: `{"version":"1.0.0","lastUpdated":"2026-01-01T00:00:00Z","activeProject":"demo"}`})
	var texts [2]string
	for i := range texts {
		c := r.clone()
		c.git("remote", "remove", "origin")
		c.reports(`{"outcome":"done","summary":"worked"}`, map[string]string{"outputs/a.txt": "two\n"})
		wantDone(t, c.run(engine.Firing{}))
		texts[i] = c.git("log", "-1", "-p", "--format=%B", "main")
		for _, varies := range []string{`[0-9a-f]{7,64}`, `[0-9:T.-]+Z`, `run_\w+`, `\d{4}-\d\d-\d\d`} {
			texts[i] = regexp.MustCompile(varies).ReplaceAllString(texts[i], "*")
		}
	}
	if diff := cmp.Diff(texts[0], texts[1]); diff != "" {
		t.Errorf("two runs from one state differ:\n%s", diff)
	}
}

func TestTheMemoryOfABranchThatIsNotCheckedOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.git("checkout", "-q", "-b", "other")
	r.write(statePath, "of another branch")
	r.commit("other")
	r.def.Base = "main"
	wantDone(t, r.run(engine.Firing{}))
	if got := r.git("status", "--porcelain") + r.git("show", "other:"+statePath); got != "of another branch" {
		t.Errorf("the checkout: %q", got)
	}
	if r.status("a") != bootstate.StatusDone || r.git("rev-parse", "main") != gittest.Run(t, r.remote, "rev-parse", "main") {
		t.Error("main has not the session, or not its remote")
	}
}

func TestABootRepositoryThatIsAwayIsTheOneThatWasSeen(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{todoPath: `{"version":"1.0.0","tasks":[{"id":"a","title":"A","status":"pending","priority":"high"},{"id":"b","title":"B","status":"pending","priority":"low"}]}`})
	p := r.protocol()
	r.fixed = &p
	wantDone(t, r.run(engine.Firing{}))
	if err := os.Rename(r.boot, r.boot+".away"); err != nil {
		t.Fatal(err)
	}
	r.works("")
	wantDone(t, r.run(engine.Firing{}))
	if !r.said("the boot repository cannot be reached") {
		t.Errorf("nobody is told: %q", r.say)
	}
}

func TestASessionWhoseCommitFailsIsNotDone(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.reports(`{"outcome":"done","summary":"worked"}`, map[string]string{"outputs/a.txt": "two\n"})
	act := r.agent
	r.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
		r.write("outputs/a.txt", "by hand\n")
		r.git("commit", "-q", "-m", "by hand", "outputs/a.txt")
		return act(ctx, req)
	}
	run := r.run(engine.Firing{})
	if run.Outcome != loop.OutcomeFailed || run.Reason != loop.ReasonEffectFailed || run.Snapshot == "" {
		t.Fatalf("run = %s %s %q, kept as %q", run.Outcome, run.Reason, run.Detail, run.Snapshot)
	}
	text, err := os.ReadFile(filepath.Join(r.root, todoPath))
	if err != nil {
		t.Fatal(err)
	}
	todo, wrong := bootstate.FormatSchemas().ReadTodo(text)
	if task, _ := todo.Task("a"); len(wrong) > 0 || task.Status != bootstate.StatusInProgress {
		t.Errorf("the file says %s: %v", text, wrong)
	}
	// The next run takes it up, and commits both.
	r.works("")
	wantDone(t, r.run(engine.Firing{}))
	r.inOrder()
	if r.status("a") != bootstate.StatusDone {
		t.Errorf("the task is %s", r.status("a"))
	}
}

// TestASwitchBetweenTheVerdictAndTheCommit leaves nothing that says more than what is in a
// commit.
func TestASwitchBetweenTheVerdictAndTheCommit(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.reports(`{"outcome":"done","summary":"worked"}`, map[string]string{"outputs/a.txt": "two\n"})
	r.def.Verify = "true"
	paused := filepath.Join(r.root, ".loops", "PAUSED")
	r.live = func(e loop.Event) {
		if e.Kind == loop.EventGate && strings.Contains(e.Text, "pass") && r.live != nil {
			gittest.WriteFile(t, paused, "stop")
			r.live = nil
		}
	}
	before := r.git("rev-parse", "main")
	run := r.run(engine.Firing{})
	if run.Outcome != loop.OutcomePaused {
		t.Fatalf("run = %s %s %q, want paused", run.Outcome, run.Reason, run.Detail)
	}
	if r.git("rev-parse", "main") != before && r.git("show", "main:outputs/a.txt") == "two" {
		t.Error("work was committed while the switch was set")
	}
	text, err := os.ReadFile(filepath.Join(r.root, todoPath))
	if err != nil {
		t.Fatal(err)
	}
	todo, wrong := bootstate.FormatSchemas().ReadTodo(text)
	if task, _ := todo.Task("a"); len(wrong) > 0 || task.Status != bootstate.StatusInProgress || run.Snapshot == "" {
		t.Errorf("the task is %s in the file, the work is kept as %q", task.Status, run.Snapshot)
	}
	if err := os.Remove(paused); err != nil {
		t.Fatal(err)
	}
	r.works("")
	wantDone(t, r.run(engine.Firing{}))
	r.inOrder()
	if r.status("a") != bootstate.StatusDone {
		t.Errorf("the task is %s", r.status("a"))
	}
}

func TestAHandEditDuringASessionStays(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.works("")
	act := r.agent
	r.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
		file := filepath.Join(r.root, changelogPath)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		gittest.WriteFile(t, file, "A note by hand.\n"+string(text))
		return act(ctx, req)
	}
	wantDone(t, r.run(engine.Firing{}))
	text, err := os.ReadFile(filepath.Join(r.root, changelogPath))
	if err != nil || !strings.HasPrefix(string(text), "A note by hand.\n") || !strings.Contains(string(text), "- a: done: worked") {
		t.Fatalf("the changelog of the checkout: %q, %v", text, err)
	}
	run := r.run(engine.Firing{Trigger: "schedule"}) // It has nothing to do, and commits what it found.
	if _, _, changelog := r.memory("main"); run.Outcome != loop.OutcomeQuiet || !strings.HasPrefix(changelog, "A note by hand.") {
		t.Errorf("run = %s; committed changelog:\n%s", run.Outcome, changelog)
	}
	r.inOrder()
}

func TestARunOfALowerPriorityWaitsForNobodyElse(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{todoPath: `{"version":"1.0.0","tasks":[
		{"id":"low","title":"Low","status":"pending","priority":"low"},{"id":"x","title":"X","status":"pending","priority":"critical","dependencies":["low"]},
		{"id":"high","title":"High","status":"pending","priority":"high"},{"id":"high2","title":"High too","status":"pending","priority":"high"}]}`})
	var order []string
	for range 4 {
		r.works("")
		wantDone(t, r.run(engine.Firing{}))
		_, todo, _ := r.memory("main")
		for _, task := range todo.Tasks() {
			if task.Status == bootstate.StatusDone && !slices.Contains(order, task.ID) {
				order = append(order, task.ID)
			}
		}
	}
	if want := []string{"high", "high2", "low", "x"}; !slices.Equal(order, want) {
		t.Errorf("worked on %q, want %q", order, want)
	}
	state, _, _ := r.memory("main")
	if state.Phase() != bootstate.PhaseCompleted || state.NextIntent() != "" {
		t.Errorf("in the end: %s", state.Encode())
	}
}

func TestASessionThatFailedIsFollowedByTheSameTaskInAnyClone(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{todoPath: `{"version":"1.0.0","tasks":[
		{"id":"low","title":"Low","status":"pending","priority":"low"},{"id":"crash","title":"Crash","status":"pending","priority":"critical"}]}`})
	r.def.MaxIterations = 2
	const fails = `{"outcome":"failed","reason":"no idea"}`
	for n := 1; n <= bootstate.MostAttempts; n++ {
		r.reports(fails, map[string]string{"outputs/a.txt": "x\n"})
		if run := r.run(engine.Firing{}); run.Outcome != loop.OutcomeFailed || !strings.Contains(r.asked, "task crash, priority critical") {
			t.Fatalf("session %d = %s %s %q with the prompt\n%s", n, run.Outcome, run.Reason, run.Detail, r.asked)
		}
		r.inOrder()
		want, status := "crash", bootstate.StatusInProgress
		if n == bootstate.MostAttempts {
			want, status = "low", bootstate.StatusBlocked
		}
		state, todo, _ := r.memory("main")
		if task, _ := todo.Task("crash"); task.Status != status || state.NextIntent() != want {
			t.Fatalf("after %d sessions it is %s, and the next intent is %q: %s", n, task.Status, state.NextIntent(), todo.Encode())
		}
		c := r.clone() // With an empty store, and not pushed.
		c.git("remote", "remove", "origin")
		c.works("")
		wantDone(t, c.run(engine.Firing{}))
		if !strings.Contains(c.asked, "task "+want+", priority") {
			t.Errorf("after %d sessions a clone does not work on %s:\n%s", n, want, c.asked)
		}
	}
	// A person opens it again, and it is tried as often again.
	_, todo, _ := r.memory("main")
	todo.SetStatus("crash", bootstate.StatusPending, "", r.store.Now())
	r.write(todoPath, string(todo.Encode()))
	r.commit("open it again")
	r.reports(fails, map[string]string{"outputs/a.txt": "x\n"})
	r.run(engine.Firing{Request: "crash"})
	if got := r.status("crash"); got != bootstate.StatusInProgress {
		t.Errorf("a task that was opened again is %s after one session", got)
	}
}

func TestASessionThatSomebodyEndsIsNoAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for range bootstate.MostAttempts + 1 {
		ctx, cancel := context.WithCancel(t.Context())
		r.agent = func(ctx context.Context, _ agent.Request) (agent.Result, error) {
			cancel()
			<-ctx.Done()
			return agent.Result{}, ctx.Err()
		}
		if run, err := r.tryRun(ctx, engine.Firing{}); err != nil || run.Outcome != loop.OutcomeInterrupted {
			t.Fatalf("run = %s %s, %v", run.Outcome, run.Reason, err)
		}
	}
	if _, todo, _ := r.memory("main"); r.status("a") != bootstate.StatusInProgress || strings.Contains(string(todo.Encode()), "attempts") {
		t.Errorf("the tasks are %s", todo.Encode())
	}
}
