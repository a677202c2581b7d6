package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	"github.com/pawl-run/pawl/internal/rules/envelope"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// bootLike is a protocol shaped like the boot protocol: its memory is a file on a branch, it
// repairs it, writes its plan before it acts, and every outcome is one commit with the
// agent's changes, and a push.
type bootLike struct{}

const bootState = "agent/STATE.json"

type bootMemory struct {
	Phase string `json:"phase"`
	Plan  string `json:"plan,omitempty"`
	Next  string `json:"next"`
	Ask   string `json:"ask,omitempty"`
	Last  string `json:"last,omitempty"`
}

func (bootLike) Open(ctx context.Context, v engine.View) (engine.Session, error) {
	base, _, err := v.History.Base(ctx)
	if err != nil {
		return nil, err
	}
	s := &bootSession{v: v, branch: base.Branch}
	file, err := v.Files.Read(bootState)
	if err != nil {
		return nil, err
	}
	if !file.Exists {
		return nil, &engine.OpenError{Outcome: loop.OutcomeFailed, Reason: loop.ReasonStateLost, Detail: bootState}
	}
	if s.owed, err = v.History.Unpushed(ctx, "origin", 1); err != nil {
		return nil, err
	}
	if s.text = file.Content; json.Unmarshal([]byte(s.text), &s.m) == nil {
		return s, nil
	}
	list, err := v.History.Commits(ctx, bootState, 1)
	if err != nil || len(list) != 1 {
		return nil, fmt.Errorf("%v, %w", list, err)
	}
	old, err := v.History.Show(ctx, list[0].ID, bootState)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(old, &s.m); err != nil {
		return nil, err
	}
	s.repairs = []engine.Repair{{Note: bootState + " restored from the last commit", Changes: []loop.Change{s.edit(s.m)}}}
	return s, nil
}

type bootSession struct {
	v       engine.View
	branch  string
	m       bootMemory
	text    string
	repairs []engine.Repair
	owed    []git.Commit
}

// edit changes the file to the memory given, and remembers that it has.
func (s *bootSession) edit(m bootMemory) loop.Change {
	body, _ := json.Marshal(m)
	ch := loop.Change{Kind: loop.ChangeEdit, Path: bootState, Before: s.text, Content: string(body)}
	s.m, s.text = m, ch.Content
	return ch
}

func (s *bootSession) Recovered() []engine.Repair { return s.repairs }
func (s *bootSession) Sources() []engine.Source   { return nil }

func (s *bootSession) Owed() []loop.EffectRequest {
	if len(s.owed) == 0 {
		return nil
	}
	return []loop.EffectRequest{s.push(s.v.Run, "owed")}
}

func (s *bootSession) Question() *engine.Question {
	if s.m.Ask == "" || s.v.Answers[s.m.Ask] != "" {
		return nil
	}
	return &engine.Question{Key: s.m.Ask, Text: "Which one?\na or b", Reason: loop.ReasonConflictProgress}
}

func (s *bootSession) Candidates(engine.Sensed, time.Time) []plan.Candidate {
	c := plan.Candidate{Step: loop.Step{Key: s.m.Next, Title: s.m.Next, State: loop.StepOpen}, Detail: "nextIntent"}
	if s.m.Next == "nothing" {
		c.Drop = loop.ReasonPlanNothing
	}
	return []plan.Candidate{c}
}

func (s *bootSession) Begin(ch plan.Choice) ([]loop.Change, engine.Brief, error) {
	m := s.m
	m.Phase, m.Plan = "implementing", ch.Step.Title+s.v.Answers[s.m.Ask]
	return []loop.Change{s.edit(m)}, engine.Brief{Goal: envelope.Plain(s.v.Definition.Goal), Task: envelope.Plain(ch.Step.Title)}, nil
}

func (s *bootSession) Record(engine.Result) ([]loop.Change, []loop.EffectRequest) { return nil, nil }

func (s *bootSession) push(run loop.Run, what string) loop.EffectRequest {
	return loop.EffectRequest{Kind: effect.KindMemoryPush, Key: run.ID + "/" + what, Args: map[string]string{
		effect.ArgBase: s.branch, effect.ArgRemote: "origin", effect.ArgFiles: effect.EncodeFiles(map[string]string{bootState: s.text}),
		effect.ArgWhen: s.v.Now.UTC().Format(time.RFC3339),
	}}
}

func (s *bootSession) End(sum engine.Summary) ([]loop.Change, []loop.EffectRequest) {
	if sum.Run.Outcome == loop.OutcomeQuiet && len(s.repairs) == 0 {
		return nil, nil
	}
	m := s.m
	m.Phase, m.Plan = string(sum.Run.Outcome), ""
	commit := loop.EffectRequest{Kind: effect.KindMemoryCommit, Key: sum.Run.ID + "/commit", Args: map[string]string{
		effect.ArgBase: s.branch, effect.ArgOnto: sum.Run.BaseCommit, effect.ArgMessage: "agent: one step", effect.ArgWhen: sum.Now.UTC().Format(time.RFC3339),
	}}
	if sum.Run.Outcome == loop.OutcomeDone {
		m.Next = "the next thing"
		commit.Args[effect.ArgTree] = sum.Iterations[len(sum.Iterations)-1].Tree
	} else {
		commit.Args[loop.ArgAccount] = "true"
	}
	ch := s.edit(m)
	commit.Args[effect.ArgFiles] = effect.EncodeFiles(map[string]string{bootState: ch.Content})
	return []loop.Change{ch}, []loop.EffectRequest{commit, s.push(sum.Run, "push")}
}

func (s *bootSession) Close(sum engine.Summary) []loop.Change {
	if sum.Run.Commit == "" {
		return nil
	}
	// The commit may have been merged with others'.
	file, err := s.v.Files.Read(bootState)
	if s.text = file.Content; err != nil || json.Unmarshal([]byte(s.text), &s.m) != nil {
		return nil
	}
	m := s.m
	m.Last = sum.Run.Commit
	return []loop.Change{s.edit(m)}
}

// boot makes a rig whose checkout has the memory and whose remote is bare.
func (r *rig) boot() engine.Target {
	r.t.Helper()
	gittest.WriteFile(r.t, filepath.Join(r.root, bootState), `{"phase":"idle","next":"first thing"}`)
	gittest.Run(r.t, r.root, "add", "-A")
	gittest.Run(r.t, r.root, "commit", "-q", "-m", "memory")
	r.remote = r.t.TempDir()
	gittest.Run(r.t, r.remote, "init", "-q", "--bare", "-b", "main")
	gittest.Run(r.t, r.root, "remote", "add", "origin", r.remote)
	gittest.Run(r.t, r.root, "push", "-q", "origin", "main")
	deps := r.deps
	merge := func(context.Context, string, map[string]string, map[string]string, map[string]string) (map[string]string, error) {
		return map[string]string{bootState: `{"phase":"merged","next":"first thing"}`}, nil
	}
	sleep := func(context.Context, time.Duration) error { return nil }
	deps.Effects = func(repo *git.Repo) map[string]engine.Effect {
		return map[string]engine.Effect{
			effect.KindMemoryCommit: effect.NewMemoryCommit(repo, merge, sleep), effect.KindMemoryPush: effect.NewMemoryPush(repo, merge, sleep, os.Environ()),
		}
	}
	r.engine = engine.New(deps)
	return r.target("boot", bootLike{}, loop.Definition{
		Protocol: loop.ProtocolBoot, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x", MaxIterations: 1,
		Verify: "! grep -q bad src/a.txt",
	})
}

// acts lets the agent write a.txt and report.
func (r *rig) acts(text string) {
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		gittest.WriteFile(r.t, filepath.Join(req.Dir, "src/a.txt"), text)
		return says(r.t, req, `{"outcome":"done"}`)
	}
}

// committed fails unless main and its remote have this memory and a.txt, and the checkout
// differs by the last commit alone.
func (r *rig) committed(run loop.Run, memory, work string) {
	r.t.Helper()
	if got := gittest.Run(r.t, r.root, "show", "main:"+bootState); got != memory {
		r.t.Errorf("committed memory = %s, want %s", got, memory)
	}
	if got := gittest.Run(r.t, r.root, "show", "main:src/a.txt"); got != work {
		r.t.Errorf("committed a.txt = %q, want %q", got, work)
	}
	if there, here := gittest.Run(r.t, r.remote, "rev-parse", "main"), gittest.Run(r.t, r.root, "rev-parse", "main"); there != here || run.Commit != here {
		r.t.Errorf("the remote is at %s, main at %s, and the run says %s", there, here, run.Commit)
	}
	memory, _, _ = strings.Cut(strings.TrimSuffix(memory, "}"), `,"last"`)
	want := memory + `,"last":"` + run.Commit + `"}`
	if got := read(r.t, filepath.Join(r.root, bootState)); got != want {
		r.t.Errorf("memory in the checkout = %s, want %s", got, want)
	}
	if got := gittest.Run(r.t, r.root, "status", "--porcelain"); got != "M "+bootState {
		r.t.Errorf("status = %q", got)
	}
	if got := gittest.Run(r.t, r.root, "fsck", "--no-dangling"); got != "" {
		r.t.Errorf("fsck: %s", got)
	}
}

func TestABootRunRepairsPlansActsCommitsAndPushes(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		target := r.boot()
		gittest.WriteFile(t, filepath.Join(r.root, bootState), `{"phase":`) // broken by somebody
		var planned string
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			planned = read(t, filepath.Join(r.root, bootState))
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "good\n")
			return says(t, req, `{"outcome":"done"}`)
		}
		run := r.run(target, engine.Firing{})
		if run.Outcome != loop.OutcomeDone || run.Snapshot != "" {
			t.Fatalf("run = %s %s %q with the snapshot %q, want done without", run.Outcome, run.Reason, run.Detail, run.Snapshot)
		}
		if planned != `{"phase":"implementing","plan":"first thing","next":"first thing"}` {
			t.Errorf("while the agent acted the memory was %s, want the plan", planned)
		}
		r.committed(run, `{"phase":"done","next":"the next thing"}`, "good")
		if !slices.ContainsFunc(r.notes(), func(n string) bool { return strings.Contains(n, "restored from the last commit") }) {
			t.Errorf("nobody is told about the repair: %q", r.notes())
		}
	})
}

func TestABootRunCommitsItsMemoryWhateverItsOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		memory  string                      // in the checkout before; empty: as it was committed
		agent   func(r *rig, cancel func()) // nil: nobody acts
		outcome loop.Outcome
		next    string
	}{
		"failed": {"", func(r *rig, _ func()) { r.acts("bad\n") }, loop.OutcomeFailed, "first thing"},
		"interrupted": {"", func(r *rig, cancel func()) {
			r.agent = func(ctx context.Context, _ agent.Request) (agent.Result, error) {
				cancel()
				<-ctx.Done()
				return agent.Result{}, ctx.Err()
			}
		}, loop.OutcomeInterrupted, "first thing"},
		"quiet with a repair": {`{"next`, nil, loop.OutcomeQuiet, "nothing"},
		"paused in mid-act": {"", func(r *rig, _ func()) {
			r.agent = func(ctx context.Context, _ agent.Request) (agent.Result, error) {
				gittest.WriteFile(r.t, filepath.Join(r.root, ".loops/PAUSED"), "stop")
				<-ctx.Done()
				return agent.Result{}, ctx.Err()
			}
		}, loop.OutcomePaused, "first thing"},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, r *rig) {
				target := r.boot()
				if c.next == "nothing" {
					gittest.WriteFile(t, filepath.Join(r.root, bootState), `{"phase":"idle","next":"nothing"}`)
					gittest.Run(t, r.root, "commit", "-q", "-a", "-m", "nothing to do")
				}
				if c.memory != "" {
					gittest.WriteFile(t, filepath.Join(r.root, bootState), c.memory)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.agent != nil {
					c.agent(r, cancel)
				}
				run, err := r.engine.Run(ctx, target, engine.Firing{})
				if err != nil {
					t.Fatal(err)
				}
				if run.Outcome != c.outcome {
					t.Fatalf("run = %s %s %q, want %s", run.Outcome, run.Reason, run.Detail, c.outcome)
				}
				want := fmt.Sprintf(`{"phase":"%s","next":"%s"}`, c.outcome, c.next)
				if c.outcome == loop.OutcomePaused { // What leaves the machine waits for the switch.
					if got := gittest.Run(t, r.root, "show", "main:"+bootState); got != want {
						t.Errorf("committed memory = %s, want %s", got, want)
					}
					if !strings.Contains(run.Detail, "not pushed") {
						t.Errorf("detail = %q", run.Detail)
					}
					return
				}
				r.committed(run, want, "one")
			})
		})
	}
}

func TestARunThatDiedIsCommittedToItsBranchByWhoRecoversIt(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile []string // git does this before the run is recovered
		committed bool
	}{
		"its branch is checked out":                           {nil, true},
		"another branch is, which does not have the commit":   {[]string{"checkout", "-q", "-f", "-b", "older", "HEAD~1"}, false},
		"another branch is, and the memory in the checkout's": {[]string{"checkout", "-q", "-b", "same"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, r *rig) {
				gone := loop.Holder{PID: 7, Start: 1, Host: r.deps.Self.Host}
				r.deps.HolderState = deadIf(gone)
				target := r.boot()
				r.agent = untilStopped(t, func() { r.steal("lp_boot", gone) })
				if _, err := r.engine.Run(t.Context(), target, engine.Firing{}); !errors.Is(err, loop.ErrLeaseLost) {
					t.Fatalf("run = %v, want a lost lease", err)
				}
				if len(c.meanwhile) > 0 {
					gittest.Run(t, r.root, c.meanwhile...)
				}
				tip := gittest.Run(t, r.root, "rev-parse", "HEAD")
				rec, err := r.engine.Recover(t.Context(), target)
				if err != nil || rec == nil || rec.Run.Outcome != loop.OutcomeInterrupted {
					t.Fatalf("recover = %+v, %v, want the run interrupted", rec, err)
				}
				if now := gittest.Run(t, r.root, "rev-parse", "HEAD"); (now != tip) != c.committed || c.committed && now != rec.Run.Commit {
					t.Errorf("HEAD was %s and is %s, and the run says %q", tip, now, rec.Run.Commit)
				}
				if status := gittest.Run(t, r.root, "status", "--porcelain"); c.committed && status != "M "+bootState {
					t.Errorf("status = %q", status)
				}
			})
		})
	}
}

func TestAPushThatIsOwedComesFirst(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		target := r.boot()
		away := r.remote + ".away"
		if err := os.Rename(r.remote, away); err != nil {
			t.Fatal(err)
		}
		r.acts("good\n")
		run := r.run(target, engine.Firing{})
		if run.Outcome != loop.OutcomeDone || !strings.Contains(run.Detail, "not pushed: after 5 tries") {
			t.Fatalf("run = %s %q, want done and not pushed", run.Outcome, run.Detail)
		}
		if err := os.Rename(away, r.remote); err != nil {
			t.Fatal(err)
		}
		there := ""
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			there = gittest.Run(t, r.remote, "rev-parse", "main")
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "better\n")
			return says(t, req, `{"outcome":"done"}`)
		}
		second := r.run(target, engine.Firing{})
		if there != run.Commit {
			t.Errorf("while the agent acted the remote was at %s, want %s", there, run.Commit)
		}
		r.committed(second, `{"phase":"done","next":"the next thing","last":"`+run.Commit+`"}`, "better")
	})
}

func TestASessionAsksOnceAndIsAnswered(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		target := r.boot()
		gittest.WriteFile(t, filepath.Join(r.root, bootState), `{"phase":"idle","next":"first thing","ask":"which"}`)
		r.acts("good\n")
		first, second := r.run(target, engine.Firing{}), r.run(target, engine.Firing{})
		for _, run := range []loop.Run{first, second} {
			if run.Outcome != loop.OutcomeWaiting || run.Reason != loop.ReasonConflictProgress || run.Detail != "Which one?" || run.Approval != first.Approval {
				t.Fatalf("run = %s %s %q with %s, want one question", run.Outcome, run.Reason, run.Detail, run.Approval)
			}
		}
		planned := ""
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			planned = read(t, filepath.Join(r.root, bootState))
			return says(t, req, `{"outcome":"done","no_change":true}`)
		}
		run := r.run(target, engine.Yes(first.Approval, loop.Answer{By: "somebody", Note: "a"}))
		if run.Outcome != loop.OutcomeDone || !strings.Contains(planned, `"plan":"first thinga"`) {
			t.Errorf("run = %s %q with the plan %s, want that the answer is heard", run.Outcome, run.Detail, planned)
		}
	})
}

func TestAMemoryThatCannotBeOpenedSaysHowTheRunEnds(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		target := r.boot()
		if err := os.Remove(filepath.Join(r.root, bootState)); err != nil {
			t.Fatal(err)
		}
		if run := r.run(target, engine.Firing{}); run.Outcome != loop.OutcomeFailed || run.Reason != loop.ReasonStateLost {
			t.Errorf("run = %s %s", run.Outcome, run.Reason)
		}
	})
}

func TestACommitThatCannotBeMadeKeepsTheWork(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		target := r.boot()
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "good\n")
			// Somebody changes the same lines while the agent works.
			gittest.WriteFile(t, filepath.Join(r.root, "src/a.txt"), "moved\n")
			gittest.Run(t, r.root, "commit", "-qm", "moved", "src/a.txt")
			return says(t, req, `{"outcome":"done"}`)
		}
		run := r.run(target, engine.Firing{})
		if run.Outcome != loop.OutcomeFailed || run.Reason != loop.ReasonEffectFailed || !strings.Contains(run.Detail, "same lines of src/a.txt") {
			t.Fatalf("run = %s %s %q, want failed by its effect", run.Outcome, run.Reason, run.Detail)
		}
		if got := gittest.Run(t, r.root, "log", "-1", "--format=%s", "main"); got != "moved" {
			t.Errorf("main is at %q", got)
		}
		if run.Snapshot == "" || gittest.Run(t, r.root, "show", run.Snapshot+":src/a.txt") != "good" {
			t.Errorf("the work is kept as %q", run.Snapshot)
		}
	})
}

func TestMergedWorkIsGatedAgain(t *testing.T) {
	for text, outcome := range map[string]loop.Outcome{"fine": loop.OutcomeDone, "worse": loop.OutcomeFailed} {
		t.Run(text, func(t *testing.T) {
			onBoth(t, func(t *testing.T, r *rig) {
				target := r.boot()
				target.Definition.Verify = "! grep -q bad src/a.txt && ! grep -q worse README.md"
				r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
					gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "good\n")
					gittest.WriteFile(t, filepath.Join(r.root, "README.md"), text)
					gittest.Run(t, r.root, "commit", "-qm", "moved", "README.md")
					return says(t, req, `{"outcome":"done"}`)
				}
				run := r.run(target, engine.Firing{})
				if run.Outcome != outcome {
					t.Fatalf("run = %s %s %q, want %s", run.Outcome, run.Reason, run.Detail, outcome)
				}
				if outcome == loop.OutcomeDone {
					r.committed(run, `{"phase":"merged","next":"first thing"}`, "good")
				}
			})
		})
	}
}

func (r *rig) notes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := map[string]bool{}
	for _, e := range r.events {
		if e.Kind == loop.EventNote {
			seen[e.Text] = true
		}
	}
	return slices.Collect(maps.Keys(seen))
}
