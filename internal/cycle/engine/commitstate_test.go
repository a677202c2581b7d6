package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/envelope"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// twoFiles is a protocol shaped like spine: its memory is a state that each run rewrites and
// a log to which each run adds a line, both in the checkout, and it works on the goal.
type twoFiles struct{}

func (twoFiles) Open(_ context.Context, v engine.View) (engine.Session, error) {
	s := &twoFilesSession{v: v}
	file, err := v.Files.Read(s.path(loop.StateFile))
	s.state = file.Content
	return s, err
}

type twoFilesSession struct {
	v     engine.View
	state string
}

func (s *twoFilesSession) path(name string) string    { return ".loops/" + s.v.Loop.Name + "/" + name }
func (s *twoFilesSession) Recovered() []engine.Repair { return nil }

func (s *twoFilesSession) Sources() []engine.Source {
	if s.v.Definition.Sense == "" {
		return nil
	}
	return []engine.Source{{Name: "sense", Command: s.v.Definition.Sense, Quiet: engine.QuietOnEmpty}}
}

func (s *twoFilesSession) Candidates(engine.Sensed, time.Time) []plan.Candidate {
	step := loop.Step{Key: "GOAL", Title: "the goal", Kind: loop.StepWork, State: loop.StepOpen}
	if len(s.v.Steps) > 0 {
		step = s.v.Steps[0]
	}
	if step.State == loop.StepDone && step.Inputs == "" {
		step = step.AsNew()
	}
	return []plan.Candidate{{Step: step, Depends: true}}
}

func (s *twoFilesSession) Begin(plan.Choice) ([]loop.Change, engine.Brief, error) {
	return nil, engine.Brief{Goal: envelope.Plain(s.v.Definition.Goal)}, nil
}

func (s *twoFilesSession) Record(r engine.Result) ([]loop.Change, []loop.EffectRequest) {
	if r.Proposal == nil {
		return nil, nil
	}
	return nil, []loop.EffectRequest{*r.Proposal}
}

func (s *twoFilesSession) Close(sum engine.Summary) []loop.Change {
	line := fmt.Sprintf("run#%d %s", sum.Run.N, sum.Run.Outcome)
	return []loop.Change{
		{Kind: loop.ChangeEdit, Path: s.path(loop.StateFile), Before: s.state, Content: "after " + line + "\n"},
		{Kind: loop.ChangeAppend, Path: s.path(loop.LogFile), Before: "# log\n", Content: line},
	}
}

// commits lets the engine commit memory, and makes a loop whose definition has
// commit_state.
func (r *rig) commits(d loop.Definition) engine.Target {
	r.deps.Effects = func(repo *git.Repo) map[string]engine.Effect {
		sleep := func(context.Context, time.Duration) error { return nil }
		return map[string]engine.Effect{
			effect.KindPropose: effect.NewPropose(repo), effect.KindLand: effect.NewLand(repo), effect.KindMemoryCommit: effect.NewMemoryCommit(repo, nil, sleep),
		}
	}
	r.engine = engine.New(r.deps)
	d.CommitState, d.AgentCommand = true, "x"
	return r.target(d.Name, twoFiles{}, d)
}

// finds lets the agent report one finding.
func (r *rig) finds() {
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		return says(r.t, req, `{"outcome":"done","no_change":true,"summary":"looked","items":["found it"]}`)
	}
}

// last is the newest commit of main: its first line and its files.
func (r *rig) last() string {
	r.t.Helper()
	return strings.ReplaceAll(gittest.Run(r.t, r.root, "show", "--format=%s", "--name-only", "main"), "\n", " ")
}

func (r *rig) status() string {
	r.t.Helper()
	return strings.ReplaceAll(gittest.Run(r.t, r.root, "status", "--porcelain", "-uall"), "\n", " ")
}

func logLines(text string) (n int) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "run#") {
			n++
		}
	}
	return n
}

const watchFiles = ".loops/watch/STATE.md .loops/watch/run-log.md"

func TestTheMemoryOfALoopIsCommittedAtTheEndOfARun(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		target := r.commits(loop.Definition{Name: "watch", Tier: loop.TierReport, Sense: "cat src/a.txt"})
		r.finds()
		gittest.Write(t, r.root, map[string]string{"README.md": "half done\n", "src/new.txt": "staged\n"})
		gittest.Run(t, r.root, "add", "src/new.txt")
		run := r.run(target, engine.Firing{})
		if run.Outcome != loop.OutcomeReported || run.Commit != "" {
			t.Fatalf("run = %s %s %q with commit %q, want reported without", run.Outcome, run.Reason, run.Detail, run.Commit)
		}
		if got := r.last(); got != "pawl: state of watch after run #1 (reported)  "+watchFiles {
			t.Errorf("last commit = %q", got)
		}
		if got := r.status(); got != "M README.md A  src/new.txt" {
			t.Errorf("status = %q, want what a person has not committed", got)
		}
		if log := gittest.Run(t, r.root, "show", "main:.loops/watch/run-log.md"); !strings.Contains(log, "run#1 reported") {
			t.Errorf("the committed log lacks the line of the run:\n%s", log)
		}
		if state := gittest.Run(t, r.root, "show", "main:.loops/watch/STATE.md"); state != "after run#1 reported" {
			t.Errorf("committed STATE.md:\n%s", state)
		}
		if err := store.VerifyChain(r.chain("lp_watch")); err != nil {
			t.Error(err)
		}

		// A run that finds nothing to do leaves its line to the next one.
		before := gittest.Run(t, r.root, "rev-parse", "main")
		target.Definition.Sense = "true"
		if run := r.run(target, engine.Firing{}); run.Outcome != loop.OutcomeQuiet || gittest.Run(t, r.root, "rev-parse", "main") != before {
			t.Errorf("run = %s, last commit %q; want quiet and none", run.Outcome, r.last())
		}
		target.Definition.Sense = "cat src/a.txt; echo more"
		r.run(target, engine.Firing{})
		if got := logLines(gittest.Run(t, r.root, "show", "main:.loops/watch/run-log.md")); got != 3 || r.status() != "M README.md A  src/new.txt" {
			t.Errorf("%d lines are committed, status %q", got, r.status())
		}
	})
}

func TestACommitOfTheMemoryDoesNotMoveTheBaseOfAProposal(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		watch := r.commits(loop.Definition{Name: "watch", Tier: loop.TierReport, Sense: "cat src/a.txt"})
		fix := r.commits(loop.Definition{Name: "fix", Tier: loop.TierAssisted, Scope: []string{"src/**"}, Verify: "grep -q two src/a.txt"})
		base := gittest.Run(t, r.root, "rev-parse", "main")
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			r.finds()
			if run := r.run(watch, engine.Firing{}); run.Outcome != loop.OutcomeReported || gittest.Run(t, r.root, "rev-parse", "main") != base {
				t.Errorf("while fix works watch ended %s %q and main is %q", run.Outcome, run.Detail, r.last())
			}
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
			return says(t, req, `{"outcome":"done","summary":"two"}`)
		}
		run := r.run(fix, engine.Firing{})
		if run.Outcome != loop.OutcomeProposed || run.Approval == "" {
			t.Fatalf("run = %s %s %q", run.Outcome, run.Reason, run.Detail)
		}
		r.run(watch, engine.Firing{})
		if now := gittest.Run(t, r.root, "rev-parse", "main"); now != base {
			t.Errorf("main moved under the proposal: %s", r.last())
		}
		if !slices.ContainsFunc(r.notes(), func(n string) bool {
			return strings.Contains(n, "main would move away from what pawl/fix/1 was judged on")
		}) {
			t.Errorf("nobody is told why: %q", r.notes())
		}
		landed := r.run(fix, engine.Yes(run.Approval, loop.Answer{By: "Ada", From: "test"}))
		if landed.Outcome != loop.OutcomeLanded || landed.Commit != gittest.Run(t, r.root, "rev-parse", "main~1") {
			t.Fatalf("run = %s %s %q, commit %s, main:\n%s", landed.Outcome, landed.Reason, landed.Detail, landed.Commit, gittest.Run(t, r.root, "log", "--format=%H %s", "main"))
		}
		if got := r.last(); got != "pawl: state of fix after run #2 (landed)  .loops/fix/STATE.md .loops/fix/run-log.md" {
			t.Errorf("last commit = %q", got)
		}
		r.finds()
		watch.Definition.Sense = "echo again"
		r.run(watch, engine.Firing{})
		if got := logLines(gittest.Run(t, r.root, "show", "main:.loops/watch/run-log.md")); got != 3 || r.status() != "" {
			t.Errorf("%d lines of watch are committed, status %q", got, r.status())
		}
	})
}

func TestACommitOfTheMemoryThatFailsIsMadeByTheNextRun(t *testing.T) {
	for name, c := range map[string]struct {
		broken, mended func(r *rig)
		says           string
	}{
		"locked index": {
			func(r *rig) { gittest.WriteFile(r.t, filepath.Join(r.root, ".git/index.lock"), "") },
			func(r *rig) {
				if err := os.Remove(filepath.Join(r.root, ".git/index.lock")); err != nil {
					r.t.Fatal(err)
				}
			}, "the memory is not committed: commit the memory to main: the index of",
		},
		"no branch": {
			func(r *rig) { gittest.Run(r.t, r.root, "checkout", "-q", "--detach") },
			func(r *rig) { gittest.Run(r.t, r.root, "checkout", "-q", "main") }, "not committed: no branch is checked out",
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, r *rig) {
				target := r.commits(loop.Definition{Name: "watch", Tier: loop.TierReport, Sense: "cat src/a.txt"})
				r.finds()
				c.broken(r)
				run := r.run(target, engine.Firing{})
				if run.Outcome != loop.OutcomeReported || r.last() != "base  README.md src/a.txt" && strings.Contains(r.last(), "pawl") {
					t.Fatalf("run = %s %s %q, last commit %q", run.Outcome, run.Reason, run.Detail, r.last())
				}
				if !slices.ContainsFunc(r.notes(), func(n string) bool { return strings.Contains(n, c.says) }) {
					t.Errorf("notes = %q, want %q", r.notes(), c.says)
				}
				c.mended(r)
				target.Definition.Sense = "echo again"
				r.run(target, engine.Firing{})
				if got := logLines(gittest.Run(t, r.root, "show", "main:.loops/watch/run-log.md")); got != 2 || r.status() != "" {
					t.Errorf("%d lines are committed, status %q", got, r.status())
				}
			})
		})
	}
}

func TestAGoalIsNotWorkedOnAgainBecauseTheMemoryWasCommitted(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		target := r.commits(loop.Definition{Name: "watch", Tier: loop.TierAssisted, Scope: []string{"src/**"}, Verify: "true"})
		r.finds()
		if run := r.run(target, engine.Firing{}); run.Outcome != loop.OutcomeDone || !strings.Contains(r.last(), "state of watch") {
			t.Fatalf("run = %s %s %q, last commit %q", run.Outcome, run.Reason, run.Detail, r.last())
		}
		if run := r.run(target, engine.Firing{}); run.Outcome != loop.OutcomeQuiet || run.Reason != loop.ReasonUnchanged {
			t.Errorf("run = %s %s %q, want quiet: nothing has changed", run.Outcome, run.Reason, run.Detail)
		}
		gittest.WriteFile(t, filepath.Join(r.root, "src/a.txt"), "other\n")
		gittest.Run(t, r.root, "commit", "-q", "-m", "other", "src/a.txt")
		if run := r.run(target, engine.Firing{}); run.Outcome != loop.OutcomeDone {
			t.Errorf("run = %s %s %q, want done: the base has changed", run.Outcome, run.Reason, run.Detail)
		}
	})
}

// TestAProcessThatDiesCommitsTheMemoryOnceAndWhole lets a run die at every place between its
// outcome and its end.
func TestAProcessThatDiesCommitsTheMemoryOnceAndWhole(t *testing.T) {
	t.Parallel()
	target := func(r *rig) engine.Target {
		t := r.commits(loop.Definition{Name: "w", Tier: loop.TierAssisted, Scope: []string{"src/**"}, Verify: "true", HumanGate: loop.HumanGateAccept})
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			gittest.WriteFile(r.t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
			return says(r.t, req, `{"outcome":"done","summary":"two"}`)
		}
		return t
	}
	whole := new(fault.Plan)
	r := newRig(t, databases["sqlite"](t))
	run, err := r.engine.Run(fault.With(t.Context(), whole), target(r), engine.Firing{Trigger: "manual"})
	if err != nil || !strings.Contains(r.last(), "state of w") {
		t.Fatalf("run = %s %s %q, %v, last commit %q", run.Outcome, run.Reason, run.Detail, err, r.last())
	}
	want := run.Outcome
	hits := whole.Hits()
	begin, end := slices.Index(hits, "engine.conclude.commit.after"), slices.Index(hits, "engine.sleep.commit.before")
	count := map[string]int{}
	for i, point := range hits {
		count[point]++
		if i < begin || i > end {
			continue
		}
		k := count[point]
		t.Run(fmt.Sprintf("%s:%d", point, k), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, databases["sqlite"](t))
			target := target(r)
			gone := loop.Holder{PID: 7, Start: 1, Host: r.deps.Self.Host, Node: r.deps.Self.Node}
			r.deps.HolderState = deadIf(gone)
			r.engine = engine.New(r.deps)
			dies := new(fault.Plan).Do(point, k, func(context.Context) error {
				r.steal("lp_w", gone)
				return loop.ErrLeaseLost
			})
			if _, err := r.engine.Run(fault.With(t.Context(), dies), target, engine.Firing{Trigger: "manual"}); !errors.Is(err, loop.ErrLeaseLost) {
				t.Fatalf("the run does not die here: %v", err)
			}
			rec, err := r.engine.Recover(t.Context(), target)
			if err != nil || rec == nil || rec.Run.Outcome != want {
				t.Fatalf("recovered %+v, %v; want %s", rec, err, want)
			}
			if got := gittest.Run(t, r.root, "log", "--format=%s", "main"); strings.Count(got, "state of w after run #1") != 1 {
				t.Errorf("history:\n%s", got)
			}
			if got := logLines(gittest.Run(t, r.root, "show", "main:.loops/w/run-log.md")); got != 1 || r.status() != "" {
				t.Errorf("%d lines are committed, status %q", got, r.status())
			}
		})
	}
}
