//go:build unix

package boot_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

const threeTasks = `{"version":"1.0.0","tasks":[
	{"id":"a","title":"First","status":"pending","priority":"high"},{"id":"b","title":"Second","status":"pending","priority":"high"},
	{"id":"c","title":"Third","status":"pending","priority":"high"}]}`

// landRig is a rig whose sessions leave it to a person to push.
func landRig(t *testing.T) *rig {
	t.Helper()
	t.Parallel()
	r := newRig(t, map[string]string{todoPath: threeTasks})
	r.def.LandVia = "human"
	return r
}

// waits carries out a session that ends with a question, and returns the question.
func (r *rig) waits() loop.Approval {
	r.t.Helper()
	r.works("")
	run := r.run(engine.Firing{})
	if run.Outcome != loop.OutcomeWaiting || run.Reason != loop.ReasonApproval || run.Approval == "" {
		r.t.Fatalf("run = %s %s %q, want one that waits", run.Outcome, run.Reason, run.Detail)
	}
	a := r.approval(run.Approval)
	if a.Action.Kind != loop.ActionPush || a.Action.Commit != run.Commit || a.Action.Base != "main" || a.Action.Remote != "origin" {
		r.t.Fatalf("asked is %+v, want the push of %s", a.Action, run.Commit)
	}
	return a
}

// open are the commits that open questions are about, the newest first.
func (r *rig) open() (commits string) {
	r.t.Helper()
	r.view(func(rd *store.Reader) error {
		list, err := rd.Approvals(r.t.Context(), "lp_boot", loop.ApprovalOpen)
		for _, a := range list {
			commits += a.Action.Commit + " "
		}
		return err
	})
	return strings.TrimSpace(commits)
}

func (r *rig) view(fn func(*store.Reader) error) {
	r.t.Helper()
	if err := r.store.View(r.t.Context(), fn); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) approve(a loop.Approval) loop.Run {
	r.t.Helper()
	return r.run(engine.Yes(a.ID, loop.Answer{By: "ann"}))
}

func (r *rig) remoteTip() string { return gittest.Run(r.t, r.remote, "rev-parse", "main") }

func TestNothingIsPushedBeforeAPersonSaidYes(t *testing.T) {
	r := landRig(t)
	before := r.remoteTip()
	first := r.waits()
	second := r.waits() // It works on, and pushes nothing first.
	if r.status("a") != bootstate.StatusDone || r.status("b") != bootstate.StatusDone || r.remoteTip() != before {
		t.Fatalf("a is %s, b is %s, the remote is at %s", r.status("a"), r.status("b"), r.remoteTip())
	}
	if len(first.Action.Flags) != 1 || first.Action.Onto != before {
		t.Errorf("asked is %+v, want that no gate has judged it, and what the remote has", first.Action)
	}
	if run := r.approve(first); run.Outcome != loop.OutcomeLanded || r.remoteTip() != first.Action.Commit {
		t.Fatalf("run = %s %q, and the remote is at %s, want %s", run.Outcome, run.Detail, r.remoteTip(), first.Action.Commit)
	}
	if got := r.open(); got != second.Action.Commit {
		t.Errorf("open are %s, want %s", got, second.Action.Commit)
	}
	if run := r.approve(second); run.Outcome != loop.OutcomeLanded || r.remoteTip() != second.Action.Commit {
		t.Fatalf("run = %s %q, and the remote is at %s, want %s", run.Outcome, run.Detail, r.remoteTip(), second.Action.Commit)
	}
	r.inOrder()
}

// What is at the remote is not asked about any more, whoever pushed it.
func TestASessionThatPushesByItselfAnswersWhatWasAsked(t *testing.T) {
	r := landRig(t)
	r.waits()
	r.def.LandVia = ""
	r.works("")
	wantDone(t, r.run(engine.Firing{}))
	if got := r.open(); got != "" {
		t.Errorf("open is %s", got)
	}
	r.inOrder()
}

// A yes to the newest question is one to what the older ones are about.
func TestAYesToTheNewestCommitAnswersTheOlderOnes(t *testing.T) {
	r := landRig(t)
	r.waits()
	if run := r.approve(r.waits()); run.Outcome != loop.OutcomeLanded {
		t.Fatalf("run = %s %q", run.Outcome, run.Detail)
	}
	if got := r.open(); got != "" {
		t.Errorf("open is %s", got)
	}
	r.inOrder()
}

func TestANoIsNotAskedAboutAgain(t *testing.T) {
	r := landRig(t)
	r.write(todoPath, oneTask)
	r.commit("one task")
	r.git("push", "-q", "origin", "main")
	a := r.waits()
	if _, _, err := r.engine.Answer(t.Context(), a.ID, loop.Answer{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	before := r.remoteTip()
	for range 2 { // Nothing is left to do.
		if run := r.run(engine.Firing{Trigger: "schedule"}); run.Outcome != loop.OutcomeQuiet || run.Approval == a.ID {
			t.Errorf("run = %s %s %q", run.Outcome, run.Reason, run.Detail)
		}
	}
	for c := range strings.FieldsSeq(r.open()) {
		if c == a.Action.Commit {
			t.Error("it is asked again")
		}
	}
	if r.remoteTip() != before || r.status("a") != bootstate.StatusDone {
		t.Errorf("the remote is at %s, and the task is %s", r.remoteTip(), r.status("a"))
	}
}

// What a clone has pushed meanwhile is taken in; a question about commits that were made
// again on top of it is void, and the new ones are asked about.
func TestAQuestionWhoseCommitsWereMadeAgainIsAskedAnew(t *testing.T) {
	r := landRig(t)
	other := r.clone()
	old := r.waits()
	other.reports(`{"outcome":"done","summary":"worked"}`, map[string]string{"outputs/b.txt": "b\n"})
	other.def.LandVia = ""
	wantDone(t, other.run(engine.Firing{Request: "b"}))
	there := r.remoteTip()
	if run := r.approve(old); run.Outcome != loop.OutcomeRefused || r.remoteTip() != there {
		t.Fatalf("run = %s %q, and the remote is at %s, want %s", run.Outcome, run.Detail, r.remoteTip(), there)
	}
	renewed := r.waits()
	if got := r.open(); got != renewed.Action.Commit || renewed.Action.Onto != there {
		t.Errorf("open is %s, from %s", got, renewed.Action.Onto)
	}
	if run := r.approve(renewed); run.Outcome != loop.OutcomeLanded {
		t.Fatalf("run = %s %q", run.Outcome, run.Detail)
	}
	r.inOrder()
}

func TestAWorkspaceWithoutARemoteIsAskedNothing(t *testing.T) {
	r := landRig(t)
	r.git("remote", "remove", "origin")
	wantDone(t, r.run(engine.Firing{}))
	if got := r.open(); got != "" || !r.said("no remote origin") {
		t.Errorf("open is %s", got)
	}
}

// Without the key sessions push as ever, and say so where no gate judged their work.
func TestWorkThatNoGateJudgedIsSaidToBePushed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(r *rig)
		want   string
	}{
		"no gate":         {func(*rig) {}, "origin/main"},
		"a gate":          {func(r *rig) { r.def.Verify = "true" }, ""},
		"the memory only": {func(r *rig) { r.reports(`{"outcome":"blocked","reason":"not clear"}`, nil) }, ""},
		"no remote":       {func(r *rig) { r.git("remote", "remove", "origin") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			c.change(r)
			if run := r.run(engine.Firing{}); run.Cause.Ungated != c.want {
				t.Errorf("run = %s %q, subject %q, want %q", run.Outcome, run.Detail, run.Subject(), c.want)
			}
		})
	}
}

// Whoever is named by another word pushes.
func TestAnotherWordLeavesThePushToWhoeverItNames(t *testing.T) {
	r := landRig(t)
	r.def.LandVia = "fleet-ops"
	before := r.remoteTip()
	for range 2 {
		r.works("")
		wantDone(t, r.run(engine.Firing{}))
	}
	if got := fmt.Sprint(r.open(), r.remoteTip()); got != before {
		t.Errorf("asked or pushed: %s", got)
	}
}
