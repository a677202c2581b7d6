package engine_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// scribbles is the target of a keeper, with a memory that is not read when it is opened.
func scribbles(t *testing.T) (*rig, engine.Target) {
	t.Helper()
	r, target := keeper(t)
	target.Protocol = scribe{boardLike{nil, []string{"the task"}}}
	return r, target
}

func (r *rig) noted(words string) bool {
	r.t.Helper()
	return strings.Contains(strings.Join(r.notes(), "\n"), words)
}

func TestAFileThatCannotGoIntoTheCandidateRefusesIt(t *testing.T) {
	r := one(t)
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
		if err := syscall.Mkfifo(filepath.Join(req.Dir, "src/pipe"), 0o644); err != nil {
			t.Error(err)
		}
		return says(t, req, `{"outcome":"done"}`)
	}
	run := r.run(r.worker(loop.TierAssisted, nil), engine.Firing{})
	if run.Outcome != loop.OutcomeRefused || run.Reason != loop.ReasonScope || !strings.Contains(run.Detail, "src/pipe: ") || run.Branch != "" {
		t.Errorf("run = %s %s %q on %q", run.Outcome, run.Reason, run.Detail, run.Branch)
	}
}

func TestWhatAnAgentReportsIsBooked(t *testing.T) {
	for name, c := range map[string]struct {
		tier      loop.Tier
		report    string
		message   string
		readiness int
		words     string // of the iteration
		summary   string
	}{
		"a readiness":                    {loop.TierAssisted, `{"outcome":"done","summary":"done","readiness":37}`, "", 37, "", "done"},
		"no readiness":                   {loop.TierAssisted, `{"outcome":"done","summary":"done"}`, "", 100, "", "done"},
		"no report of a change":          {loop.TierAssisted, "", "I did it", 100, "", ""},
		"no report at L1":                {loop.TierReport, "", "all is well", 100, loop.WordsMark + " all is well", loop.WordsMark + " all is well"},
		"a report at L1":                 {loop.TierReport, `{"outcome":"done","summary":"all is well"}`, "I say so", 100, "", "all is well"},
		"a report that nobody can parse": {loop.TierReport, `{"outcome"`, "I say so", 80, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := one(t)
			r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
				gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
				res, err := says(t, req, c.report)
				res.Message = c.message
				return res, err
			}
			run := r.run(r.worker(c.tier, func(d *loop.Definition) { d.Verify, d.MaxIterations = "true", 1 }), engine.Firing{})
			it := r.iterations(run.ID)[0]
			if run.Readiness != c.readiness || !strings.HasPrefix(it.Words, c.words) || (it.Words == "") != (c.words == "") || it.N != 1 {
				t.Errorf("run = %s %q, readiness %d, words %q", run.Outcome, run.Summary, run.Readiness, it.Words)
			}
			if c.summary != "" && !strings.HasPrefix(run.Summary, c.summary) {
				t.Errorf("summary = %q, want %q", run.Summary, c.summary)
			}
		})
	}
}

func TestALoopWhosePolicyIsHaltStaysPausedAfterAFailure(t *testing.T) {
	r := one(t)
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
		return says(t, req, `{"outcome":"done"}`)
	}
	target := r.worker(loop.TierAssisted, func(d *loop.Definition) { d.OnFailure, d.Verify, d.MaxIterations = "halt", "false", 1 })
	run := r.run(target, engine.Firing{})
	if run.Outcome != loop.OutcomeFailed || !r.noted("the loop is paused until a person resumes it") || run.Spent.Total <= 0 {
		t.Errorf("run = %s %s %q, %v, notes %q", run.Outcome, run.Reason, run.Detail, run.Spent, r.notes())
	}
	if _, err := r.engine.Run(t.Context(), target, engine.Firing{Trigger: "manual"}); !errors.Is(err, loop.ErrPaused) {
		if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitPaused {
			t.Errorf("the next run = %v, want it paused", err)
		}
	}
}

func TestAStepWhoseSnapshotIsGoneBeginsAnew(t *testing.T) {
	r := one(t)
	n := 0
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		if n++; n == 1 {
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/half.txt"), "half\n")
			return agent.Result{Asks: []agent.Ask{{Argv: []string{"/bin/true"}}}}, nil
		}
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
		return says(t, req, `{"outcome":"done"}`)
	}
	target := r.worker(loop.TierAssisted, nil)
	first := r.run(target, engine.Firing{})
	if first.Outcome != loop.OutcomeWaiting || first.Snapshot == "" {
		t.Fatalf("run = %s %q, kept in %q", first.Outcome, first.Detail, first.Snapshot)
	}
	_, firing, err := r.engine.Answer(t.Context(), first.Approval, loop.Answer{By: "ann", Note: "no"})
	if err != nil {
		t.Fatal(err)
	}
	gittest.Run(t, r.root, "update-ref", "-d", first.Snapshot)
	run := r.run(target, firing)
	if run.Outcome != loop.OutcomeProposed || !r.noted("snapshot "+first.Snapshot+" is gone: starting from the base") {
		t.Fatalf("run = %s %s %q, notes %q", run.Outcome, run.Reason, run.Detail, r.notes())
	}
	if files := gittest.Run(t, r.root, "diff", "--name-only", "main", run.Branch); files != "src/a.txt" {
		t.Errorf("proposed files = %q", files)
	}
}

func TestATreeThatIsTooLargeForASnapshotStaysAsItLies(t *testing.T) {
	r := one(t)
	r.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
		f, err := os.Create(filepath.Join(req.Dir, "src/large"))
		if err != nil {
			return agent.Result{}, err
		}
		if err := errors.Join(f.Truncate(65<<20), f.Close()); err != nil { // One file of a snapshot has less.
			return agent.Result{}, err
		}
		return untilStopped(t, func() { gittest.WriteFile(t, filepath.Join(r.root, ".loops/PAUSED"), "") })(ctx, req)
	}
	run := r.run(r.worker(loop.TierAssisted, nil), engine.Firing{})
	copies, err := engine.KeptCopies(r.home)
	if run.Outcome != loop.OutcomePaused || err != nil || len(copies) != 1 || !r.noted("; the whole tree stays in "+copies[0].Dir) {
		t.Fatalf("run = %s %q, notes %q, copies %+v, %v", run.Outcome, run.Detail, r.notes(), copies, err)
	}
	if info, err := os.Stat(filepath.Join(copies[0].Dir, "src/large")); err != nil || info.Size() != 65<<20 {
		t.Errorf("the large file: %v, %v", info, err)
	}
	if got := gittest.Run(t, r.root, "show", run.Snapshot+":src/a.txt"); got != "half" {
		t.Errorf("the rest: a.txt = %q", got)
	}
}

func TestARepositoryWhoseConfigurationActsOrHasChangedIsRefused(t *testing.T) {
	refused := func(r *rig, target engine.Target, words string) {
		t.Helper()
		run := r.run(target, engine.Firing{})
		if run.Outcome != loop.OutcomeRefused || run.Reason != loop.ReasonGitConfig || !strings.Contains(run.Detail, words) {
			t.Errorf("run = %s %s %q, want refused: %s", run.Outcome, run.Reason, run.Detail, words)
		}
	}
	r, target := scribbles(t)
	if run := r.run(target, engine.Firing{}); run.Outcome != loop.OutcomeProposed {
		t.Fatalf("run = %s %q", run.Outcome, run.Detail)
	}
	r.engine = engine.New(r.deps) // Another process, which has seen nothing.
	if run := r.run(target, engine.Firing{}); run.Outcome != loop.OutcomeQuiet {
		t.Errorf("run = %s %q", run.Outcome, run.Detail)
	}
	gittest.Run(t, r.root, "config", "core.fsmonitor", "/bin/true")
	refused(r, target, "changed since it was registered: ")
	if err := r.exec(`UPDATE git_configs SET hazards = '{'`); err == nil {
		if run := r.run(target, engine.Firing{}); run.Outcome != loop.OutcomeFailed || !strings.Contains(run.Detail, "read what was recorded of the git configuration") {
			t.Errorf("run = %s %s %q", run.Outcome, run.Reason, run.Detail)
		}
	} else {
		t.Errorf("spoil the list: %v", err)
	}
	gittest.Run(t, r.root, "config", "--unset", "core.fsmonitor")
	outside := filepath.Join(t.TempDir(), "objects")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	gittest.WriteFile(t, filepath.Join(r.root, ".git/objects/info/alternates"), outside+"\n")
	refused(r, target, "the repository's git configuration is refused: ")
}

func TestAFileOfTheMemoryThatCannotBeWrittenStopsARunBeforeItsAgentActs(t *testing.T) {
	r, target := scribbles(t)
	acted, works := false, r.agent
	r.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
		acted = true
		return works(ctx, req)
	}
	for _, at := range []string{"projection.append.before:2=EIO", "projection.append.after:2=EIO"} { // The first is the repair.
		failing, err := fault.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		run, err := r.engine.Run(fault.With(t.Context(), failing), target, engine.Firing{Trigger: "manual"})
		if acted || err != nil || run.Outcome != loop.OutcomeFailed || !strings.HasPrefix(run.Detail, "decide: ") {
			t.Errorf("%s: run = %s %s %q, %v; the agent acted: %v", at, run.Outcome, run.Reason, run.Detail, err, acted)
		}
	}
}

func TestNoEffectHappensBeforeTheMemoryOfItsRunIsWritten(t *testing.T) {
	r, target := scribbles(t)
	failing, err := fault.Parse("projection.append.before:3+=EIO") // The verdict, behind the repair and the plan.
	if err != nil {
		t.Fatal(err)
	}
	run, err := r.engine.Run(fault.With(t.Context(), failing), target, engine.Firing{Trigger: "manual"})
	if err == nil || gittest.Run(t, r.root, "for-each-ref", "refs/heads/pawl") != "" {
		t.Errorf("run = %s %s, %v, and there is %s", run.Outcome, run.Branch, err, gittest.Run(t, r.root, "for-each-ref", "refs/heads/pawl"))
	}
	r.comesToAGoodEnd(target, true)
}

// What an earlier run left of the memory is written first, or nothing else is done.
func TestAMemoryThatCannotBeFinishedIsNotOpened(t *testing.T) {
	r, target := scribbles(t)
	log := filepath.Join(r.root, ".loops/w/log.md")
	if err := errors.Join(os.Remove(log), os.Mkdir(log, 0o755)); err != nil {
		t.Fatal(err)
	}
	run, err := r.engine.Run(t.Context(), target, engine.Firing{Trigger: "manual"})
	if err == nil && run.Outcome != loop.OutcomeFailed {
		t.Fatalf("run = %s %q", run.Outcome, run.Detail)
	}
	if _, err := r.engine.Recover(t.Context(), target); err == nil {
		t.Error("recover says nothing of files that it could not write")
	}
	run, err = r.engine.Run(t.Context(), target, engine.Firing{Trigger: "manual"})
	if err == nil && (run.Outcome != loop.OutcomeFailed || !strings.HasPrefix(run.Detail, "rehydrate: ")) {
		t.Errorf("run = %s %q, %v", run.Outcome, run.Detail, err)
	}
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	r.comesToAGoodEnd(target, false)
}

func TestARunWhoseBaseIsNotThereSaysSo(t *testing.T) {
	r, target := scribbles(t)
	target.Definition.Base = "no-such-branch"
	if run := r.run(target, engine.Firing{}); run.Outcome != loop.OutcomeFailed || !strings.Contains(run.Detail, "no-such-branch") || run.BaseCommit != "" {
		t.Errorf("run = %s %s %q on %q", run.Outcome, run.Reason, run.Detail, run.BaseCommit)
	}
}

func TestTheTranscriptOfARunHasItsPhasesInOrder(t *testing.T) {
	r, target := scribbles(t)
	run := r.run(target, engine.Firing{})
	var phases []string
	for _, e := range r.events {
		if e.Kind == loop.EventPhase && e.RunID == run.ID {
			phases = append(phases, e.Text)
		}
	}
	want := "trigger,claim,kill switch,rehydrate,sense,decide,act,gather,verify,conclude,decide,conclude,persist,effect,sleep"
	if got := strings.Join(phases, ","); got != want {
		t.Errorf("phases = %s, want %s", got, want)
	}
}

func TestTheRowsOfARunHaveTheirNumbersAndItsTime(t *testing.T) {
	r, target := scribbles(t)
	run := r.run(target, engine.Firing{})
	if run.Spent.Total <= 0 || len(r.iterations(run.ID)) != 1 || r.iterations(run.ID)[0].N != 1 {
		t.Errorf("run = %+v, iterations %+v", run.Spent, r.iterations(run.ID))
	}
	r.view(func(rd *store.Reader) error {
		stored, err := rd.Run(t.Context(), run.ID)
		if err == nil && stored.Spent.Total <= 0 {
			t.Errorf("the row says that it took %v", stored.Spent.Total)
		}
		return err
	})
	quiet := r.run(target, engine.Firing{}) // It waits for an answer, and ends in one transaction.
	r.view(func(rd *store.Reader) error {
		stored, err := rd.Run(t.Context(), quiet.ID)
		if err == nil && (stored.Outcome != loop.OutcomeQuiet || stored.Spent.Total <= 0) {
			t.Errorf("the row says %s after %v", stored.Outcome, stored.Spent.Total)
		}
		return err
	})
	for _, link := range r.chain("lp_w") {
		if link.Kind == "run" && link.RunID == run.ID && !strings.Contains(link.Body, `"commit":"`+run.Commit+`"`) {
			t.Errorf("the chain says %s, and nothing of %s", link.Body, run.Commit)
		}
	}
}

func TestAnAgentDoesNotSeeWhatASenseCommandWrote(t *testing.T) {
	r := one(t)
	seen := ""
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		seen = read(t, filepath.Join(req.Dir, "src/sensed.txt")) + read(t, filepath.Join(req.Dir, "src/a.txt"))
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/b.txt"), "two\n")
		return says(t, req, `{"outcome":"done"}`)
	}
	def := until("echo sensed >src/sensed.txt; echo changed >src/a.txt; false", "w", []string{"src/**"})
	def.Verify = "true"
	run := r.run(r.target("w", pinned{}, def), engine.Firing{})
	if run.Outcome != loop.OutcomeProposed || seen != "one\n" {
		t.Fatalf("run = %s %s %q, and its agent saw %q", run.Outcome, run.Reason, run.Detail, seen)
	}
	if files := gittest.Run(t, r.root, "diff", "--name-only", "main", run.Branch); files != "src/b.txt" {
		t.Errorf("proposed files = %q", files)
	}
}

// A program need not end what it prints with a line feed.
func TestAnUnfinishedLineOfAnAgentIsShownWhenItsTurnEnds(t *testing.T) {
	r := one(t)
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		if _, err := io.WriteString(req.Output, "looking\nhalf a line"); err != nil {
			t.Error(err)
		}
		return says(t, req, `{"outcome":"done","no_change":true}`)
	}
	run := r.run(r.worker(loop.TierAssisted, nil), engine.Firing{})
	var printed strings.Builder
	r.view(func(rd *store.Reader) error {
		events, err := rd.Events(t.Context(), run.ID, 0, 100)
		for _, e := range events {
			if e.Kind == loop.EventOutput {
				printed.WriteString(e.Text)
			}
		}
		return err
	})
	if got, want := printed.String(), "looking\nhalf a line"; got != want {
		t.Errorf("stored %q, want %q", got, want)
	}
}
