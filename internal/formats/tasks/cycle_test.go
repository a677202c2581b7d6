package tasks_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/tasks/orgsim"
	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func always(a orgsim.Attempt) func(loop.Step) orgsim.Attempt {
	return func(loop.Step) orgsim.Attempt { return a }
}

// cycles lets an agent work n times, a quarter of an hour apart, and returns the steps that it
// worked on; "-": none.
func (w *world) cycles(name string, n int, act func(loop.Step) orgsim.Attempt) (keys []string) {
	w.t.Helper()
	for range n {
		_, key := w.cycle(name, act)
		if key == "" {
			key = "-"
		}
		keys = append(keys, key)
		w.Now = w.Now.Add(15 * time.Minute)
	}
	return keys
}

// alone is a world with one agent that has these steps, its lead and the chief.
func alone(tb testing.TB, steps ...string) *world {
	tb.Helper()
	w := newWorld(tb)
	w.add("dev", nil)
	w.add("lead", func(d *loop.Definition) { d.Tasks.ReportsTo, d.Tasks.Reports = "chief", []string{"dev"} })
	w.add("chief", func(d *loop.Definition) { d.Tasks.ReportsTo, d.Tasks.Reports = "", []string{"lead"} })
	w.Write("dev", taskfile.TasksFile, stepsOf(steps...))
	return w
}

func wantKeys(t *testing.T, got []string, want string) {
	t.Helper()
	if text := strings.Join(got, " "); text != want {
		t.Errorf("worked on %s, want %s", text, want)
	}
}

// to are the messages for somebody, as "KIND: first line".
func (w *world) to(name string) (list []string) {
	for _, m := range w.Messages {
		if m.To == name {
			first, _, _ := strings.Cut(m.Text, "\n")
			list = append(list, m.Kind+": "+first)
		}
	}
	for _, d := range w.Told {
		if d.To == name {
			first, _, _ := strings.Cut(d.Text, "\n")
			list = append(list, d.Kind+": "+first)
		}
	}
	return list
}

func TestStepsGoByPriorityAndThenByTheOrderOfTheFile(t *testing.T) {
	w := alone(t, "a\nPriority: low", "b", "c\nPriority: critical", "d\nStatus: in-progress\nPriority: medium", "e\nPriority: high")
	wantKeys(t, w.cycles("dev", 6, always(orgsim.Done("ok"))), "step-3 step-5 step-2 step-4 step-1 -")
}

func TestAStepWaitsForThoseThatItDependsOn(t *testing.T) {
	w := alone(t, "a\nPriority: critical\nDepends on: Step 2", "b\nPriority: low")
	wantKeys(t, w.cycles("dev", 3, always(orgsim.Done("ok"))), "step-2 step-1 -")
}

func TestAStepWithAnUnknownDependencyIsNotEligibleAndNamesIt(t *testing.T) {
	w := alone(t, "a\nDepends on: Step 7", "b")
	wantKeys(t, w.cycles("dev", 2, always(orgsim.Done("ok"))), "step-2 -")
	opened, err := openSession(t, w, "dev")
	if err != nil {
		t.Fatal(err)
	}
	if c := opened.Candidates(engine.Sensed{}, w.Now)[0]; c.Drop != loop.ReasonNotEligible || !strings.Contains(c.Detail, "Step 7, which is not in TASKS.md (line 5)") {
		t.Errorf("step 1 is dropped with %s %q", c.Drop, c.Detail)
	}
}

func TestStepsThatDependOnEachOtherInACircleAreRefusedWithTheirPath(t *testing.T) {
	w := alone(t, "a\nDepends on: Step 2", "b\nDepends on: Step 3", "c\nDepends on: Step 1", "d")
	wantKeys(t, w.cycles("dev", 1, always(orgsim.Done("ok"))), "step-4")
	opened, err := openSession(t, w, "dev")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range opened.Candidates(engine.Sensed{}, w.Now) {
		if !strings.Contains(c.Detail, "circle: Step 1 → Step 2 → Step 3 → Step 1") {
			t.Errorf("%s: %s", c.Step.Key, c.Detail)
		}
	}
}

// With 3: blocked in cycle 1, not chosen in 2 and 3 whatever its priority, eligible in 4;
// blocked again in 4, eligible in 7.
func TestABlockedStepWaitsForAsManyCyclesAsTheDefinitionSays(t *testing.T) {
	w := alone(t, "a\nPriority: critical", "b", "c", "d", "e", "f", "g")
	act := func(s loop.Step) orgsim.Attempt {
		if s.Key == "step-1" {
			return orgsim.Blocked("no key")
		}
		return orgsim.Done("ok")
	}
	wantKeys(t, w.cycles("dev", 8, act), "step-1 step-2 step-3 step-1 step-4 step-5 step-1 step-6")
}

func TestIdleCyclesCountForABlockedStepAndPausedOnesDoNot(t *testing.T) {
	w := alone(t, "a")
	wantKeys(t, w.cycles("dev", 2, always(orgsim.Blocked("no key"))), "step-1 -")
	w.Agents["dev"].Paused = true
	wantKeys(t, w.cycles("dev", 4, always(orgsim.Blocked("no key"))), "- - - -")
	w.Agents["dev"].Paused = false
	wantKeys(t, w.cycles("dev", 2, always(orgsim.Blocked("no key"))), "- step-1")
}

func TestAStepThatAPersonBlockedWaitsFromThenOn(t *testing.T) {
	w := alone(t, "a\nStatus: blocked\nBlocked reason: the key comes tomorrow\nRetry count: 2")
	wantKeys(t, w.cycles("dev", 4, always(orgsim.Done("ok"))), "- - - step-1")
}

func TestRetryNextCycleDoesNotWait(t *testing.T) {
	w := alone(t, "a")
	w.Agents["dev"].Definition.OnBlocked = "retry_next_cycle"
	wantKeys(t, w.cycles("dev", 3, always(orgsim.Blocked("no key"))), "step-1 step-1 step-1")
}

func TestAFailedStepIsNotTriedAgainUntilAPersonOpensIt(t *testing.T) {
	w := alone(t, "a", "b")
	wantKeys(t, w.cycles("dev", 3, always(orgsim.Failed("boom"))), "step-1 step-2 -")
	w.Write("dev", taskfile.TasksFile, strings.Replace(w.Text("dev", taskfile.TasksFile), "Status: failed", "Status: open", 1))
	wantKeys(t, w.cycles("dev", 2, always(orgsim.Done("ok"))), "step-1 -")
}

func TestRetryOnceLeavesTheStepOpenForOneMoreCycle(t *testing.T) {
	w := alone(t, "a", "b\nPriority: low")
	w.Agents["dev"].Definition.OnFailure = "retry_once"
	wantKeys(t, w.cycles("dev", 3, always(orgsim.Failed("boom"))), "step-1 step-1 step-2")
	if st := w.step("dev", "step-1"); st.Status != "failed" || st.Retries != 2 || st.Result != "failed: boom" {
		t.Errorf("step 1 = %+v", st)
	}
}

func TestHaltPausesTheLoopAndSaysHowToResumeIt(t *testing.T) {
	for name, c := range map[string]struct {
		policy func(*loop.Definition)
		a      orgsim.Attempt
	}{
		"on_blocked": {func(d *loop.Definition) { d.OnBlocked = "halt" }, orgsim.Blocked("no key")},
		"on_failure": {func(d *loop.Definition) { d.OnFailure = "halt" }, orgsim.Failed("boom")},
	} {
		t.Run(name, func(t *testing.T) {
			w := alone(t, "a", "b")
			c.policy(&w.Agents["dev"].Definition)
			wantKeys(t, w.cycles("dev", 2, always(c.a)), "step-1 -")
			if got := w.Text("dev", taskfile.HeartbeatFile); !strings.Contains(got, "halted until a person resumes it: pawl resume dev") {
				t.Errorf("the heartbeat does not say how to resume it:\n%s", got)
			}
		})
	}
}

func TestTheCycleWritesStatusResultRetriesPitfallAndHeartbeat(t *testing.T) {
	w := alone(t, "a", "b", "c")
	w.cycle("dev", always(orgsim.Done("it works")))
	w.cycle("dev", always(orgsim.Blocked("no key")))
	w.cycle("dev", always(orgsim.Failed("boom")))
	if st := w.step("dev", "step-1"); st.Status != "done" || st.Result != "it works (on branch pawl/dev/1)" {
		t.Errorf("step 1 = %+v", st)
	}
	if st := w.step("dev", "step-2"); st.Status != "blocked" || st.BlockedReason != "no key" || st.Retries != 1 {
		t.Errorf("step 2 = %+v", st)
	}
	if st := w.step("dev", "step-3"); st.Status != "failed" || st.Result != "failed: boom" {
		t.Errorf("step 3 = %+v", st)
	}
	var causes []string
	for _, p := range taskfile.ParseContext(w.Text("dev", taskfile.ContextFile)).Pitfalls() {
		causes = append(causes, p.Step+" "+p.Cause)
	}
	if diff := cmp.Diff([]string{"step-2 blocked: no key", "step-3 failed: boom"}, causes); diff != "" {
		t.Errorf("pitfalls (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Step 1 completed", "Step 2 blocked", "Step 3 failed"}, w.rows("dev")); diff != "" {
		t.Errorf("heartbeat (-want +got):\n%s", diff)
	}
	for _, note := range []string{"step 1 done: it works", "step 2 blocked: no key", "step 3 failed: boom"} {
		if got := w.Text("dev", taskfile.HeartbeatFile); !strings.Contains(got, note) {
			t.Errorf("the heartbeat does not say %q:\n%s", note, got)
		}
	}
}

func TestAnAgentThatGoesOnWithItsCommandsHasNotFailed(t *testing.T) {
	w := alone(t, "a\nPriority: critical", "b")
	goesOn := orgsim.Attempt{
		Verdict: loop.VerdictFail, Reason: loop.ReasonContinues, Words: "commands of the last turn:\n$ ls\na.txt\n[exit status 0]",
		Report: `{"outcome":"continue","commands":[{"argv":["ls"]}]}`,
	}
	wantKeys(t, w.cycles("dev", 4, always(goesOn)), "step-1 step-1 step-1 step-1")
	if st := w.step("dev", "step-1"); st.Status != "open" {
		t.Errorf("step 1 = %+v, want it open", st)
	}
	if got := taskfile.ParseContext(w.Text("dev", taskfile.ContextFile)).Pitfalls(); len(got) != 0 {
		t.Errorf("pitfalls = %+v, want none", got)
	}
	if diff := cmp.Diff([]string{"Step 1 blocked", "Step 1 blocked", "Step 1 blocked", "Step 1 blocked"}, w.rows("dev")); diff != "" {
		t.Errorf("heartbeat (-want +got):\n%s", diff)
	}
	if len(w.Messages)+len(w.Told) != 0 {
		t.Errorf("somebody was told: %+v %+v", w.Messages, w.Told)
	}
}

func TestPendingEntriesBecomeStepsTheCriticalOnesFirstAndMoveToProcessed(t *testing.T) {
	w := alone(t)
	w.Write("dev", taskfile.InboxFile, "# Inbox\n\n## Pending\n\n### [2026-11-26T07:00:00Z] From: lead | Priority: low\nwrite the docs\nTask-ID: 7\n\n### [2026-11-26T07:01:00Z] From: chief | Priority: critical\nmend the build\nTags: code\n\n## Processed\n")
	wantKeys(t, w.cycles("dev", 1, always(orgsim.Done("ok"))), "step-1")
	if st := w.step("dev", "step-1"); st.Title != "mend the build" || st.Priority != "critical" || st.From != "chief" || !slices.Equal(st.Tags, []string{"code"}) {
		t.Errorf("step 1 = %+v", st)
	}
	if !slices.ContainsFunc(w.asked.Memory, func(b engine.Block) bool {
		return strings.Contains(b.Text, "mend the build") && strings.Contains(b.Text, "From: chief")
	}) {
		t.Error("the agent does not see the entry that became its step")
	}
	inbox, _ := taskfile.ParseInbox(w.Text("dev", taskfile.InboxFile))
	if len(inbox.Pending()) != 0 || len(inbox.Processed()) != 2 || !strings.Contains(w.Text("dev", taskfile.InboxFile), "Task-ID: 7") {
		t.Errorf("inbox:\n%s", w.Text("dev", taskfile.InboxFile))
	}
	wantKeys(t, w.cycles("dev", 2, always(orgsim.Done("ok"))), "step-2 -")
}

func TestOfTenPendingEntriesTheSuperiorIsAskedFirstAndCriticalOnesAreTaken(t *testing.T) {
	w := alone(t)
	var b strings.Builder
	b.WriteString("## Pending\n")
	for i := range 10 {
		fmt.Fprintf(&b, "\n### [2026-11-26T07:%02d:00Z] From: x | Priority: %s\nthing %d\n", i, []string{"low", "critical"}[i/9], i)
	}
	w.Write("dev", taskfile.InboxFile, b.String()+"\n## Processed\n")
	wantKeys(t, w.cycles("dev", 2, always(orgsim.Done("ok"))), "step-1 step-2")
	if got := w.to("lead"); len(got) == 0 || !strings.HasPrefix(got[0], "triage: dev has 10 pending entries") {
		t.Errorf("lead got %q", got)
	}
}

func TestABacklogWaitsForTheAnswerOfTheSuperiorOrAsManyCyclesAsABlockedStep(t *testing.T) {
	full := func(t *testing.T) *world {
		w := alone(t)
		var b strings.Builder
		b.WriteString("## Pending\n")
		for i := range 12 {
			fmt.Fprintf(&b, "\n### [2026-11-26T07:%02d:00Z] From: x | Priority: low\nthing %d\n", i, i)
		}
		w.Write("dev", taskfile.InboxFile, b.String()+"\n## Processed\n")
		return w
	}
	t.Run("time", func(t *testing.T) {
		w := full(t)
		wantKeys(t, w.cycles("dev", 4, always(orgsim.Done("ok"))), "- - - step-1")
		if got := w.to("lead"); len(got) != 1 {
			t.Errorf("lead was asked %d times: %q", len(got), got)
		}
	})
	t.Run("answer", func(t *testing.T) {
		w := full(t)
		wantKeys(t, w.cycles("dev", 1, always(orgsim.Done("ok"))), "-")
		w.Deliver("lead", loop.Delivery{To: "dev", Key: "answer", Kind: "triage", Text: "thing 3 counts, and nothing else", Priority: "high"})
		_, key := w.cycle("dev", always(orgsim.Done("ok")))
		if st := w.step("dev", key); st.Title != "thing 3 counts, and nothing else" {
			t.Errorf("worked on %q first", st.Title)
		}
	})
}

func TestAnOrderGoesDownAReportGoesUpAndWhatCannotGoThereGoesToTheSuperior(t *testing.T) {
	w := alone(t, "a")
	w.add("peer", nil)
	w.Agents["lead"].Definition.Tasks.Reports = []string{"dev", "peer"}
	messages := orgsim.Attempt{Verdict: loop.VerdictPass, Reason: loop.ReasonGatesPass, Report: `{"outcome":"done","messages":[
		{"to":"peer","kind":"task","content":"do my work"},{"to":"@peer","kind":"message","content":"the port is 80"},{"to":"reports_to","kind":"report","content":"half is done"},{"to":"nobody","kind":"report","content":"hello"}]}`}
	w.cycle("dev", always(messages))
	if diff := cmp.Diff([]string{"message: the port is 80"}, w.to("peer")); diff != "" {
		t.Errorf("peer (-want +got):\n%s", diff)
	}
	want := []string{"task: For peer: do my work", "report: half is done", "report: For nobody: hello", "report: dev has done all of its steps; the last one: a"}
	if diff := cmp.Diff(want, w.to("lead")); diff != "" {
		t.Errorf("lead (-want +got):\n%s", diff)
	}
	w.Write("lead", taskfile.TasksFile, stepsOf("delegate"))
	order := orgsim.Attempt{Verdict: loop.VerdictPass, Reason: loop.ReasonGatesPass, Report: `{"outcome":"done","messages":[{"to":"dev","kind":"task","content":"write b\nPriority: high\nTags: code, go"}]}`}
	w.cycle("lead", func(s loop.Step) orgsim.Attempt {
		if s.Title == "delegate" {
			return order
		}
		return orgsim.Done("read")
	})
	for !slices.Contains(w.to("dev"), "task: write b") {
		if _, key := w.cycle("lead", always(order)); key == "" {
			t.Fatal("the lead never gave the order")
		}
	}
	_, key := w.cycle("dev", always(orgsim.Done("ok")))
	if st := w.step("dev", key); st.Title != "write b" || st.Priority != "high" || !slices.Equal(st.Tags, []string{"code", "go"}) || st.From != "lead" {
		t.Errorf("dev worked on %+v", st)
	}
}

func TestTheChiefSendsOnWhatItsTagsAreRoutedTo(t *testing.T) {
	w := alone(t)
	w.Agents["chief"].Definition.Tasks.Routing = map[string]string{"code": "dev"}
	w.Write("chief", taskfile.InboxFile, "## Pending\n\n### [2026-11-26T07:00:00Z] From: owner | Priority: high\nmend the parser\nTags: code\n\n### [2026-11-26T07:00:00Z] From: owner | Priority: high\nthink\nTags: other\n\n## Processed\n")
	_, key := w.cycle("chief", always(orgsim.Done("ok")))
	if st := w.step("chief", key); st.Title != "think" {
		t.Errorf("the chief worked on %q", st.Title)
	}
	if diff := cmp.Diff([]string{"task: mend the parser"}, w.to("dev")); diff != "" {
		t.Errorf("dev (-want +got):\n%s", diff)
	}
}

func TestWhatAnAgentCannotHandleGoesToItsSuperiorAndIsCancelled(t *testing.T) {
	w := alone(t, "a")
	w.cycle("dev", always(orgsim.Attempt{Verdict: loop.VerdictFail, Reason: loop.ReasonAgentEscalated, Words: "I may not deploy", Report: `{"outcome":"escalate","reason":"I may not deploy"}`}))
	if st := w.step("dev", "step-1"); st.Status != "cancelled" || !strings.Contains(st.Result, "handed over to lead: I may not deploy") {
		t.Errorf("step 1 = %+v", st)
	}
	if got := w.to("lead"); len(got) != 1 || !strings.HasPrefix(got[0], "task: Step 1: a") {
		t.Errorf("lead got %q", got)
	}
	wantKeys(t, w.cycles("dev", 2, always(orgsim.Done("ok"))), "- -")
}
