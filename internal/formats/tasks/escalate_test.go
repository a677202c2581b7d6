package tasks_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/formats/tasks/orgsim"
	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// escalations are the messages about trouble that somebody got.
func (w *world) escalations(to string) (list []string) {
	for _, text := range w.to(to) {
		if kind, first, _ := strings.Cut(text, ": "); kind == "escalation" || kind == "alert" {
			list = append(list, first)
		}
	}
	return list
}

func TestOneRecipientForEachThresholdAndNobodyTwice(t *testing.T) {
	w := alone(t, "a", "b\nPriority: low\nDepends on: Step 1")
	w.Agents["dev"].Definition.OnBlocked = "retry_next_cycle"
	for n, want := range []map[string]int{
		{}, {}, {"lead": 1}, {"lead": 1, "chief": 1}, {"lead": 1, "chief": 1, "owner": 1}, {"lead": 1, "chief": 1, "owner": 1},
	} {
		w.cycles("dev", 1, always(orgsim.Blocked("no key")))
		got := map[string]int{}
		for _, to := range []string{"lead", "chief", "owner"} {
			for _, text := range w.escalations(to) {
				if strings.Contains(text, "Step 1") {
					got[to]++
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after %d times (-want +got):\n%s", n+1, diff)
		}
	}
	if text := w.Messages[0].Text; !strings.Contains(text, "Run: dev#3") || !strings.Contains(text, "no key") {
		t.Errorf("the message has no evidence:\n%s", text)
	}
}

func TestAStepThatAPersonOpensAgainIsAnotherCase(t *testing.T) {
	w := alone(t, "a")
	w.Agents["dev"].Definition.OnBlocked = "retry_next_cycle"
	w.cycles("dev", 3, always(orgsim.Blocked("no key")))
	w.Write("dev", taskfile.TasksFile, strings.Replace(w.Text("dev", taskfile.TasksFile), "Status: blocked", "Status: open", 1))
	w.cycles("dev", 3, always(orgsim.Blocked("no key")))
	if got := w.escalations("lead"); len(got) != 2 {
		t.Errorf("lead was told %d times: %q", len(got), got)
	}
}

func TestACriticalStepThatIsBlockedIsToldTheChiefAtOnceInsteadOfTheFirstRung(t *testing.T) {
	w := alone(t, "a\nPriority: critical", "b")
	w.Agents["dev"].Definition.OnBlocked = "retry_next_cycle"
	w.cycles("dev", 3, always(orgsim.Blocked("no key")))
	if got := w.escalations("chief"); len(got) != 1 || !strings.Contains(got[0], "critical") {
		t.Errorf("chief got %q", got)
	}
	if got := w.escalations("lead"); got != nil {
		t.Errorf("lead got %q", got)
	}
	if !w.fired["chief"] {
		t.Error("a critical message does not fire the chief at once")
	}
}

func TestACriticalStepThatFailsIsToldTheOwnerAtOnce(t *testing.T) {
	w := alone(t, "a\nPriority: critical", "b")
	w.cycles("dev", 1, always(orgsim.Failed("boom")))
	if got := w.escalations("owner"); len(got) != 1 {
		t.Errorf("owner got %q", got)
	}
}

func TestAllStepsBlockedIsToldTheOwnerAtOnce(t *testing.T) {
	w := alone(t, "a", "b")
	w.cycles("dev", 4, always(orgsim.Blocked("no key")))
	if got := w.escalations("owner"); len(got) != 1 || !strings.Contains(got[0], "all steps are blocked") {
		t.Errorf("owner got %q", got)
	}
}

func TestThreeFailedCyclesInARowAreToldTheOwnerOnce(t *testing.T) {
	w := alone(t, "a", "b", "c", "d", "e", "f", "g", "h", "i")
	w.cycles("dev", 2, always(orgsim.Failed("boom")))
	if got := w.escalations("owner"); got != nil {
		t.Errorf("after two: %q", got)
	}
	w.cycles("dev", 5, always(orgsim.Failed("boom")))
	if got := w.escalations("owner"); len(got) != 1 || !strings.Contains(got[0], "3 cycles in a row failed") {
		t.Errorf("owner got %q", got)
	}
}

func TestFiveIdleCyclesAlertTheChiefAndTheCountBeginsAgain(t *testing.T) {
	w := alone(t)
	w.cycles("dev", 4, nil)
	if got := w.escalations("chief"); got != nil {
		t.Errorf("after four: %q", got)
	}
	w.cycles("dev", 1, nil)
	if got := w.escalations("chief"); len(got) != 1 {
		t.Errorf("after five: %q", got)
	}
	w.cycles("dev", 4, nil)
	if got := w.escalations("chief"); len(got) != 1 {
		t.Errorf("after nine: %q", got)
	}
	w.cycles("dev", 1, nil)
	if got := w.escalations("chief"); len(got) != 2 {
		t.Errorf("after ten: %q", got)
	}
	wantKeys(t, w.cycles("chief", 1, nil), "-")                                                                         // An alert is no work.
	if got := w.Text("chief", taskfile.InboxFile); strings.Count(got, "Processed: 2026-11-26T10:30:00Z → noted") != 1 { // Once a day is enough.
		t.Errorf("the inbox of the chief:\n%s", got)
	}
}

func TestEscalateAndEscalateAndSkipTellTheTargetAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		policy func(*loop.Definition)
		a      orgsim.Attempt
	}{
		"on_blocked": {func(d *loop.Definition) { d.OnBlocked = "escalate" }, orgsim.Blocked("no key")},
		"on_failure": {func(d *loop.Definition) { d.OnFailure = "escalate_and_skip" }, orgsim.Failed("boom")},
	} {
		t.Run(name, func(t *testing.T) {
			w := alone(t, "a", "b", "c")
			c.policy(&w.Agents["dev"].Definition)
			w.cycles("dev", 1, always(c.a))
			if got := w.escalations("chief"); len(got) != 1 {
				t.Errorf("chief got %q", got)
			}
		})
	}
}

func TestLogAndSkipTellsNobodyBeforeTheThreshold(t *testing.T) {
	w := alone(t, "a", "b", "c", "d")
	wantKeys(t, w.cycles("dev", 2, always(orgsim.Blocked("no key"))), "step-1 step-2")
	if len(w.Messages)+len(w.Told) > 0 {
		t.Errorf("messages: %v %v", w.Messages, w.Told)
	}
}
