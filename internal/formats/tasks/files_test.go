package tasks_test

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/tasks"
	"github.com/pawl-run/pawl/internal/formats/tasks/orgsim"
	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func openSession(t *testing.T, w *world, name string) (engine.Session, error) {
	t.Helper()
	return tasks.Protocol{}.Open(t.Context(), w.View(name, w.nextRun(name)))
}

func TestAFileThatIsMissingIsMadeFromTheTemplateAndSaid(t *testing.T) {
	w := newWorld(t)
	w.add("dev", nil)
	w.cycle("dev", always(orgsim.Done("ok")))
	for _, name := range []string{taskfile.TasksFile, taskfile.InboxFile, taskfile.HeartbeatFile, taskfile.ContextFile} {
		if w.Text("dev", name) == "" {
			t.Errorf("there is no %s", name)
		}
		if note := "agents/dev/" + name + " was missing; it is made from the template"; !strings.Contains(strings.Join(w.notes, "\n"), note) {
			t.Errorf("nobody is told: %q", note)
		}
	}
}

func TestAFileThatIsNotUTF8IsPutAsideAndAPersonIsAskedWhereWorkMayBeInIt(t *testing.T) {
	for name, escalates := range map[string]bool{taskfile.TasksFile: true, taskfile.InboxFile: true, taskfile.HeartbeatFile: false, taskfile.ContextFile: false} {
		w := alone(t, "a")
		w.Write("dev", name, "## Active Tasks\n\xff\xfe\n")
		run, key := w.cycle("dev", always(orgsim.Done("ok")))
		if escalated := run.Outcome == loop.OutcomeEscalated; escalated != escalates || escalates != (key == "") {
			t.Errorf("%s: the run ended %s and worked on %q", name, run.Outcome, key)
		}
		kept := 0
		for file, f := range w.Files {
			if strings.HasPrefix(path.Base(file), name+".broken-") && strings.Contains(f.Content, "\xff\xfe") {
				kept++
			}
		}
		if kept != 1 {
			t.Errorf("%s: %d copies of the old file are there", name, kept)
		}
	}
}

func TestALinkInPlaceOfAFileIsRefused(t *testing.T) {
	w := alone(t, "a")
	w.refuse("dev", taskfile.TasksFile, "is a link")
	if run, key := w.cycle("dev", always(orgsim.Done("ok"))); run.Outcome != loop.OutcomeFailed || key != "" || !strings.Contains(run.Detail, "agents/dev/TASKS.md is a link") {
		t.Errorf("the run ended %s: %s", run.Outcome, run.Detail)
	}
}

func TestConflictMarkersOfGitAreRefused(t *testing.T) {
	w := alone(t, "a")
	w.Write("dev", taskfile.TasksFile, "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n")
	_, err := openSession(t, w, "dev")
	if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitUnreadable {
		t.Errorf("open = %v, want exit status 4", err)
	}
}

func TestAMalformedStepIsNamedAndTheSoundOnesAreWorkedOn(t *testing.T) {
	w := alone(t, "a\nStatus: dubious", "b")
	wantKeys(t, w.cycles("dev", 2, always(orgsim.Done("ok"))), "step-2 -")
	if notes := strings.Join(w.notes, "\n"); !strings.Contains(notes, "agents/dev/TASKS.md:6:") {
		t.Errorf("the notes do not name the place: %s", notes)
	}
}

func TestTwoStepsWithOneNumberAreNamedWithBothLines(t *testing.T) {
	w := alone(t)
	w.Write("dev", taskfile.TasksFile, "## Active Tasks\n- **Step 1**: a\n- **Step 2**: b\n- **Step 1**: c\n")
	wantKeys(t, w.cycles("dev", 2, always(orgsim.Done("ok"))), "step-2 -")
	if notes := strings.Join(w.notes, "\n"); !strings.Contains(notes, "2") || !strings.Contains(notes, ":4:") {
		t.Errorf("notes: %s", notes)
	}
}

func TestAnAgentThatIsDisabledDoesNothing(t *testing.T) {
	w := alone(t, "a")
	w.Agents["dev"].Definition.Tasks.Enabled = false
	if run, _ := w.cycle("dev", always(orgsim.Done("ok"))); run.Outcome != loop.OutcomePaused || run.Reason != loop.ReasonDisabled {
		t.Errorf("the run ended %s %s", run.Outcome, run.Reason)
	}
}

func TestOnlyLinesThatACycleOwnsAreChanged(t *testing.T) {
	w := alone(t)
	const found = "\ufeff# Tasks of dev  \r\n\r\n## Active Tasks\r\n\r\n- **Step 1**: a\r\n  - Status: open\r\n  - Owner: ann\r\n\r\n<!-- keep me -->\r\n### task-002\r\n- title: b\r\n- status: open\r\n\r\n## Notes\r\nfree text   \r\n"
	w.Write("dev", taskfile.TasksFile, found)
	w.Write("dev", taskfile.HeartbeatFile, "# Heartbeat\n\n## Cycle Log\n\n| Timestamp | Step | Outcome | Duration | Notes |\n|---|---|---|---|---|\n| _awaiting first cycle_ | – | – | – | – |\n\n## Health Trends\n")
	w.cycle("dev", always(orgsim.Done("ok")))
	want := strings.Replace(found, "Status: open\r\n  - Owner: ann\r\n", "Status: done\r\n  - Owner: ann\r\n  - Result: ok (on branch pawl/dev/1)\r\n", 1)
	if diff := cmp.Diff(want, w.Text("dev", taskfile.TasksFile)); diff != "" {
		t.Errorf("TASKS.md (-want +got):\n%s", diff)
	}
	if got := w.Text("dev", taskfile.HeartbeatFile); !strings.Contains(got, "| _awaiting first cycle_ | – | – | – | – |\n| 2026-11-26T08:00:00Z | Step 1 | completed |") {
		t.Errorf("HEARTBEAT.md:\n%s", got)
	}
}

func TestWhatAPersonWritesDuringACycleStaysAndTheHeartbeatSaysSo(t *testing.T) {
	w := alone(t, "a", "b")
	w.during = func(string) {
		text := strings.Replace(w.Text("dev", taskfile.TasksFile), "Status: in-progress", "Status: cancelled", 1)
		w.Write("dev", taskfile.TasksFile, strings.Replace(text, "- **Step 2**: b", "- **Step 2**: b, but better", 1)+"\nmore\n")
	}
	w.cycle("dev", always(orgsim.Done("ok")))
	text := w.Text("dev", taskfile.TasksFile)
	if st := w.step("dev", "step-1"); st.Status != "cancelled" || !strings.Contains(text, "b, but better") || !strings.HasSuffix(text, "\nmore\n") {
		t.Errorf("TASKS.md:\n%s", text)
	}
	if got := w.Text("dev", taskfile.HeartbeatFile); !strings.Contains(got, "stays cancelled") {
		t.Errorf("the heartbeat does not say so:\n%s", got)
	}
}

func TestThePromptHasTheFilesInReadsAndNoOthers(t *testing.T) {
	w := alone(t, "a")
	d := &w.Agents["dev"].Definition
	d.Tasks.Reads, d.Tasks.Role = []string{taskfile.TasksFile, "NOTES.md"}, "You are dev."
	w.Write("dev", "NOTES.md", "the port is 80")
	w.Write("dev", taskfile.ContextFile, "## Constraints\nnever push\n")
	w.Write("dev", "SOUL.md", "a soul")
	w.cycle("dev", always(orgsim.Done("ok")))
	var labels []string
	for _, b := range w.asked.Memory {
		labels = append(labels, b.Label)
	}
	if diff := cmp.Diff([]string{taskfile.TasksFile, "NOTES.md"}, labels); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	if w.asked.Role != "You are dev." {
		t.Errorf("role = %q", w.asked.Role)
	}
}

// printing is an agent that reports nothing and prints files.
func printing(w *world, text string) orgsim.Attempt {
	nonce := ""
	for _, rule := range w.asked.Rules {
		if _, rest, is := strings.Cut(rule, "===FILES "); is {
			nonce, _, _ = strings.Cut(rest, " ")
		}
	}
	return orgsim.Attempt{Verdict: loop.VerdictPass, Reason: loop.ReasonReportedOnly, Said: strings.ReplaceAll(text, "NONCE", nonce)}
}

func nothingToDo(loop.Step) orgsim.Attempt {
	return orgsim.Attempt{Verdict: loop.VerdictPass, Reason: loop.ReasonReportedOnly}
}

const printed = "===FILES NONCE START===\n%s===FILES NONCE END===\n"

func TestAnAgentMayPrintItsFiles(t *testing.T) {
	w := alone(t, "a", "b")
	d := &w.Agents["dev"].Definition
	d.AgentCommand, d.Tier, d.Scope = "x", loop.TierReport, nil
	w.cycle("dev", func(loop.Step) orgsim.Attempt {
		return printing(w, fmt.Sprintf(printed, "---FILE_UPDATE NONCE: TASKS.md---\n"+stepsOf("a\nStatus: open", "b", "c")+"---END_FILE_UPDATE NONCE---\n"+
			"---FILE_UPDATE NONCE: CONTEXT.md---\n- the port is 80\n---END_FILE_UPDATE NONCE---\n---FILE_UPDATE NONCE: INBOX.md---\nNO_CHANGES\n---END_FILE_UPDATE NONCE---\n"+
			"---FILE_UPDATE NONCE: PLAN.md---\nx\n---END_FILE_UPDATE NONCE---\n"))
	})
	if st := w.step("dev", "step-3"); st.Title != "c" {
		t.Errorf("step 3 = %+v", st)
	}
	if own, users := w.step("dev", "step-3").From, w.step("dev", "step-2").From; own != "dev" || users != "" {
		t.Errorf("the step that the agent printed is from %q, and a person's from %q", own, users)
	}
	if w.cycle("dev", nothingToDo); w.asked.Task.By != loop.RoleHuman {
		t.Errorf("the task %q of a person is told as that of %q", w.asked.Task.Text, w.asked.Task.By)
	}
	if w.cycle("dev", nothingToDo); w.asked.Task.By != loop.RoleAgent || !strings.Contains(w.asked.Task.Text, "Step 3: c") {
		t.Errorf("the task %q of an agent is told as that of %q", w.asked.Task.Text, w.asked.Task.By)
	}
	if st := w.step("dev", "step-1"); st.Status != "done" {
		t.Errorf("step 1 is %s: what it came to is the runtime's to say", st.Status)
	}
	if !strings.Contains(w.Text("dev", taskfile.ContextFile), "the port is 80") || !strings.Contains(w.Text("dev", taskfile.HeartbeatFile), "PLAN.md") {
		t.Errorf("context:\n%s\nheartbeat:\n%s", w.Text("dev", taskfile.ContextFile), w.Text("dev", taskfile.HeartbeatFile))
	}
}

func TestWhatAnAgentPrintsWrongIsOneLineOfContextAndARowAndChangesNothingElse(t *testing.T) {
	for text, want := range map[string]string{
		"---FILE_UPDATE NONCE: TASKS.md---\nx\n---END_FILE_UPDATE NONCE---\n": "no_structured_output",
		fmt.Sprintf(printed, ""):        "empty_structured_output",
		fmt.Sprintf(printed, "hello\n"): "no_file_updates_found",
		fmt.Sprintf(printed, "---FILE_UPDATE NONCE: TASKS.md---\n## Active Tasks\n---END_FILE_UPDATE NONCE---\n"): "step",
	} {
		w := alone(t, "a", "b")
		d := &w.Agents["dev"].Definition
		d.AgentCommand, d.Tier, d.Scope = "x", loop.TierReport, nil
		w.cycle("dev", func(loop.Step) orgsim.Attempt { return printing(w, text) })
		if got := w.Text("dev", taskfile.ContextFile); !strings.Contains(got, want) {
			t.Errorf("%s: context:\n%s", want, got)
		}
		if diff := cmp.Diff([]string{"parse-error failed"}, w.rows("dev")); diff != "" {
			t.Errorf("%s: heartbeat (-want +got):\n%s", want, diff)
		}
		if w.step("dev", "step-2").Title != "b" {
			t.Errorf("%s: TASKS.md:\n%s", want, w.Text("dev", taskfile.TasksFile))
		}
	}
}
