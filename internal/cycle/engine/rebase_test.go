package engine_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// void makes an approval void, as a base that has moved does.
func (r *rig) void(id string) {
	r.t.Helper()
	err := r.store.Update(r.t.Context(), func(tx *store.Tx) error {
		_, err := tx.VoidApproval(r.t.Context(), id, "main has moved")
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestAProposalIsMadeAgainOnABaseThatMoved(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string // that moved on main
		outcome    loop.Outcome
		reason     loop.Reason
		detail     string // with %s for the tip of main
	}{
		"beside the change":      {"README.md", "moved\n", loop.OutcomeProposed, loop.ReasonGatesPass, ""},
		"in the same lines":      {"src/a.txt", "mine\n", loop.OutcomeEscalated, loop.ReasonConflict, "pawl/fix/1 and main changed the same lines: src/a.txt; land it by hand, or run the loop again"},
		"to the same":            {"src/a.txt", "fix\n", loop.OutcomeDone, loop.ReasonNoChange, "main holds this change already"},
		"so that its gate fails": {"src/broken", "x\n", loop.OutcomeFailed, loop.ReasonGateFailed, "nothing has landed: main moved to %s, and there: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := one(t)
			r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
				gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "fix\n")
				return says(t, req, `{"outcome":"done","summary":"changed it"}`)
			}
			target := r.target("fix", pinned{}, until("grep -q fix src/a.txt && ! test -e src/broken", "fix", []string{"src/**"}))
			a := r.approval(r.run(target, engine.Firing{}).Approval)
			gittest.WriteFile(t, filepath.Join(r.root, c.file), c.text)
			gittest.Run(t, r.root, "add", "-A")
			gittest.Run(t, r.root, "commit", "-qm", "moved")
			gittest.Run(t, r.root, "checkout", "-qb", "elsewhere") // The base is what was asked for, not what is checked out.
			r.void(a.ID)
			run := r.run(target, engine.Again(a.ID, loop.Answer{By: "Ada", From: "test"}))
			tip := gittest.Run(t, r.root, "rev-parse", "main")
			detail := strings.Replace(c.detail, "%s", tip[:12], 1)
			if run.Outcome != c.outcome || run.Reason != c.reason || !strings.HasPrefix(run.Detail, detail) || engine.AnswerOf(run) != a.ID || run.Key != "rebase/"+a.ID {
				t.Fatalf("run = %s %s %q for %q", run.Outcome, run.Reason, run.Detail, run.Key)
			}
			if refs := gittest.Run(t, r.root, "for-each-ref", "refs/pawl/candidates"); refs != "" {
				t.Errorf("candidates are left: %s", refs)
			}
			its := r.iterations(run.ID)
			if c.outcome != loop.OutcomeProposed && c.outcome != loop.OutcomeFailed {
				if len(its) > 0 || run.Branch != "" {
					t.Errorf("iterations = %+v, on %q", its, run.Branch)
				}
				return
			}
			if len(its) != 1 || its[0].N != 1 || its[0].StepID != a.StepID || !slices.Equal(its[0].Changed, []string{"src/a.txt"}) || its[0].Ended.IsZero() ||
				its[0].Reason != c.reason || its[0].Decided != "make pawl/fix/1 again on it" || its[0].Sensed != fmt.Sprintf("main moved from %s to %s", a.Action.Onto[:12], tip[:12]) ||
				its[0].Acted != "rebased without conflict; changed src/a.txt" {
				t.Errorf("iterations = %+v", its)
			}
			if c.outcome == loop.OutcomeFailed {
				if run.Approval != "" || run.Branch != "" || its[0].Verdict != loop.VerdictFail {
					t.Errorf("it asks %q about %q, and its verdict is %s", run.Approval, run.Branch, its[0].Verdict)
				}
				return
			}
			again := r.approval(run.Approval)
			if run.Branch != "pawl/fix/2" || run.Summary != a.Action.Why || its[0].Verdict != loop.VerdictPass || again.State != loop.ApprovalOpen ||
				again.Action.Onto != tip || again.Action.Base != "main" || again.StepID != a.StepID || again.Action.Why != a.Action.Why {
				t.Errorf("run = %+v, which asks %+v", run, again)
			}
			if got := gittest.Run(t, r.root, "log", "--format=%P", "-1", run.Branch) + gittest.Run(t, r.root, "show", run.Branch+":src/a.txt"); got != tip+"fix" {
				t.Errorf("the branch is %q", got)
			}
		})
	}
}

func TestAYesToWhatHasChangedSinceIsStale(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *rig, a *loop.Approval, d *loop.Definition)
		want   string
	}{
		"nothing has changed": {func(*rig, *loop.Approval, *loop.Definition) {}, ""},
		"another hash":        {func(_ *rig, a *loop.Approval, _ *loop.Definition) { a.Action.Why += "!" }, "its hash is not that of what it shows"},
		"another definition":  {func(_ *rig, _ *loop.Approval, d *loop.Definition) { d.Goal = "another" }, "the definition was changed after the question was asked"},
		"the branch is gone": {func(r *rig, _ *loop.Approval, _ *loop.Definition) {
			gittest.Run(r.t, r.root, "branch", "-qD", "pawl/fix/1")
		}, "branch pawl/fix/1 is gone"},
		"the branch was moved": {func(r *rig, _ *loop.Approval, _ *loop.Definition) {
			gittest.Run(r.t, r.root, "branch", "-qf", "pawl/fix/1", "main")
		}, "branch pawl/fix/1 was moved to MAIN after its gates ran"},
		"the base is gone": {func(r *rig, _ *loop.Approval, _ *loop.Definition) {
			gittest.Run(r.t, r.root, "branch", "-qm", "main", "trunk")
		}, "branch main is gone"},
		"the base holds it": {func(r *rig, _ *loop.Approval, _ *loop.Definition) {
			gittest.Run(r.t, r.root, "merge", "-q", "--ff-only", "pawl/fix/1")
		}, "main holds pawl/fix/1 already"},
		"the base has moved, no reason": {func(r *rig, _ *loop.Approval, _ *loop.Definition) {
			gittest.Run(r.t, r.root, "commit", "-q", "--allow-empty", "-m", "x")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := one(t)
			target, a := r.proposes("fix")
			before := gittest.Run(t, r.root, "rev-parse", "main")
			d := target.Definition
			c.change(r, &a, &d)
			want := strings.Replace(c.want, "MAIN", before[:12], 1)
			if why, err := engine.Stale(t.Context(), r.repo, a, d.WithDefaults()); why != want || err != nil {
				t.Errorf("Stale = %q, %v, want %q", why, err, want)
			}
		})
	}
}

func TestWhetherAProposalIsStaleIsAnErrorWhereGitFails(t *testing.T) {
	r := one(t)
	target, a := r.proposes("fix")
	// What is in the files of the repository alone is not asked of git.
	gittest.Run(t, r.root, "commit", "-q", "--allow-empty", "-m", "moved")
	for _, branch := range []string{"pawl/fix/1", "main"} {
		gittest.Run(t, r.root, "branch", "real/"+branch, branch)
		gittest.Run(t, r.root, "symbolic-ref", "refs/heads/"+branch, "refs/heads/real/"+branch)
	}
	for _, asked := range []string{"refs/heads/pawl/fix/1", "refs/heads/main", "--is-ancestor"} {
		repo, err := git.OpenWith(t.Context(), execFunc(func(ctx context.Context, spec proc.Spec) (proc.Result, error) {
			if slices.Contains(spec.Argv, asked) {
				return proc.Result{}, errors.New("too many processes")
			}
			return proc.Plain{}.Run(ctx, spec)
		}), r.root)
		if err != nil {
			t.Fatal(err)
		}
		if why, err := engine.Stale(t.Context(), repo, a, target.Definition.WithDefaults()); why != "" || err == nil || !strings.Contains(err.Error(), "too many processes") {
			t.Errorf("without %s: Stale = %q, %v, want the error of git", asked, why, err)
		}
	}
}

// The inputs of a rejected proposal are not paid for again: a digest that could not be
// read would let them be.
func TestAProposalWhoseInputsCannotBeReadIsNotMadeAgain(t *testing.T) {
	r := one(t)
	target, a := r.proposes("fix")
	gittest.WriteFile(t, filepath.Join(r.root, "README.md"), "moved\n")
	gittest.Run(t, r.root, "commit", "-qam", "moved")
	r.void(a.ID)
	if err := r.exec(proposalRows["its iteration"][0]); err != nil {
		t.Fatal(err)
	}
	run := r.run(target, engine.Again(a.ID, loop.Answer{By: "Ada", From: "test"}))
	if run.Outcome != loop.OutcomeFailed || run.Reason != loop.ReasonInternal || run.Approval != "" {
		t.Errorf("run = %s %s %q, which asks %q", run.Outcome, run.Reason, run.Detail, run.Approval)
	}
}
