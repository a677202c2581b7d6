package specs_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/approvals"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// TestASpecNeverWaitsForAQuestionThatNobodyCanAnswer takes the question away that a spec
// waits for. It was a dead end once: neither approve nor reject nor step took it up again.
func TestASpecNeverWaitsForAQuestionThatNobodyCanAnswer(t *testing.T) {
	landing := func(s *loopspec.Spec) { s.HumanGate = "land after approval" }
	approve := func(r rig, id string) {
		_, _ = r.Approvals.Approve(r.T.Context(), id, loop.Answer{By: "Ann"}) // What it says is not what is tested.
	}
	commit := func(r rig, name, text string) {
		gittest.WriteFile(r.T, filepath.Join(r.Root, name), text)
		gittest.Run(r.T, r.Root, "add", name)
		gittest.Run(r.T, r.Root, "commit", "-q", "-m", "by hand")
	}
	for name, c := range map[string]struct {
		change func(*loopspec.Spec)
		agent  string
		happen func(r rig, id string)
		want   loopspec.Status
		told   string // the next iteration
	}{
		"its result is landed by hand": {
			agent: says, want: loopspec.StatusDone,
			happen: func(r rig, id string) {
				must[runs.View](r.T)(r.Approvals.Land(r.T.Context(), id+"#1", approvals.LandRequest{}, "", loop.Answer{By: "Ann"}))
			},
		},
		"the base moves, and the gates fail there": {
			agent: says, want: loopspec.StatusRunning, told: "and there: alone failed",
			change: func(s *loopspec.Spec) {
				landing(s)
				s.Gates = append(s.Gates, loop.Gate{Name: "alone", Kind: loop.GateCommand, Check: "`! test -e moved.txt`"})
			},
			happen: func(r rig, id string) { commit(r, "moved.txt", "x\n"); approve(r, id) },
		},
		"the base moves, and both changed the same line": {
			agent: says, want: loopspec.StatusRunning, change: landing, told: "changed the same lines",
			happen: func(r rig, id string) { commit(r, "src/a.txt", "three\n"); approve(r, id) },
		},
		"the base moves, and the result passes there": {
			agent: says, want: loopspec.StatusWaitingHuman, change: landing,
			happen: func(r rig, id string) { commit(r, "moved.txt", "x\n"); approve(r, id) },
		},
		"its branch is merged by hand before the yes": {
			agent: says, want: loopspec.StatusRunning, change: landing, told: "holds pawl/",
			happen: func(r rig, id string) {
				gittest.Run(r.T, r.Root, "merge", "-q", "--ff-only", "pawl/"+id+"/1")
				approve(r, id)
			},
		},
		"the base holds the same change by the time of the yes": {
			agent: says, want: loopspec.StatusDone, change: landing,
			happen: func(r rig, id string) {
				commit(r, "src/a.txt", gittest.Run(r.T, r.Root, "show", "pawl/"+id+"/1:src/a.txt")+"\n")
				approve(r, id)
			},
		},
		"it is edited after it was handed over": {
			agent: handsUp, want: loopspec.StatusRunning,
			happen: func(r rig, id string) {
				edit := specs.EditRequest{Spec: id, File: "spec.json", Document: contract(func(s *loopspec.Spec) { s.Goal = "It says two, always." })}
				must[specs.View](r.T)(r.Edit(r.T.Context(), verbtest.Ann, edit))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(verbtest.New(t))
			id := r.create(c.change).Spec.ID
			r.step(id, c.agent)
			if v := r.get(id); v.Status != loopspec.StatusWaitingHuman {
				t.Fatalf("before, it is %s", v.Status)
			}
			c.happen(r, id)
			v := r.get(id)
			if v.Status != c.want {
				t.Fatalf("it is %s, waiting for %q, want %s", v.Status, v.Approval, c.want)
			}
			if !strings.Contains(v.Feedback, c.told) {
				t.Errorf("the next iteration is told %q, want %q", v.Feedback, c.told)
			}
			if v.Status == loopspec.StatusWaitingHuman {
				if asked := must[approvals.View](t)(r.Approvals.Find(t.Context(), v.Approval)); asked.State != loop.ApprovalOpen {
					t.Errorf("it waits for an approval that is %s", asked.State)
				}
			}
			if v.Status == loopspec.StatusRunning {
				r.step(id, fails)
			}
		})
	}
}
