package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// one makes a rig on SQLite.
func one(t *testing.T) *rig {
	t.Helper()
	return newRig(t, storetest.SQLite(t))
}

func TestAStoppedRunKeepsItsWorkAndNotWhatIsIgnored(t *testing.T) {
	r := one(t)
	gittest.WriteFile(t, filepath.Join(r.root, ".gitignore"), "node_modules/\n*.env\n")
	gittest.Run(t, r.root, "add", "-A")
	gittest.Run(t, r.root, "commit", "-qm", "rules")
	r.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
		for i := range 300 {
			gittest.WriteFile(t, filepath.Join(req.Dir, "node_modules", fmt.Sprint(i), "x.js"), "x")
		}
		gittest.WriteFile(t, filepath.Join(req.Dir, "secret.env"), "KEY=1")
		return untilStopped(t, func() { gittest.WriteFile(t, filepath.Join(r.root, ".loops/PAUSED"), "") })(ctx, req)
	}
	run := r.run(r.worker(loop.TierAssisted, nil), engine.Firing{})
	if run.Outcome != loop.OutcomePaused {
		t.Fatalf("run = %s %q", run.Outcome, run.Detail)
	}
	if files := gittest.Run(t, r.root, "diff", "--name-only", "main", run.Snapshot); files != "src/a.txt" {
		t.Errorf("the snapshot differs in %q, want src/a.txt alone", files)
	}
}

func TestRulesThatAnAgentWritesHideNothing(t *testing.T) {
	t.Run("a new file of rules is a change like any other", func(t *testing.T) {
		r := one(t)
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/.gitignore"), "*\n")
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/b.txt"), "hidden?\n")
			return says(t, req, `{"outcome":"done"}`)
		}
		run := r.run(r.worker(loop.TierAssisted, nil), engine.Firing{})
		if run.Outcome != loop.OutcomeRefused || !strings.Contains(run.Detail, "src/.gitignore") {
			t.Errorf("run = %s %q, want refused for src/.gitignore", run.Outcome, run.Detail)
		}
		if got := gittest.Run(t, r.root, "show", run.Snapshot+":src/b.txt"); got != "hidden?" {
			t.Errorf("kept b.txt = %q", got)
		}
	})
	t.Run("rules of an earlier iteration are forgotten", func(t *testing.T) {
		r := one(t)
		n := 0
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			if n++; n == 1 {
				gittest.WriteFile(t, filepath.Join(req.Dir, "src/.gitignore"), "*.gen\n")
				gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.gen"), "1\n")
				return says(t, req, `{"outcome":"failed","reason":"once more"}`)
			}
			if err := os.Remove(filepath.Join(req.Dir, "src/.gitignore")); err != nil {
				t.Error(err)
			}
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/z.gen"), "2\n")
			return says(t, req, `{"outcome":"done"}`)
		}
		target := r.worker(loop.TierAssisted, func(d *loop.Definition) { d.Scope = []string{"src/**", "**/.gitignore"} })
		run := r.run(target, engine.Firing{})
		if run.Outcome != loop.OutcomeProposed {
			t.Fatalf("run = %s %q", run.Outcome, run.Detail)
		}
		if files := gittest.Run(t, r.root, "diff", "--name-only", "main", run.Branch); files != "src/a.gen\nsrc/z.gen" {
			t.Errorf("proposed files = %q, want both", files)
		}
	})
}

func TestASwitchDuringALaterItemEndsTheRunAndKeepsBothWorks(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		target := r.target("w", boardLike{nil, []string{"first", "second"}}, loop.Definition{
			Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x", MaxItems: 2,
		})
		stopping := untilStopped(t, func() { gittest.WriteFile(t, filepath.Join(r.root, ".loops/PAUSED"), "") })
		r.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
			if strings.HasSuffix(variable(req, "PAWL_STEP"), "second") {
				return stopping(ctx, req)
			}
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/first.txt"), "first\n")
			return says(t, req, `{"outcome":"done"}`)
		}
		run := r.run(target, engine.Firing{})
		if run.Outcome != loop.OutcomePaused || run.State != loop.RunEnded || run.Branch != "" {
			t.Fatalf("run = %s %s on %q, want paused and ended", run.State, run.Outcome, run.Branch)
		}
		kept := gittest.Run(t, r.root, "for-each-ref", "--format=%(refname)", "refs/pawl/snapshots")
		var found strings.Builder
		for ref := range strings.FieldsSeq(kept) {
			found.WriteString(gittest.Run(t, r.root, "ls-tree", "-r", "--name-only", ref) + gittest.Run(t, r.root, "show", ref+":src/a.txt"))
		}
		if !strings.Contains(found.String(), "src/first.txt") || !strings.Contains(found.String(), "half") {
			t.Errorf("kept in %q: %q, want the work of both items", kept, found.String())
		}
	})
}

func TestASnapshotRefThatIsTakenBlocksNothing(t *testing.T) {
	r := one(t)
	r.agent = untilStopped(t, func() {
		gittest.Run(t, r.root, "update-ref", "refs/pawl/snapshots/w/1", "main")
		gittest.WriteFile(t, filepath.Join(r.root, ".loops/w/PAUSED"), "")
	})
	run := r.run(r.worker(loop.TierAssisted, nil), engine.Firing{})
	if run.State != loop.RunEnded || run.Snapshot == "" || run.Snapshot == "refs/pawl/snapshots/w/1" {
		t.Fatalf("run = %s, kept in %q", run.State, run.Snapshot)
	}
	if got := gittest.Run(t, r.root, "show", run.Snapshot+":src/a.txt"); got != "half" {
		t.Errorf("kept a.txt = %q", got)
	}
}

func TestRecoveryAppliesNoEffectWhileTheSwitchIsSet(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
			return says(t, req, `{"outcome":"done"}`)
		}
		plan, err := fault.Parse("engine.effect.apply.before=EIO")
		if err != nil {
			t.Fatal(err)
		}
		target := r.worker(loop.TierAssisted, nil)
		if _, err := r.engine.Run(fault.With(t.Context(), plan), target, engine.Firing{Trigger: "manual"}); err == nil {
			t.Fatal("the effect did not fail")
		}
		gittest.WriteFile(t, filepath.Join(r.root, ".loops/PAUSED"), "")
		rec, err := r.engine.Recover(t.Context(), target)
		if err != nil || rec == nil {
			t.Fatalf("recover = %+v, %v: a run that this process does not carry on any more is dead", rec, err)
		}
		if rec.Run.Outcome != loop.OutcomePaused || rec.Run.State != loop.RunEnded {
			t.Errorf("recovered run = %s %s %q, want paused", rec.Run.State, rec.Run.Outcome, rec.Run.Detail)
		}
		if refs := gittest.Run(t, r.root, "for-each-ref", "refs/heads/pawl"); refs != "" {
			t.Errorf("a branch was made: %s", refs)
		}
		if got := gittest.Run(t, r.root, "show", rec.Run.Snapshot+":src/a.txt"); got != "two" {
			t.Errorf("kept a.txt = %q", got)
		}
	})
}

func TestATreeThatRecoveryCouldNotSeeIsRescuedBeforeItIsSwept(t *testing.T) {
	r := one(t)
	thief := loop.Holder{PID: 1, Start: 1, Host: r.deps.Self.Host}
	r.deps.HolderState = deadIf(thief)
	r.engine = engine.New(r.deps)
	target := r.worker(loop.TierAssisted, nil)
	r.agent = untilStopped(t, func() { r.steal("lp_w", thief) })
	if _, err := r.engine.Run(t.Context(), target, engine.Firing{Trigger: "manual"}); err == nil {
		t.Fatal("the lease was not lost")
	}
	elsewhere := r.deps
	elsewhere.Home = t.TempDir()
	rec, err := engine.New(elsewhere).Recover(t.Context(), target)
	if err != nil || rec == nil || rec.Run.Snapshot != "" {
		t.Fatalf("recover from another home = %+v, %v", rec, err)
	}
	if err := r.engine.Sweep(t.Context(), r.repo); err != nil {
		t.Fatal(err)
	}
	if got := gittest.Run(t, r.root, "show", "refs/pawl/snapshots/rescued/"+rec.Run.ID+":src/a.txt"); got != "half" {
		t.Errorf("rescued a.txt = %q", got)
	}
	if left, _ := os.ReadDir(filepath.Join(r.home, "trees")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestARunThatSomebodyTookStopsAtOnceAndWritesNothingMore(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		thief := loop.Holder{PID: 7, Host: "another node"}
		target := r.worker(loop.TierAssisted, nil)
		rows := func() (run loop.Run, all []any) {
			r.view(func(rd *store.Reader) error {
				var err error
				if run, err = rd.Live(t.Context(), "lp_w"); err != nil {
					return err
				}
				its, itsErr := rd.Iterations(t.Context(), run.ID)
				turns, turnsErr := rd.Turns(t.Context(), run.ID)
				events, eventsErr := rd.Events(t.Context(), run.ID, 0, 1000)
				effects, effectsErr := rd.Effects(t.Context(), run.ID)
				links, linksErr := rd.Chain(t.Context(), "lp_w")
				steps, stepsErr := rd.Steps(t.Context(), "lp_w")
				all = []any{run, its, turns, events, effects, links, steps}
				return errors.Join(itsErr, turnsErr, eventsErr, effectsErr, linksErr, stepsErr)
			})
			return run, all
		}
		var then []any
		r.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "half\n")
			r.steal("lp_w", thief)
			_, then = rows()
			select {
			case <-ctx.Done():
				return agent.Result{Ended: proc.Canceled, Exit: 143}, nil
			case <-time.After(store.Lease/3 - 2*time.Second): // Then the lease would be extended.
				t.Error("the agent goes on although somebody else holds the run")
				return says(t, req, `{"outcome":"done"}`)
			}
		}
		if _, err := r.engine.Run(t.Context(), target, engine.Firing{Trigger: "manual"}); !errors.Is(err, loop.ErrLeaseLost) {
			t.Fatalf("run = %v, want a lost lease", err)
		}
		run, now := rows()
		if d := cmp.Diff(then, now); d != "" || run.Holder != thief {
			t.Errorf("rows of a run that %+v holds (-then +now):\n%s", run.Holder, d)
		}
		if refs := gittest.Run(t, r.root, "for-each-ref", "refs/heads/pawl"); refs != "" {
			t.Errorf("a branch was made: %s", refs)
		}
	})
}

func TestWorkOfWhichNoSnapshotCanBeWrittenStaysInItsTree(t *testing.T) {
	for name, fail := range map[string]func(*rig) *fault.Plan{
		"the disk fails": func(r *rig) *fault.Plan {
			plan, err := fault.Parse("workspace.snapshot.before:1=EIO")
			if err != nil {
				r.t.Fatal(err)
			}
			return plan
		},
		"a ref is in the way": func(r *rig) *fault.Plan {
			gittest.Run(r.t, r.root, "update-ref", "refs/pawl/snapshots/w", "main")
			return new(fault.Plan)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := one(t)
			r.agent = untilStopped(t, func() { gittest.WriteFile(t, filepath.Join(r.root, ".loops/PAUSED"), "") })
			target := r.worker(loop.TierAssisted, nil)
			run, err := r.engine.Run(fault.With(t.Context(), fail(r)), target, engine.Firing{Trigger: "manual"})
			if err == nil {
				t.Fatalf("run = %s %q, kept in %q, want an error", run.Outcome, run.Detail, run.Snapshot)
			}
			_, place, found := strings.Cut(err.Error(), "stays in ")
			place, _, _ = strings.Cut(place, ":")
			if !found || read(t, filepath.Join(place, "src/a.txt")) != "half\n" {
				t.Fatalf("%v, want that it names the place of the work", err)
			}
			r.view(func(rd *store.Reader) error { // It is left to recovery.
				_, err := rd.Live(t.Context(), "lp_w")
				return err
			})
			_ = os.Remove(filepath.Join(r.root, ".loops/PAUSED"))
			gittest.Run(t, r.root, "update-ref", "-d", "refs/pawl/snapshots/w")
			rec, err := r.engine.Recover(t.Context(), target)
			if err != nil || rec == nil || rec.Run.State != loop.RunEnded {
				t.Fatalf("recover = %+v, %v", rec, err)
			}
			if got := gittest.Run(t, r.root, "show", rec.Run.Snapshot+":src/a.txt"); got != "half" {
				t.Errorf("kept a.txt = %q", got)
			}
		})
	}
}

func TestACandidateThatCannotBeWrittenLosesNoWork(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		objects := filepath.Join(r.root, ".git", "objects")
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "worked\n")
			return says(t, req, `{"outcome":"done"}`)
		}
		var inTheWay []string // Files, where git would make a folder for an object.
		plan := new(fault.Plan).Do("engine.gather.before", 1, func(context.Context) error {
			for i := range 256 {
				dir := filepath.Join(objects, fmt.Sprintf("%02x", i))
				if _, err := os.Lstat(dir); err == nil {
					continue
				}
				if err := os.WriteFile(dir, nil, 0o600); err != nil {
					return err
				}
				inTheWay = append(inTheWay, dir)
			}
			return nil
		})
		target := r.worker(loop.TierAssisted, func(d *loop.Definition) { d.Verify = "true" })
		run, err := r.engine.Run(fault.With(t.Context(), plan), target, engine.Firing{Trigger: "manual"})
		if err == nil || run.Branch != "" || !strings.Contains(err.Error(), "stays in ") {
			t.Fatalf("run = %s %q on %q, %v, want an error that says where the work stays", run.Outcome, run.Detail, run.Branch, err)
		}
		for _, file := range inTheWay {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
		rec, err := r.engine.Recover(t.Context(), target)
		if err != nil || rec == nil || rec.Run.State != loop.RunEnded {
			t.Fatalf("recover = %+v, %v", rec, err)
		}
		if got := gittest.Run(t, r.root, "show", rec.Run.Snapshot+":src/a.txt"); got != "worked" {
			t.Errorf("kept a.txt = %q", got)
		}
	})
}

func TestARunOfANodeThatIsGoneIsRecoveredWhenItsLeaseHasLapsed(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		gone := loop.Holder{PID: 7, Host: "another node"}
		r.deps.HolderState = func(loop.Holder) loop.HolderState { return loop.HolderElsewhere }
		r.engine = engine.New(r.deps)
		target := r.worker(loop.TierAssisted, nil)
		r.agent = untilStopped(t, func() { r.steal("lp_w", gone) })
		if _, err := r.engine.Run(t.Context(), target, engine.Firing{Trigger: "manual"}); !errors.Is(err, loop.ErrLeaseLost) {
			t.Fatalf("run = %v, want a lost lease", err)
		}
		if rec, err := r.engine.Recover(t.Context(), target); rec != nil || err != nil {
			t.Fatalf("a lease that lasts was taken: %+v, %v", rec, err)
		}
		r.lapse("lp_w")
		rec, err := r.engine.Recover(t.Context(), target)
		if err != nil || rec == nil || rec.Run.Outcome != loop.OutcomeInterrupted || rec.Run.Snapshot == "" {
			t.Fatalf("recover = %+v, %v, want the run interrupted and its work kept", rec, err)
		}
	})
}

// On SQLite all who write are of this host, where a process that runs keeps its run:
// that it gets no turn for long, among many others on a slow machine, ends nothing.
func TestARunThatGetsNoTurnInTheStoreForLongGoesOn(t *testing.T) {
	t.Parallel()
	var late atomic.Int64 // by which its lease is
	path := databases["sqlite"](t)
	r := newRigAt(t, path, func() time.Time { return time.Now().Add(time.Duration(late.Load())) })
	target := r.worker(loop.TierAssisted, nil)
	r.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
		others, err := store.Open(t.Context(), store.Options{Database: path, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		defer others.Close()
		err = others.Update(t.Context(), func(*store.Tx) error {
			late.Store(int64(store.Lease))
			select {
			case <-ctx.Done():
				t.Errorf("the run was stopped: %v", context.Cause(ctx))
			case <-time.After(store.Lease/3 + 2*time.Second): // A try to extend the lease has failed.
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
		return says(t, req, `{"outcome":"done"}`)
	}
	if run := r.run(target, engine.Firing{}); run.Outcome != loop.OutcomeProposed {
		t.Errorf("run = %s by %s: %s, want proposed", run.Outcome, run.Reason, run.Detail)
	}
}
