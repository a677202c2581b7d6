package compose_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/formats/boot/bootrepo"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/sample"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// bootAgent writes the file of its task. At first it is wrong, until a gate says so.
const bootAgent = `id=$(sed -n "s/.*(task \([a-zA-Z0-9_-]*\), priority.*/\1/p" "$PAWL_PROMPT" | head -1); n=bad; ` +
	`grep -q "^it is bad" "$PAWL_PROMPT" && n=good; echo "$n $id" > "src/$id.txt"; printf "{\"outcome\":\"done\",\"summary\":\"wrote $id\"}" > "$PAWL_REPORT"`

const bootConfig = `scope: ["src/**"]
verify: '! grep -rq bad src || { echo it is bad; exit 7; }'
guard: "true"
agent: command
`

// brokenState is the STATE.json of a boot workspace that nothing has run in.
const brokenState = `{"version": "1.0.0", "lastUpdated": "2026-`

// newBootFixture is a workspace of the boot protocol with three tasks. Beside it are its boot
// repository and its remote.
func newBootFixture(t *testing.T, database string) *fixture {
	t.Helper()
	dir := t.TempDir()
	s := &fixture{t: t, root: filepath.Join(dir, "repo"), home: newHome(t), database: database, loop: "boot"}
	boot, origin := filepath.Join(dir, "boot"), filepath.Join(dir, "origin.git")
	for _, made := range []string{s.root, boot, origin} {
		if err := os.Mkdir(made, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	contract := map[string]string{}
	for name, text := range bootrepo.Scaffold(begun) {
		contract[name] = string(text)
	}
	gittest.Write(t, boot, contract)
	gittest.Run(t, boot, "init", "-q", "-b", "main")
	gittest.Run(t, boot, "add", "-A")
	gittest.Run(t, boot, "commit", "-q", "-m", "contract")
	gittest.Run(t, boot, "tag", "v1.0.0")
	gittest.Run(t, origin, "init", "-q", "--bare", "-b", "main")

	tasks := bootstate.NewTodo(begun)
	for _, id := range []string{"one", "two", "three"} {
		tasks.Add(bootstate.Task{ID: id, Title: "Write " + id, Status: bootstate.StatusPending, Priority: bootstate.PriorityMedium}, begun)
	}
	gittest.Write(t, s.root, map[string]string{
		"AGENT_LINK.md": bootlink.Render(bootlink.Link{
			Repository: "../boot", Reference: "v1.0.0", Version: bootrepo.ScaffoldVersion,
			State: bootlink.DefaultState, Tasks: bootlink.DefaultTasks, Changelog: bootlink.DefaultChangelog, Directories: bootlink.DefaultDirectories,
		}),
		bootlink.DefaultState: string(bootstate.NewState("fixture", begun).Encode()), bootlink.DefaultTasks: string(tasks.Encode()),
		bootlink.DefaultChangelog: "# Changelog\n", ".gitignore": "/scratch/\n", "src/a.txt": "one\n",
	})
	s.configureBoot("agent_command: '" + bootAgent + "'")
	s.git("init", "-q", "-b", "main")
	s.git("add", "-A")
	s.git("commit", "-q", "-m", "first")
	s.git("remote", "add", "origin", origin)
	s.git("push", "-q", "-u", "origin", "main")
	return s
}

// brokenBootFixture is one whose state is broken in the checkout.
func brokenBootFixture(t *testing.T, database string) *fixture {
	t.Helper()
	s := newBootFixture(t, database)
	gittest.WriteFile(t, filepath.Join(s.root, bootlink.DefaultState), brokenState)
	return s
}

// divergedBootFixture is one that has a session which is not pushed, while its remote has a
// task that a person has added.
func divergedBootFixture(t *testing.T, database string) *fixture {
	t.Helper()
	s := newBootFixture(t, database)
	s.addTask("four")
	s.git("commit", "-q", "-a", "-m", "one more task")
	s.git("push", "-q", "origin", "main")
	s.git("reset", "-q", "--hard", "HEAD~1")
	s.addTask("five")
	s.git("commit", "-q", "-a", "-m", "agent: a session\n\n- Updated TODO: five new\n\nPawl-Run: run_earlier")
	return s
}

// addTask adds a task that comes before all others to the file.
func (s *fixture) addTask(id string) {
	s.t.Helper()
	name := filepath.Join(s.root, bootlink.DefaultTasks)
	tasks, wrong := bootstate.FormatSchemas().ReadTodo([]byte(readFile(s.t, name)))
	if len(wrong) > 0 {
		s.t.Fatal(wrong)
	}
	now := time.Now()
	tasks.Add(bootstate.Task{ID: id, Title: "Write " + id, Status: bootstate.StatusPending, Priority: bootstate.PriorityHigh}, now)
	gittest.WriteFile(s.t, name, string(tasks.Encode()))
}

// configureBoot writes the loop's own keys.
func (s *fixture) configureBoot(keys string) {
	s.t.Helper()
	if !strings.Contains(keys, "sandbox: ") {
		keys += "\nsandbox: " + tierFor(s.t, s.database)
	}
	gittest.WriteFile(s.t, filepath.Join(s.root, ".loops/boot/loop.config.yaml"), bootConfig+keys+"\n")
}

// disturbBoot strikes at a point of a run of the boot protocol. Whatever comes next, the
// memory and the work are in one commit, the checkout and the remote have what the branch
// has, and the next task is worked on.
func disturbBoot(s *fixture, k kind, at string) bool {
	t := s.t
	t.Helper()
	if !k.hit(s, "run", at) {
		return false
	}
	reported := s.pawl("recover").Recovered
	if again := s.pawl("recover"); len(again.Recovered) != 0 {
		t.Errorf("a second recovery found %v", again.Recovered)
	}
	s.nothingLeft()
	if made := s.bootRuns(); len(made) > 0 && made[0].Outcome != loop.OutcomePaused && strings.Contains(s.git("log", "-1", "--format=%B", "main"), "Pawl-Run: "+made[0].ID) {
		s.checkBoot()
	}
	area := strings.Split(at, ".")[1]
	if want := "boot#1 " + area + " interrupted "; k.dies && strings.HasPrefix(at, "engine.") && (area == "act" || area == "gather" || area == "verify") &&
		(len(reported) != 1 || !strings.HasPrefix(reported[0], want)) {
		t.Errorf("recovery reports %q, want %q", reported, want)
	}
	if v := s.pawl("run"); v.Run.Outcome != loop.OutcomeDone || strings.Contains(v.Run.Detail, "not pushed: ") {
		t.Errorf("the next run is %s %s %q", v.Run.Outcome, v.Run.Reason, v.Run.Detail)
	}
	s.checkBoot()
	tasks, _ := bootstate.FormatSchemas().ReadTodo([]byte(s.git("show", "main:"+bootlink.DefaultTasks)))
	for _, id := range []string{"one", "two", "three", "four", "five"} {
		if _, there := tasks.Task(id); !there {
			t.Errorf("task %s is lost", id)
		}
	}
	s.checkMoves()
	s.nothingLeft()
	return true
}

// checkBoot holds the memory of a boot workspace against its branch, its remote, its work
// and the rows.
func (s *fixture) checkBoot() {
	t := s.t
	t.Helper()
	made := s.bootRuns()
	if len(made) == 0 {
		t.Fatal("no run is recorded")
	}
	s.checkBootCheckout()
	s.checkBootHistory("main")
	if here, there := s.git("rev-parse", "main"), s.git("ls-remote", "origin", "refs/heads/main"); !strings.HasPrefix(there, here) && !strings.Contains(made[0].Detail, "not pushed: ") {
		t.Errorf("main is at %s and the remote at %s, and the run says nothing of it: %s %q", here, there, made[0].Outcome, made[0].Detail)
	}
	aside, err := filepath.Glob(filepath.Join(s.root, bootlink.Scratch, "agent-STATE.json.broken-*"))
	if n := strings.Count(s.git("show", "main:"+bootlink.DefaultChangelog), "recovered "+bootlink.DefaultState); n != len(aside) || err != nil {
		t.Errorf("the changelog that is committed names the repair %d times, and %v is put aside:\n%s", n, aside, s.git("show", "main:"+bootlink.DefaultChangelog))
	}
	if err := s.reader().Audit.VerifyChain(t.Context(), "boot"); err != nil {
		t.Error(err)
	}
}

// bootRuns are the runs of the boot loop, newest first.
func (s *fixture) bootRuns() []runs.View {
	s.t.Helper()
	list, err := s.reader().Runs.List(s.t.Context(), "boot", 20)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, v := range list {
		if v.State != "ended" || v.Outcome == "" {
			s.t.Errorf("run #%d is %s %s, want ended", v.N, v.State, v.Outcome)
		}
	}
	return list
}

// checkBootCheckout holds that the checkout is what the branch is, but for the last commit
// in the state.
func (s *fixture) checkBootCheckout() {
	t := s.t
	t.Helper()
	if status := s.git("status", "--porcelain", "--untracked-files=all"); status != "" && status != "M "+bootlink.DefaultState {
		t.Errorf("the checkout differs from the branch:\n%s\n%s", status, s.git("diff", "HEAD"))
	}
	schemas := bootstate.FormatSchemas()
	here, wrong := schemas.ReadState([]byte(readFile(t, filepath.Join(s.root, bootlink.DefaultState))))
	if len(wrong) > 0 {
		t.Fatalf("%s is invalid in the checkout: %v", bootlink.DefaultState, wrong)
	}
	committed, wrong := schemas.ReadState([]byte(s.git("show", "main:"+bootlink.DefaultState)))
	if len(wrong) > 0 || !here.EqualButCommit(committed) {
		t.Errorf("the state in the checkout differs from the one that is committed (%v):\n%s", wrong, s.git("diff", "HEAD"))
	}
	run, tip := s.bootRuns()[0], s.git("rev-parse", "main")
	if own := strings.Contains(s.git("log", "-1", "--format=%B", tip), "Pawl-Run: "+run.ID); own && (here.LastCommit() != tip || run.Commit != tip) {
		t.Errorf("lastCommitSha is %s and the commit of the run %s, want %s", here.LastCommit(), run.Commit, tip)
	}
	if out := s.git("fsck", "--no-dangling"); out != "" {
		t.Errorf("fsck: %s", out)
	}
}

// checkBootHistory holds that the memory is valid in each commit, and that exactly the
// tasks are done whose work is there, made once.
func (s *fixture) checkBootHistory(branch string) {
	t := s.t
	t.Helper()
	schemas := bootstate.FormatSchemas()
	for commit := range strings.FieldsSeq(s.git("rev-list", branch)) {
		if _, wrong := schemas.ReadState([]byte(s.git("show", commit+":"+bootlink.DefaultState))); len(wrong) > 0 {
			t.Errorf("the state of %s is invalid: %v", commit, wrong)
		}
		if _, wrong := schemas.ReadTodo([]byte(s.git("show", commit+":"+bootlink.DefaultTasks))); len(wrong) > 0 {
			t.Errorf("the tasks of %s are invalid: %v", commit, wrong)
		}
	}
	for line, n := range countLines(s.git("log", "--format=%B", branch)) {
		if n > 1 && strings.HasPrefix(line, "Pawl-Run: ") {
			t.Errorf("%d commits are of one run: %s", n, line)
		}
	}
	tasks, _ := schemas.ReadTodo([]byte(s.git("show", branch+":"+bootlink.DefaultTasks)))
	files := "\n" + s.git("ls-tree", "-r", "--name-only", branch, "src/") + "\n"
	for _, task := range tasks.Tasks() {
		name := "src/" + task.ID + ".txt"
		there := strings.Contains(files, "\n"+name+"\n")
		byAgent := task.Title == "Write "+task.ID || strings.HasPrefix(task.ID, "request-")
		if byAgent && there != (task.Status == bootstate.StatusDone) {
			t.Errorf("task %s is %s, and its work is in the tree: %v", task.ID, task.Status, there)
		}
		if !there {
			continue
		}
		if text := s.git("show", branch+":"+name); text != "good "+task.ID {
			t.Errorf("%s holds %q", name, text)
		}
		if n := len(strings.Fields(s.git("log", "--no-merges", "--format=%H", branch, "--", name))); n != 1 {
			t.Errorf("%d commits made %s, want 1", n, name)
		}
	}
}

func countLines(text string) map[string]int {
	counts := map[string]int{}
	for line := range strings.Lines(text) {
		counts[strings.TrimSpace(line)]++
	}
	return counts
}

// A run of the boot protocol leaves the memory and the checkout in order, whatever it
// comes to, and says if the remote does not have it.
func TestABootRunLeavesEverythingCommittedWhateverItComesTo(t *testing.T) {
	t.Parallel()
	const reports = `agent_command: 'printf "{\"outcome\":\"%s\",\"reason\":\"it says so\"}" > "$PAWL_REPORT"'`
	sleeps := "agent_command: 'sleep " + slowly + "; " + bootAgent + "'"
	for name, c := range map[string]struct {
		keys    string             // of the loop; empty: an agent that does its work
		before  func(s *fixture)   // the run
		slow    func(h *suspended) // while the agent sleeps
		outcome loop.Outcome
		status  bootstate.Status // of the first task; empty: pending
		local   bool             // the remote does not have it
		rest    bool             // not in a sample
	}{
		"done":                         {outcome: loop.OutcomeDone, status: bootstate.StatusDone, rest: true},
		"failed":                       {keys: "max_iterations: 1\nagent_command: '" + bootAgent + "'", outcome: loop.OutcomeFailed, status: bootstate.StatusInProgress, rest: true},
		"interrupted by TERM":          {keys: sleeps, slow: func(h *suspended) { h.sendSignal(syscall.SIGTERM) }, outcome: loop.OutcomeInterrupted, status: bootstate.StatusInProgress},
		"out of budget in mid-act":     {keys: "max_wall_clock: 1s\nagent_command: 'sleep 60'", outcome: loop.OutcomeBudget, status: bootstate.StatusInProgress, rest: true},
		"out of budget before its act": {keys: "budget_tokens_day: 1\nagent_command: '" + bootAgent + "'", outcome: loop.OutcomeBudget},
		"quiet with a repair": {before: func(s *fixture) {
			tasks, _ := bootstate.FormatSchemas().ReadTodo([]byte(readFile(s.t, filepath.Join(s.root, bootlink.DefaultTasks))))
			for _, id := range []string{"one", "two", "three"} {
				tasks.SetStatus(id, bootstate.StatusBlocked, "not now", time.Now())
			}
			gittest.WriteFile(s.t, filepath.Join(s.root, bootlink.DefaultTasks), string(tasks.Encode()))
			s.git("commit", "-q", "-m", "not now", bootlink.DefaultTasks)
		}, outcome: loop.OutcomeQuiet, status: bootstate.StatusBlocked},
		"blocked":   {keys: fmt.Sprintf(reports, "blocked"), outcome: loop.OutcomeBlocked, status: bootstate.StatusBlocked, rest: true},
		"escalated": {keys: fmt.Sprintf(reports, "escalate"), outcome: loop.OutcomeEscalated, status: bootstate.StatusBlocked, rest: true},
		"refused for its scope": {
			keys:    "sandbox: none\nagent_command: 'echo changed > README.md; printf \"{\\\"outcome\\\":\\\"done\\\"}\" > \"$PAWL_REPORT\"'",
			outcome: loop.OutcomeRefused, status: bootstate.StatusInProgress,
		},
		"paused in mid-act": {keys: sleeps, slow: func(h *suspended) {
			gittest.WriteFile(h.t, filepath.Join(h.root, ".loops/PAUSED"), "stop")
		}, outcome: loop.OutcomePaused, status: bootstate.StatusInProgress, local: true},
	} {
		if c.rest && !sample.All() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := brokenBootFixture(t, "")
			if c.keys != "" {
				s.configureBoot(c.keys)
				s.git("commit", "-q", "-m", "another agent", ".loops")
			}
			if c.before != nil {
				c.before(s)
			}
			s.git("push", "-q", "origin", "main")
			var v *told
			var stderr string
			if c.slow == nil {
				v, stderr = s.try("run")
			} else {
				h := s.startUntilSlow(time.Minute, "run")
				c.slow(h)
				v, stderr = h.told(h.cmd, h.cmd.Wait())
			}
			if v == nil || v.Run.Outcome != c.outcome {
				t.Fatalf("run = %+v %s, want %s", v, stderr, c.outcome)
			}
			if err := os.RemoveAll(filepath.Join(s.root, ".loops/PAUSED")); err != nil {
				t.Fatal(err)
			}
			s.nothingLeft()
			s.checkBoot()
			if said := strings.Contains(v.Run.Detail, "not pushed: "); said != c.local {
				t.Errorf("the run says %q", v.Run.Detail)
			}
			tasks, _ := bootstate.FormatSchemas().ReadTodo([]byte(s.git("show", "main:"+bootlink.DefaultTasks)))
			if task, _ := tasks.Task("one"); task.Status != cmp.Or(c.status, bootstate.StatusPending) {
				t.Errorf("the task is %s, want %s", task.Status, c.status)
			}
			if c.outcome == loop.OutcomeQuiet {
				return
			}
			s.configureBoot("agent_command: '" + bootAgent + "'")
			s.git("commit", "-q", "--allow-empty", "-m", "an agent that works", ".loops")
			if v := s.pawl("run"); v.Run.Outcome != loop.OutcomeDone || strings.Contains(v.Run.Detail, "not pushed") {
				t.Errorf("the next run is %s %s %q", v.Run.Outcome, v.Run.Reason, v.Run.Detail)
			}
			s.checkBoot()
			s.nothingLeft()
		})
	}
}

// What was asked for is tried again before anything that the last session left to do.
func TestABootRunTriesAgainWhatItHasBegun(t *testing.T) {
	t.Parallel()
	s := newBootFixture(t, "")
	s.pawl("run") // It leaves another task as the next one.
	if v := s.pawl("run", requestEnv+"=three"); v.Run.Outcome != loop.OutcomeDone || len(v.Run.Iterations) != 2 || v.Run.Iterations[1].Step != "Write three" {
		t.Errorf("run = %s %s %q with %+v, want the request tried twice", v.Run.Outcome, v.Run.Reason, v.Run.Detail, v.Run.Iterations)
	}
	s.checkBoot()
}

// What the remote has does not replace what a person has written and not committed.
func TestABootRunKeepsWhatAPersonHasWrittenWhenItsRemoteIsAhead(t *testing.T) {
	t.Parallel()
	s := divergedBootFixture(t, "")
	s.addTask("six")
	if v := s.pawl("run"); v.Run.Outcome != loop.OutcomeDone || v.Run.Detail != "" {
		t.Errorf("run = %s %s %q, want it done and pushed", v.Run.Outcome, v.Run.Reason, v.Run.Detail)
	}
	s.checkBoot()
	tasks, _ := bootstate.FormatSchemas().ReadTodo([]byte(s.git("show", "main:"+bootlink.DefaultTasks)))
	for _, id := range []string{"four", "five", "six"} {
		if _, there := tasks.Task(id); !there {
			t.Errorf("task %s is lost", id)
		}
	}
}

// sendSignal sends a signal to the child.
func (h *suspended) sendSignal(sig syscall.Signal) {
	h.t.Helper()
	if err := h.cmd.Process.Signal(sig); err != nil {
		h.t.Fatal(err)
	}
}
