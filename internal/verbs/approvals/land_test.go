package approvals_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/sample"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/approvals"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// proposed defines a loop and lets it propose once.
func proposed(r *verbtest.Rig, name string) (runs.View, approvals.View) {
	r.T.Helper()
	r.DefineLoop(name, verbtest.WritesTwo)
	v := r.RunLoop(runs.StartRequest{Loop: name})
	if v.Outcome != loop.OutcomeProposed || v.Answer != loop.ApprovalOpen {
		r.T.Fatalf("run = %s (%s), its approval is %q", v.Outcome, v.Detail, v.Answer)
	}
	return v, asked(r, v.Approval)
}

func asked(r *verbtest.Rig, ref string) approvals.View {
	r.T.Helper()
	a, err := r.Approvals.Find(r.T.Context(), ref)
	if err != nil {
		r.T.Fatal(err)
	}
	return a
}

// answers lists the outcomes of a loop's runs that an approval fired.
func answers(r *verbtest.Rig, name string) (outcomes []loop.Outcome) {
	r.T.Helper()
	runs, err := r.Runs.List(r.T.Context(), name, 5000)
	if err != nil {
		r.T.Fatal(err)
	}
	for _, run := range runs {
		if run.Trigger == "approval" {
			outcomes = append(outcomes, run.Outcome)
		}
	}
	return outcomes
}

// states lists what the audit chain says an approval became.
func states(r *verbtest.Rig, name, id string) (states []string) {
	r.T.Helper()
	err := r.Store.View(r.T.Context(), func(rd *store.Reader) error {
		links, err := rd.Chain(r.T.Context(), catalog.LoopID(r.Workspace.ID, loop.ProtocolSpine, name))
		if err != nil {
			return err
		}
		for _, l := range links {
			for _, state := range []string{"open", "approved", "rejected", "void", "expired"} {
				if l.Kind == loop.LinkApproval && strings.Contains(l.Body, id) && strings.Contains(l.Body, `"state":"`+state+`"`) {
					states = append(states, state)
				}
			}
		}
		return store.VerifyChain(links)
	})
	if err != nil {
		r.T.Fatal(err)
	}
	return states
}

// atOnce calls fn n times, all released together, and returns what each said.
func atOnce(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = fn(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

func TestOfManyApprovalsAtOnceExactlyOneLands(t *testing.T) {
	verbtest.OnBoth(t, func(t *testing.T, r *verbtest.Rig) {
		n := sample.Size(40, 1000)
		v, a := proposed(r, "fix")
		won := make([]bool, n)
		begun := time.Now()
		errs := atOnce(n, func(i int) error {
			view, err := r.Approvals.Approve(t.Context(), a.ID, loop.Answer{By: fmt.Sprintf("person-%d", i), From: "test"})
			won[i] = err == nil && view.Outcome == loop.OutcomeLanded
			return err
		})
		t.Logf("%d approvals in %v", n, time.Since(begun).Round(time.Millisecond))
		by := asked(r, a.ID).By
		landed := 0
		for i, err := range errs {
			if won[i] {
				landed++
				if want := fmt.Sprintf("person-%d", i); by != want {
					t.Errorf("%s landed, and the record says %s", want, by)
				}
				continue
			}
			f, ok := errors.AsType[*loop.Fault](err)
			if !ok || f.Exit != loop.ExitHeld || !strings.Contains(f.Why, by+" said yes from test at 20") {
				t.Errorf("approval %d = %v, want a refusal that names %s", i, err, by)
			}
		}
		if landed != 1 {
			t.Errorf("%d approvals landed, want 1", landed)
		}
		if got := answers(r, "fix"); len(got) != 1 || got[0] != loop.OutcomeLanded {
			t.Errorf("runs that the approval fired = %v, want one that landed", got)
		}
		if got := strings.Join(states(r, "fix", a.ID), " "); got != "open approved" {
			t.Errorf("the audit chain says %s", got)
		}
		if got := gittest.Run(t, r.Root, "rev-parse", "main"); got != v.Commit {
			t.Errorf("main = %s, want %s", got, v.Commit)
		}
	})
}

func TestAttack112ApproveRacingRejectHasOneWinnerEverywhere(t *testing.T) {
	verbtest.OnBoth(t, func(t *testing.T, r *verbtest.Rig) {
		for round := range 8 {
			name := fmt.Sprintf("fix%d", round)
			r.DefineLoop(name, fmt.Sprintf("echo %d >src/%s.txt", round, name))
			v := r.RunLoop(runs.StartRequest{Loop: name})
			errs := atOnce(2, func(i int) (err error) {
				if i == 0 {
					_, err = r.Approvals.Approve(t.Context(), v.Approval, loop.Answer{By: "Ada", From: "test"})
				} else {
					_, err = r.Approvals.Reject(t.Context(), v.Approval, loop.Answer{By: "Bob", From: "test"})
				}
				return err
			})
			a, ran := asked(r, v.Approval), len(answers(r, name))
			landed := r.Exists("src/" + name + ".txt")
			want, who, loser := loop.ApprovalApproved, "Ada said yes", 1
			if errs[1] == nil {
				want, who, loser = loop.ApprovalRejected, "Bob said no", 0
			}
			if errs[1-loser] != nil {
				t.Fatalf("nobody won: %v", errs)
			}
			verbtest.WantFault(t, errs[loser], loop.ExitHeld, v.Approval, who, "")
			yes := want == loop.ApprovalApproved
			if a.State != want || landed != yes || (ran == 1) != yes {
				t.Errorf("%s: state %s, landed %v, %d runs; want %s everywhere", who, a.State, landed, ran, want)
			}
			if got := strings.Join(states(r, name, a.ID), " "); got != "open "+string(want) {
				t.Errorf("the audit chain says %s, want open %s", got, want)
			}
		}
	})
}

// rewrite puts another approval in the place of one that is open.
func rewrite(r *verbtest.Rig, id string, change func(*loop.Approval)) loop.Approval {
	r.T.Helper()
	var a loop.Approval
	err := r.Store.View(r.T.Context(), func(rd *store.Reader) (err error) {
		a, err = rd.Approval(r.T.Context(), id)
		return err
	})
	if err != nil {
		r.T.Fatal(err)
	}
	change(&a)
	a.ID, a.State = r.NewID("ap"), loop.ApprovalOpen
	err = r.Store.Update(r.T.Context(), func(tx *store.Tx) error { return tx.AskApproval(r.T.Context(), a) })
	if err != nil {
		r.T.Fatal(err)
	}
	return a
}

// refuses wants that approval moves nothing.
func refuses(r *verbtest.Rig, id string) {
	r.T.Helper()
	before := gittest.Run(r.T, r.Root, "rev-parse", "main")
	view, err := r.Approvals.Approve(r.T.Context(), id, loop.Answer{By: "Ada", From: "test"})
	if f, ok := errors.AsType[*loop.Fault](err); err != nil && (!ok || f.Exit != loop.ExitRefused) {
		r.T.Errorf("approve = %v, want it refused", err)
	}
	if err == nil && view.Outcome != loop.OutcomeRefused {
		r.T.Errorf("approve ended %s (%s), want it refused", view.Outcome, view.Detail)
	}
	if now := gittest.Run(r.T, r.Root, "rev-parse", "main"); now != before {
		r.T.Errorf("main moved from %s to %s", before, now)
	}
}

func TestAttack109APayloadThatChangedAfterItWasShownNeverLands(t *testing.T) {
	for name, change := range map[string]func(r *verbtest.Rig, a *loop.Approval, other runs.View){
		"another commit and branch": func(_ *verbtest.Rig, a *loop.Approval, other runs.View) {
			a.Action.Branch, a.Action.Commit = other.Branch, other.Commit
		},
		"another tree":       func(_ *verbtest.Rig, a *loop.Approval, _ runs.View) { a.Tree = strings.Repeat("a", 40) },
		"another base":       func(_ *verbtest.Rig, a *loop.Approval, _ runs.View) { a.Action.Base = "release" },
		"a merge":            func(_ *verbtest.Rig, a *loop.Approval, _ runs.View) { a.Action.Merge = true },
		"another definition": func(_ *verbtest.Rig, a *loop.Approval, other runs.View) { a.Definition = other.Definition },
		"another hash":       func(_ *verbtest.Rig, a *loop.Approval, _ runs.View) { a.Hash = strings.Repeat("0", 64) },
	} {
		t.Run(name, func(t *testing.T) {
			r := verbtest.New(t)
			gittest.Run(t, r.Root, "branch", "release")
			r.DefineLoop("other", "echo evil >src/a.txt")
			other := r.RunLoop(runs.StartRequest{Loop: "other"})
			_, a := proposed(r, "fix")
			copied := rewrite(r, a.ID, func(a *loop.Approval) { change(r, a, other) })
			refuses(r, copied.ID)
			if got := gittest.Run(t, r.Root, "rev-parse", "release"); got != a.Action.Onto {
				t.Errorf("release moved to %s", got)
			}
		})
	}
}

func TestAttack110AnApprovalOfAnotherRunLoopOrWorkspaceIsRefused(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("other", "echo evil >src/a.txt")
	other := r.RunLoop(runs.StartRequest{Loop: "other"})
	v, a := proposed(r, "fix")
	for name, change := range map[string]func(*loop.Approval){
		"of another run":  func(a *loop.Approval) { a.RunID = other.ID },
		"of another step": func(a *loop.Approval) { a.StepID = "st_other" },
		"of another loop": func(a *loop.Approval) { a.LoopID = catalog.LoopID(r.Workspace.ID, loop.ProtocolSpine, "other") },
	} {
		t.Run(name, func(t *testing.T) {
			same := *r
			same.T = t
			in := &same
			refuses(in, rewrite(in, a.ID, change).ID)
		})
	}
	// The store knows more than one workspace; each answers only its own.
	elsewhere := r.InRepo(verbtest.NewRepo(t))
	if _, err := elsewhere.Approvals.Approve(t.Context(), a.ID, loop.Answer{By: "Ada", From: "test"}); err == nil {
		t.Error("another workspace landed it")
	} else {
		verbtest.WantFault(t, err, loop.ExitNotFound, "no approval", "", "pawl approvals")
	}
	if _, err := elsewhere.Approvals.Reject(t.Context(), a.ID, loop.Answer{By: "Ada", From: "test"}); err == nil {
		t.Error("another workspace rejected it")
	}
	// And the true one still counts, once.
	if view, err := r.Approvals.Approve(t.Context(), v.Approval, loop.Answer{By: "Ada", From: "test"}); err != nil || view.Outcome != loop.OutcomeLanded {
		t.Errorf("approve = %s, %v", view.Outcome, err)
	}
	_, err := r.Approvals.Approve(t.Context(), v.Approval, loop.Answer{By: "Bob", From: "test"})
	verbtest.WantFault(t, err, loop.ExitHeld, v.Approval, "Ada said yes", "")
}

func TestAYesThatFiresNoRunLeavesTheApprovalOpen(t *testing.T) {
	verbtest.OnBoth(t, func(t *testing.T, r *verbtest.Rig) {
		_, a := proposed(r, "fix")
		ended := r.StartLive("fix") // Defines it anew: only what the answer does to the row is looked at.
		p := runs.Prepared{Target: r.Workspace.Target(r.Definition("fix")), Firing: engine.Yes(a.ID, loop.Answer{By: "Ada", From: "test"})}
		_, err := r.Runs.Start(t.Context(), p)
		if _, held := errors.AsType[*loop.HeldError](err); !held {
			t.Errorf("start beside a live run = %v, want it held", err)
		}
		if got := asked(r, a.ID).State; got != loop.ApprovalOpen {
			t.Errorf("the approval is %s, want open", got)
		}
		if _, err := r.Runs.Stop(t.Context(), verbtest.Ann, "fix", "the test"); err != nil {
			t.Fatal(err)
		}
		<-ended
	})
}

func TestApprovalsThatRanOutAreClosedByTheNextCommandThatWrites(t *testing.T) {
	verbtest.OnBoth(t, func(t *testing.T, r *verbtest.Rig) {
		_, a := proposed(r, "fix")
		late := rewrite(r, a.ID, func(a *loop.Approval) { a.Expires = time.Now().Add(-time.Minute) })
		_, err := r.Approvals.Approve(t.Context(), late.ID, loop.Answer{By: "Ada", From: "test"})
		verbtest.WantFault(t, err, loop.ExitHeld, late.ID, "its time ran out", "")
		if _, err := r.Runs.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(states(r, "fix", late.ID), " "); got != "open expired" {
			t.Errorf("the audit chain says %q, want that it was asked and expired", got)
		}
		if got := asked(r, a.ID).State; got != loop.ApprovalOpen {
			t.Errorf("the other approval is %s, want open", got)
		}
		if _, err := r.Runs.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(states(r, "fix", late.ID), " "); got != "open expired" {
			t.Errorf("after two commands the audit chain says %q, want one link for each", got)
		}
	})
}

func TestRecoverySaysWhatLandsWhenTheRunOfAYesDied(t *testing.T) {
	r := verbtest.New(t)
	v, a := proposed(r, "fix")
	target := r.Workspace.Target(r.Definition("fix"))
	// The transaction of the firing, by a process that is dead since.
	err := r.Store.Update(t.Context(), func(tx *store.Tx) error {
		if err := tx.AnswerApproval(t.Context(), a.ID, loop.Answer{Yes: true, By: "Ada", From: "test"}); err != nil {
			return err
		}
		l, err := tx.Number(t.Context(), r.Workspace.ID, loop.ProtocolSpine, "fix")
		if err != nil {
			return err
		}
		_, err = tx.FireClaimed(t.Context(), loop.Run{
			ID: "run_yes", LoopID: l.ID, N: l.LastN, Key: "approval/" + a.ID, Trigger: "approval", Definition: v.Definition, Approval: a.ID,
		}, r.DeadHolder())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := r.Engine.Recover(t.Context(), target)
	if err != nil || rec == nil {
		t.Fatalf("recover = %+v, %v", rec, err)
	}
	if want := "nothing has landed, and the yes to " + a.ID + " stays valid: the next run lands it, or `pawl land fix#1`"; rec.Next.String() != want || !strings.Contains(rec.Run.Detail, want) {
		t.Errorf("recovery says %q and the run %q, want %q", rec.Next, rec.Run.Detail, want)
	}
	view, err := r.Runs.Show(t.Context(), "run_yes")
	if err != nil || !strings.Contains(runs.Next(view).String(), "nothing has landed, and the yes stays valid; once the cause is gone: pawl land fix#1") {
		t.Errorf("next = %q, %v", runs.Next(view), err)
	}
	// The name of the loop means its newest run, which was to land the other.
	question, err := r.Approvals.Landing(t.Context(), "fix", approvals.LandRequest{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Approvals.Land(t.Context(), "fix", approvals.LandRequest{Merge: true}, question.Hash, loop.Answer{By: "Ada", From: "test"})
	verbtest.WantFault(t, err, loop.ExitRefused, "nothing has landed", "not what was shown", "pawl land")
	landed, err := r.Approvals.Land(t.Context(), "fix", approvals.LandRequest{}, question.Hash, loop.Answer{By: "Ada", From: "test"})
	if err != nil || landed.Outcome != loop.OutcomeLanded {
		t.Fatalf("land = %s (%s), %v", landed.Outcome, landed.Detail, err)
	}
	if got := gittest.Run(t, r.Root, "rev-parse", "main"); got != v.Commit {
		t.Errorf("main = %s, want %s", got, v.Commit)
	}
	if all, err := r.Approvals.List(t.Context(), "fix", true); err != nil || len(all) != 1 || all[0].State != loop.ApprovalApproved {
		t.Errorf("approvals = %+v, %v; want the one yes, and that it has landed", all, err)
	}
}
