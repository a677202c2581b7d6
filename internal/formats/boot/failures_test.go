//go:build unix

package boot_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/boot/bootdef"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// TestEachFailureHasItsReasonAndExitStatus has the rows of the protocol's tables of failures
// that end a run before it works on anything.
func TestEachFailureHasItsReasonAndExitStatus(t *testing.T) {
	replaceLink := func(from, to string) func(*rig) {
		return func(r *rig) {
			text := linkTo(r.boot)
			if !strings.Contains(text, from) {
				r.t.Fatalf("the link has no %q:\n%s", from, text)
			}
			r.write(bootdef.LinkFile, strings.ReplaceAll(text, from, to))
		}
	}
	inBoot := func(change func(r *rig)) func(*rig) {
		return func(r *rig) {
			change(r)
			gittest.Run(r.t, r.boot, "add", "-A")
			gittest.Run(r.t, r.boot, "commit", "-q", "--allow-empty", "-m", "changed")
		}
	}
	removeFromBoot := func(name string) func(*rig) {
		return inBoot(func(r *rig) {
			if err := os.Remove(filepath.Join(r.boot, name)); err != nil {
				r.t.Fatal(err)
			}
		})
	}
	writeToBoot := func(name, text string) func(*rig) {
		return inBoot(func(r *rig) { gittest.WriteFile(r.t, filepath.Join(r.boot, name), text) })
	}
	const todoOf = `{"version":"1.0.0","tasks":[{"id":"a","title":"A","status":"pending","priority":"high"`
	for name, c := range map[string]struct {
		change func(*rig)
		reason loop.Reason
		exit   int
		says   string
	}{
		"1 AGENT_LINK.md missing": {func(r *rig) {
			if err := os.Remove(filepath.Join(r.root, bootdef.LinkFile)); err != nil {
				r.t.Fatal(err)
			}
		}, loop.ReasonLinkMissing, loop.ExitNotFound, "there is no AGENT_LINK.md"},
		"1 parse error":            {replaceLink("`"+statePath+"`", "`../STATE.json`"), loop.ReasonLinkMalformed, loop.ExitUnreadable, "AGENT_LINK.md:"},
		"1 not filled in":          {replaceLink("`main`", "`{{REF}}`"), loop.ReasonLinkMalformed, loop.ExitUnreadable, "not filled in"},
		"1 missing boot reference": {replaceLink("| Boot Reference |", "| Reference of old |"), loop.ReasonLinkNoBoot, loop.ExitUnreadable, "AGENT_LINK.md:"},
		"1 missing boot version":   {replaceLink("| Boot Version |", "| Other |"), loop.ReasonLinkNoVersion, loop.ExitUnreadable, "Boot Version is missing"},
		"1 the older form": {func(r *rig) {
			r.write(bootdef.LinkFile, "| Field | Value |\n|---|---|\n| Repo | `o/r` |\n| Branch | `main` |\n| Entry | `a.md` |\n")
		}, loop.ReasonLinkOlder, loop.ExitUnreadable, "pawl boot migrate"},

		"2 boot repository inaccessible": {func(r *rig) { replaceLink(r.boot, r.boot+"-gone")(r) }, loop.ReasonBootAway, loop.ExitMissing, "-gone"},
		"2 boot reference inaccessible":  {replaceLink("`main`", "`none`"), loop.ReasonBootAway, loop.ExitMissing, "none"},
		"2 version mismatch, major":      {replaceLink("`1.0.0`", "`2.0.0`"), loop.ReasonVersionMajor, loop.ExitNotReady, "2.0.0"},
		"2 version mismatch, minor":      {replaceLink("`1.0.0`", "`1.1.0`"), loop.ReasonVersionAhead, loop.ExitNotReady, "1.1.0"},
		"2 version not listed": {
			writeToBoot("VERSION.json", `{"bootVersion":"1.0.0","lastUpdated":"2026-01-01","compatibleWorkspaces":["1.1.x"]}`),
			loop.ReasonVersionUnlisted, loop.ExitNotReady, "1.0.0",
		},
		"2 missing schemas":        {removeFromBoot("schemas/todo-schema.json"), loop.ReasonBootIncomplete, loop.ExitMissing, "todo-schema.json"},
		"2 VERSION.json missing":   {removeFromBoot("VERSION.json"), loop.ReasonBootIncomplete, loop.ExitMissing, "VERSION.json"},
		"2 the rules are missing":  {removeFromBoot("contract/AGENT_RULES.md"), loop.ReasonBootIncomplete, loop.ExitMissing, "AGENT_RULES.md"},
		"2 a schema is malformed":  {writeToBoot("schemas/state-schema.json", `{"type":"nothing"}`), loop.ReasonBootSchema, loop.ExitUnreadable, "state-schema.json"},
		"2 VERSION.json malformed": {writeToBoot("VERSION.json", `{`), loop.ReasonBootMalformed, loop.ExitUnreadable, "VERSION.json"},

		"3 STATE.json missing, not the first run": {func(r *rig) {
			if err := os.Remove(filepath.Join(r.root, statePath)); err != nil {
				r.t.Fatal(err)
			}
		}, loop.ReasonStateLost, loop.ExitNoSuccess, "git log"},
		"4 unrecoverable: a wrong type": {func(r *rig) { r.write(statePath, strings.Replace(validState, `"idle"`, "7", 1)) }, loop.ReasonStateManual, loop.ExitUnreadable, statePath + ":"},
		"4 unrecoverable: an unknown value": {
			func(r *rig) { r.write(statePath, strings.Replace(validState, "idle", "dreaming", 1)) }, loop.ReasonStateManual,
			loop.ExitUnreadable, "/currentPhase",
		},
		"4 two tasks with one id": {func(r *rig) {
			r.write(todoPath, todoOf+`},{"id":"a","title":"B","status":"pending","priority":"low"}]}`)
		}, loop.ReasonTodoDuplicate, loop.ExitUnreadable, todoPath},
		"4 an orphaned reference": {func(r *rig) { r.write(todoPath, todoOf+`,"dependencies":["b"]}]}`) }, loop.ReasonTodoOrphan, loop.ExitUnreadable, todoPath},
		"4 a circle":              {func(r *rig) { r.write(todoPath, todoOf+`,"dependencies":["a"]}]}`) }, loop.ReasonTodoCycle, loop.ExitUnreadable, todoPath},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			c.change(r)
			before, status := r.git("rev-parse", "main"), r.git("status", "--porcelain")
			run := r.run(engine.Firing{})
			if run.Outcome != loop.OutcomeFailed || run.Reason != c.reason || loop.ExitStatus(run.Outcome, run.Reason) != c.exit {
				t.Errorf("run = %s %s with exit status %d, want %s with %d: %s", run.Outcome, run.Reason, loop.ExitStatus(run.Outcome, run.Reason), c.reason, c.exit, run.Detail)
			}
			if !strings.Contains(run.Detail, c.says) {
				t.Errorf("it says %q, want %q in it", run.Detail, c.says)
			}
			if r.git("rev-parse", "main") != before || r.git("status", "--porcelain") != status {
				t.Error("something was changed")
			}
		})
	}
}

// TestEachRecoveryTravelsWithTheCommit has the leaves of the decision tree, and the rows of
// the tables, in which a run goes on.
func TestEachRecoveryTravelsWithTheCommit(t *testing.T) {
	state := func(text string) func(*rig) { return func(r *rig) { r.write(statePath, text) } }
	todo := func(text string) func(*rig) { return func(r *rig) { r.write(todoPath, text) } }
	for name, c := range map[string]struct {
		files  map[string]string // of the first commit
		change func(*rig)
		reason loop.Reason
		line   string // of the changelog
		aside  bool
	}{
		"3 STATE.json missing, first run": {map[string]string{statePath: ""}, nil, loop.ReasonStateFirstRun, "initialised " + statePath, false},
		"3 TODO.json missing":             {map[string]string{todoPath: ""}, nil, loop.ReasonTodoTemplate, todoPath, false},
		"3 CHANGELOG.md missing":          {map[string]string{changelogPath: ""}, nil, loop.ReasonChangelogNew, "recovered " + changelogPath, false},
		"3 STATE.json corrupted":          {nil, state(`{"version"`), loop.ReasonStateCommit, "recovered " + statePath + " from ", true},
		"3 a name twice":                  {nil, state(`{"version":"1.0.0","version":"1.0.0"}`), loop.ReasonStateCommit, "recovered " + statePath, true},
		"3 text after the end":            {nil, state(validState + "x"), loop.ReasonStateCommit, "recovered " + statePath, true},
		"3 not a number":                  {nil, state(strings.Replace(validState, `"idle"`, "NaN", 1)), loop.ReasonStateCommit, "recovered " + statePath, true},
		"3 not UTF-8":                     {nil, state(strings.Replace(validState, "demo", "\xff", 1)), loop.ReasonStateCommit, "recovered " + statePath, true},
		"3 ten megabytes":                 {nil, state(strings.Replace(validState, "demo", strings.Repeat("x", 10<<20), 1)), loop.ReasonStateCommit, "recovered " + statePath, true},
		"3 corrupted, and in a stash": {map[string]string{statePath: "{"}, func(r *rig) {
			r.write(statePath, validState)
			r.git("stash", "-q")
		}, loop.ReasonStateStash, "recovered " + statePath, true},
		"3 corrupted, and nothing but a changelog": {
			map[string]string{statePath: "{", changelogPath: "# Changelog\n\n## 2026-01-01\n\n- a: done: first\n"},
			nil,
			loop.ReasonStateChangelog, "recovered " + statePath, true,
		},
		"3 corrupted, the last resort": {map[string]string{statePath: "{"}, nil, loop.ReasonStateTemplate, "recovered " + statePath, true},
		"3 TODO.json corrupted":        {nil, todo(`{"tasks":`), loop.ReasonTodoMinimal, "recovered " + todoPath, true},
		"4 a required field is missing": {
			nil, state(strings.Replace(validState, `,"currentPhase":"idle"`, "", 1)), loop.ReasonStateDefault,
			"recovered " + statePath + ": added the default of /currentPhase", true,
		},
		"4 a task without priority": {nil, todo(strings.Replace(oneTask, `,"priority":"high"`, "", 1)), loop.ReasonTodoPriority, "recovered " + todoPath, true},
		"4 status wip":              {nil, todo(strings.Replace(oneTask, "pending", "wip", 1)), loop.ReasonTodoStatus, "recovered " + todoPath, true},
		"4 structural":              {nil, todo(`{"version":"1.0.0","tasks":{"a":{"title":"A","status":"pending","priority":"low"}}}`), loop.ReasonTodoStructural, "recovered " + todoPath, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.files)
			if c.change != nil {
				c.change(r)
			}
			broken, _ := os.ReadFile(filepath.Join(r.root, statePath))
			// Nothing else happens in this run: the repair is committed by itself.
			r.def.MaxIterations = 1
			run := r.run(engine.Firing{Trigger: "schedule"})
			r.inOrder()
			_, _, changelog := r.memory("main")
			if !strings.Contains(changelog, c.line) {
				t.Errorf("run %s %s: the changelog has no %q:\n%s", run.Outcome, run.Detail, c.line, changelog)
			}
			if !r.said("(" + string(c.reason) + ")") {
				t.Errorf("nobody is told of %s: %q", c.reason, r.say)
			}
			kept, err := filepath.Glob(filepath.Join(r.root, "scratch", "*.broken-*"))
			if err != nil || (len(kept) > 0) != c.aside {
				t.Fatalf("kept aside: %q, %v; want some: %v", kept, err, c.aside)
			}
			if c.aside && strings.Contains(kept[0], "STATE") {
				if got, err := os.ReadFile(kept[0]); err != nil || string(got) != string(broken) {
					t.Errorf("what was broken is not kept as it was: %d bytes, %v", len(got), err)
				}
			}
		})
	}
}

// TestOneCommitHasTheRepairOfAQuietRun is the repair of a run that works on nothing.
func TestOneCommitHasTheRepairOfAQuietRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{todoPath: `{"version":"1.0.0","tasks":[]}`})
	r.write(statePath, "{")
	before := r.git("rev-parse", "main")
	run := r.run(engine.Firing{Trigger: "schedule"})
	if run.Outcome != loop.OutcomeQuiet || run.Reason != loop.ReasonPlanNothing || run.Commit == "" {
		t.Fatalf("run = %s %s %q with the commit %q", run.Outcome, run.Reason, run.Detail, run.Commit)
	}
	r.inOrder()
	if got := r.git("rev-list", "--count", before+"..main"); got != "1" {
		t.Errorf("%s commits", got)
	}
	again := r.run(engine.Firing{Trigger: "schedule"})
	if again.Outcome != loop.OutcomeQuiet || again.Commit != "" || r.git("rev-parse", "main") != run.Commit {
		t.Errorf("the same state gives another commit: %s %q", again.Outcome, again.Commit)
	}
}

// TestEachConflictAsksOnceNamingBothSides has the rows of step 5.
func TestEachConflictAsksOnceNamingBothSides(t *testing.T) {
	tasks := func(list string) string { return `{"version":"1.0.0","tasks":[` + list + `]}` }
	task := func(id, status, priority, more string) string {
		return `{"id":"` + id + `","title":"Task ` + id + `","status":"` + status + `","priority":"` + priority + `"` + more + `}`
	}
	for name, c := range map[string]struct {
		todo, intent, request string
		reason                loop.Reason
		names                 []string
		answer                string
		works                 string // the task that is worked on after the answer
	}{
		"no tasks, no intent":                   {tasks(""), "", "", loop.ReasonPlanNothing, []string{"What should be done?"}, "Write it down", "request-"},
		"the request names a task that is done": {tasks(task("a", "done", "high", "")), "", "a", loop.ReasonConflictRequest, []string{"Task a", "done"}, "reopen", "a"},
		"the request names a task that is blocked": {
			tasks(task("a", "blocked", "high", `,"blockedReason":"waits for the key"`)), "", "a",
			loop.ReasonConflictRequest,
			[]string{"Task a", "blocked"},
			"reopen", "a",
		},
		"the intent cannot be worked on, and a critical task can": {
			tasks(task("a", "blocked", "low", `,"blockedReason":"key"`) + "," + task("b", "pending", "critical", "")), "a", "",
			loop.ReasonConflictIntent,
			[]string{"Task a", "Task b"},
			"b", "b",
		},
		"two tasks are in progress": {
			tasks(task("a", "in-progress", "low", "") + "," + task("b", "in-progress", "high", "")), "", "", loop.ReasonConflictProgress,
			[]string{"Task a", "Task b"},
			"a", "a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{todoPath: c.todo, statePath: strings.TrimSuffix(validState, "}") + `,"nextIntent":"` + c.intent + `"}`})
			first := r.run(engine.Firing{Request: c.request})
			second := r.run(engine.Firing{Request: c.request})
			if first.Outcome != loop.OutcomeWaiting || first.Reason != c.reason || loop.ExitStatus(first.Outcome, first.Reason) != loop.ExitWaiting || second.Approval != first.Approval || first.Approval == "" {
				t.Fatalf("runs = %s %s %q, then %s", first.Outcome, first.Reason, first.Detail, second.Approval)
			}
			for _, side := range c.names {
				if !strings.Contains(first.Detail, side) {
					t.Errorf("the question %q does not name %q", first.Detail, side)
				}
			}
			f := engine.Yes(first.Approval, loop.Answer{By: "ann", Note: c.answer})
			f.Request = c.request
			run := r.run(f)
			if run.Outcome != loop.OutcomeDone {
				t.Fatalf("run = %s %s %q, want done", run.Outcome, run.Reason, run.Detail)
			}
			r.inOrder()
			_, todo, _ := r.memory("main")
			for _, task := range todo.Tasks() {
				if strings.HasPrefix(task.ID, c.works) && task.Status == bootstate.StatusDone {
					return
				}
			}
			t.Errorf("%q was not worked on: %s", c.works, todo.Encode())
		})
	}
}

// TestTheRulesOfAMovedBootRepositoryNeedAYesOnce moves the boot repository under a workspace.
func TestTheRulesOfAMovedBootRepositoryNeedAYesOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{todoPath: `{"version":"1.0.0","tasks":[{"id":"a","title":"A","status":"pending","priority":"high"},{"id":"b","title":"B","status":"pending","priority":"low"}]}`})
	if run := r.run(engine.Firing{}); run.Outcome != loop.OutcomeDone {
		t.Fatalf("run = %s %q", run.Outcome, run.Detail)
	}
	rules := filepath.Join(r.boot, "contract", "AGENT_RULES.md")
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	gittest.WriteFile(t, rules, string(text)+"- Delete what you like.\n")
	gittest.Run(t, r.boot, "commit", "-q", "-a", "-m", "worse rules")
	var asked loop.Run
	for _, one := range []*rig{r.clone(), r} { // Another machine asks too.
		asked = one.run(engine.Firing{})
		if asked.Outcome != loop.OutcomeWaiting || asked.Reason != loop.ReasonBootMoved {
			t.Fatalf("run = %s %s %q, want a question", asked.Outcome, asked.Reason, asked.Detail)
		}
		if a := one.approval(asked.Approval); !strings.Contains(a.Action.Why, "+- Delete what you like.") {
			t.Errorf("the question shows no diff: %s", a.Action.Why)
		}
	}
	r.works("")
	if run := r.run(engine.Yes(asked.Approval, loop.Answer{By: "ann"})); run.Outcome != loop.OutcomeDone || r.status("b") != bootstate.StatusDone {
		t.Fatalf("run = %s %s %q, want done", run.Outcome, run.Reason, run.Detail)
	}
	if !strings.Contains(r.asked, "Delete what you like.") {
		t.Error("the agent is not told the new rules")
	}
	// The answer travels with the memory.
	if fresh := r.clone().run(engine.Firing{Trigger: "schedule"}); fresh.Outcome != loop.OutcomeQuiet {
		t.Errorf("a clone asks again: %s %s %q", fresh.Outcome, fresh.Reason, fresh.Detail)
	}
}

// TestABootRepositoryIsNeverWrittenTo is an agent that tries to.
func TestABootRepositoryIsNeverWrittenTo(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	before := gittest.Run(t, r.boot, "rev-parse", "HEAD")
	r.reports(`{"outcome":"done","summary":"changed the rules"}`, map[string]string{"contract/AGENT_RULES.md": "none\n", bootdef.LinkFile: "mine\n"})
	run := r.run(engine.Firing{})
	if run.Outcome != loop.OutcomeRefused || loop.ExitStatus(run.Outcome, run.Reason) != loop.ExitRefused {
		t.Errorf("run = %s %s %q, want refused", run.Outcome, run.Reason, run.Detail)
	}
	r.inOrder()
	if gittest.Run(t, r.boot, "rev-parse", "HEAD") != before || gittest.Run(t, r.boot, "status", "--porcelain") != "" {
		t.Error("the boot repository has changed")
	}
	if r.status("a") != bootstate.StatusInProgress {
		t.Errorf("the task is %s", r.status("a"))
	}
}

func (r *rig) approval(id string) (a loop.Approval) {
	r.t.Helper()
	err := r.store.View(r.t.Context(), func(rd *store.Reader) (err error) {
		a, err = rd.Approval(r.t.Context(), id)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// TestEachStopLineHaltsTheRun has the rows of the table of stop lines, and the seed's
// failures of step 6.
func TestEachStopLineHaltsTheRun(t *testing.T) {
	const table = "| Metric | Warning | Critical |\n|---|---|---|\n"
	for name, c := range map[string]struct{ row, report, crossed string }{
		"iterations": {"| Iterations | 1 | 2 |", `{"outcome":"failed","reason":"no"}`, "iterations 2"},
		"errors":     {"| Errors | 1 | 2 |", `{"outcome":"failed","reason":"no"}`, "errors 2"},
		"time":       {"| Time (minutes) | 0 | 0 |", `{"outcome":"failed","reason":"no"}`, "minutes"},
		"confidence": {"| Confidence | below 0.7 | below 0.5 |", `{"outcome":"failed","reason":"no","confidence":0.4}`, "confidence 0.4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			gittest.WriteFile(t, filepath.Join(r.boot, "STOP_LINES.md"), table+c.row+"\n")
			gittest.Run(t, r.boot, "add", "-A")
			gittest.Run(t, r.boot, "commit", "-q", "-m", "stop lines")
			r.def.MaxIterations, r.def.GiveUpAfter = 9, 9
			turns := 0
			r.reports(c.report, map[string]string{"outputs/a.txt": "x\n"})
			act := r.agent
			r.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
				turns++
				gittest.WriteFile(t, filepath.Join(req.Dir, "outputs/a.txt"), strings.Repeat("x", turns))
				return act(ctx, req)
			}
			run := r.run(engine.Firing{})
			if run.Outcome != loop.OutcomeGaveUp || run.Reason != loop.ReasonStopLine || !strings.Contains(run.Detail, c.crossed) || loop.ExitStatus(run.Outcome, run.Reason) != loop.ExitNoSuccess {
				t.Fatalf("after %d turns run = %s %s %q, want that %s halts it", turns, run.Outcome, run.Reason, run.Detail, c.crossed)
			}
			r.inOrder()
			state, _, changelog := r.memory("main")
			if code, _ := state.LastError(); code != string(loop.ReasonStopLine) {
				t.Errorf("the state does not record it: %s", state.Encode())
			}
			if turns > 0 && name != "time" && !strings.Contains(changelog, "not finished") && !strings.Contains(changelog, "blocked") {
				t.Errorf("the changelog does not say what became of the task:\n%s", changelog)
			}
			var kept struct {
				Metadata struct{ Session map[string]any }
			}
			if err := json.Unmarshal(state.Encode(), &kept); err != nil || kept.Metadata.Session["iterations"] == nil {
				t.Errorf("the counters are not kept: %v", err)
			}
		})
	}
}

// No task leaves the file by itself: what is not plain is left to a person as it is.
func TestTasksThatAreNotPlainStayByteForByte(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	odd := `{"version":"1.0.0","tasks":[{"id":"a","title":"First","status":"pending","priority":"high"},` + "\n" + `{"id":"b","title":"B","status":"review","priority":"low"}]}`
	r.write(todoPath, odd)
	before := r.git("rev-parse", "main")
	run := r.run(engine.Firing{})
	if run.Outcome != loop.OutcomeFailed || run.Reason != loop.ReasonStateManual || loop.ExitStatus(run.Outcome, run.Reason) != loop.ExitUnreadable ||
		!strings.Contains(run.Detail, todoPath+`:2:32: /tasks/1/status: "review" is not one of`) {
		t.Errorf("run = %s %s %q", run.Outcome, run.Reason, run.Detail)
	}
	if text, err := os.ReadFile(filepath.Join(r.root, todoPath)); string(text) != odd || err != nil || r.git("rev-parse", "main") != before || r.git("status", "--porcelain") != "M "+todoPath {
		t.Errorf("the checkout has changed: %s\n%s", r.git("status", "--porcelain"), text)
	}
}

// A text that is not JSON is committed beside the file that replaces it, also if the process
// dies before its commit.
func TestATextThatIsNotJSONIsKeptInGit(t *testing.T) {
	for name, dies := range map[string]bool{"at once": false, "by the session after one that died": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			broken := strings.TrimSuffix(oneTask, "]}") + `,{"id":"b","title":"B","status":"pending","priority":"urgent"},]}`
			r.write(todoPath, broken)
			if dies { // What is left is in the checkout alone.
				r.works("")
				wantDone(t, r.run(engine.Firing{}))
				r.git("reset", "-q", "--mixed", "origin/main~1")
				r.git("checkout", "-q", "outputs")
				r.git("push", "-q", "-f", "origin", "main")
			}
			r.works("")
			wantDone(t, r.run(engine.Firing{}))
			r.inOrder()
			names := strings.Fields(r.git("ls-tree", "-r", "--name-only", "main", "agent/"))
			i := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, todoPath+".broken-") })
			if i < 0 || r.git("show", "main:"+names[i]) != broken {
				t.Fatalf("the old text is not in the branch: %v", names)
			}
			_, todo, changelog := r.memory("main")
			if task, there := todo.Task("b"); !there || task.Priority != bootstate.PriorityCritical || !strings.Contains(changelog, "; the old file is "+names[i]) {
				t.Errorf("tasks: %s\nchangelog: %s", todo.Encode(), changelog)
			}
		})
	}
}
