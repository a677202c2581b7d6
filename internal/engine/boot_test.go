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

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/effect"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/plan"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// bootLike is a protocol shaped like the boot protocol: its memory is files on
// a branch, it repairs them, writes its plan before it acts, and every outcome
// is one commit with the agent's changes, and a push.
type bootLike struct{}

const bootState = "agent/STATE.json"

type bootMemory struct {
	Phase string `json:"phase"`
	Plan  string `json:"plan,omitempty"`
	Next  string `json:"next"`
}

func (bootLike) Open(ctx context.Context, v engine.View) (engine.Session, error) {
	s := &bootSession{v: v}
	file, err := v.Files.Read(bootState)
	if err != nil {
		return nil, err
	}
	if s.text = file.Content; json.Unmarshal([]byte(s.text), &s.m) == nil {
		return s, nil
	}
	old, err := v.History.Show(ctx, "", bootState)
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
	m       bootMemory
	text    string
	repairs []engine.Repair
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
func (s *bootSession) Candidates(engine.Sensed, time.Time) []plan.Candidate {
	return []plan.Candidate{{Step: loop.Step{Key: s.m.Next, Title: s.m.Next, State: loop.StepOpen}, Detail: "nextIntent"}}
}

func (s *bootSession) Begin(ch plan.Choice) ([]loop.Change, engine.Brief, error) {
	m := s.m
	m.Phase, m.Plan = "implementing", ch.Step.Title
	return []loop.Change{s.edit(m)}, engine.Brief{Goal: s.v.Definition.Goal, Task: ch.Step.Title}, nil
}

func (s *bootSession) Record(r engine.Result) ([]loop.Change, []loop.EffectRequest) {
	m := bootMemory{Phase: "idle", Next: "the next thing"}
	if r.Iteration.Verdict != loop.VerdictPass {
		m = bootMemory{Phase: "blocked", Next: s.m.Next}
	}
	ch := s.edit(m)
	key := fmt.Sprintf("%s/%d", r.Run.ID, r.Iteration.N)
	return []loop.Change{ch}, []loop.EffectRequest{
		{Kind: "commit", Key: key + "/commit", Args: map[string]string{
			"base": r.Run.BaseCommit, "candidate": r.Iteration.Candidate, "state": ch.Content, "verdict": string(r.Iteration.Verdict),
		}},
		{Kind: "push", Key: key + "/push"},
	}
}

func (s *bootSession) Close(engine.Summary) []loop.Change { return nil }

// commitEffect puts candidate and memory on main as one commit.
type commitEffect struct {
	repo *git.Repo
	dir  string
	t    *testing.T
}

func (e commitEffect) commit(ctx context.Context, ef loop.Effect) (string, error) {
	file := filepath.Join(e.dir, "state")
	if err := os.WriteFile(file, []byte(ef.Args["state"]), 0o600); err != nil {
		return "", err
	}
	from := ef.Args["candidate"]
	if ef.Args["verdict"] != "pass" {
		from = ef.Args["base"]
	}
	cand, err := e.repo.Candidate(ctx, object.Draft{
		Base: from, When: time.Unix(1, 0), Changes: []object.FileChange{{Path: bootState, Mode: object.ModeFile, From: file}},
	})
	if err != nil {
		return "", err
	}
	return e.repo.Commit(ctx, cand.Tree, []string{ef.Args["base"]}, "agent: one step", time.Unix(1, 0))
}

func (e commitEffect) Apply(ctx context.Context, ef loop.Effect, confirm func(context.Context) error) (map[string]string, error) {
	id, err := e.commit(ctx, ef)
	if err != nil {
		return nil, err
	}
	if err := confirm(ctx); err != nil {
		return nil, err
	}
	return map[string]string{"commit": id}, e.repo.UpdateRef(ctx, "refs/heads/main", id, ef.Args["base"])
}

func (e commitEffect) Look(ctx context.Context, ef loop.Effect) (effect.Found, error) {
	id, err := e.commit(ctx, ef)
	if err != nil {
		return effect.Found{}, err
	}
	at, _, err := e.repo.Ref(ctx, "refs/heads/main")
	return effect.Found{Applied: at == id, Result: map[string]string{"commit": id}}, err
}

// pushEffect pushes main to a bare repository.
type pushEffect struct {
	t            *testing.T
	root, remote string
	tries        *int
	lies         bool // the first push arrives, and then says that it failed
}

func (e pushEffect) Apply(ctx context.Context, _ loop.Effect, confirm func(context.Context) error) (map[string]string, error) {
	if err := confirm(ctx); err != nil {
		return nil, err
	}
	*e.tries++
	gittest.Run(e.t, e.root, "push", "-q", e.remote, "main")
	if e.lies {
		return nil, errors.New("connection reset by peer")
	}
	return nil, nil
}

func (e pushEffect) Look(context.Context, loop.Effect) (effect.Found, error) {
	there := gittest.Run(e.t, e.root, "ls-remote", e.remote, "refs/heads/main")
	return effect.Found{Applied: strings.HasPrefix(there, gittest.Run(e.t, e.root, "rev-parse", "main"))}, nil
}

// boot makes a rig whose checkout has the memory and whose remote is bare.
func (r *rig) boot(lies bool) (engine.Target, *int) {
	r.t.Helper()
	gittest.WriteFile(r.t, filepath.Join(r.root, bootState), `{"phase":"idle","next":"first thing"}`)
	gittest.Run(r.t, r.root, "add", "-A")
	gittest.Run(r.t, r.root, "commit", "-q", "-m", "memory")
	remote := r.t.TempDir()
	gittest.Run(r.t, remote, "init", "-q", "--bare", "-b", "main")
	tries := 0
	deps := r.deps
	deps.Effects = func(repo *git.Repo) map[string]engine.Effect {
		return map[string]engine.Effect{
			"commit": commitEffect{repo, r.t.TempDir(), r.t}, "push": pushEffect{r.t, r.root, remote, &tries, lies},
		}
	}
	r.engine = engine.New(deps)
	return r.target("boot", bootLike{}, loop.Definition{
		Protocol: loop.ProtocolBoot, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x", MaxIterations: 1,
		Verify: "! grep -q bad src/a.txt",
	}), &tries
}

func TestABootRunRepairsPlansActsCommitsAndPushes(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		target, tries := r.boot(false)
		gittest.WriteFile(t, filepath.Join(r.root, bootState), `{"phase":`) // broken by somebody
		var planned string
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			planned = read(t, filepath.Join(r.root, bootState))
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "good\n")
			return says(t, req, `{"outcome":"done"}`)
		}
		run := r.run(target, engine.Firing{})
		if run.Outcome != loop.OutcomeDone {
			t.Fatalf("run = %s %s %q, want done", run.Outcome, run.Reason, run.Detail)
		}
		if planned != `{"phase":"implementing","plan":"first thing","next":"first thing"}` {
			t.Errorf("while the agent acted the memory was %s, want the plan", planned)
		}
		want := `{"phase":"idle","next":"the next thing"}`
		if got := gittest.Run(t, r.root, "show", "main:"+bootState); got != want {
			t.Errorf("committed memory = %s, want %s", got, want)
		}
		if got := gittest.Run(t, r.root, "show", "main:src/a.txt"); got != "good" {
			t.Errorf("committed a.txt = %q", got)
		}
		if *tries != 1 {
			t.Errorf("pushed %d times, want 1", *tries)
		}
		notes := r.notes()
		if !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "restored from the last commit") }) {
			t.Errorf("nobody is told about the repair: %q", notes)
		}
	})
}

func TestABootRunCommitsItsMemoryWhenTheStepFails(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		target, tries := r.boot(false)
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "bad\n")
			return says(t, req, `{"outcome":"done"}`)
		}
		run := r.run(target, engine.Firing{})
		if run.Outcome != loop.OutcomeFailed {
			t.Fatalf("run = %s, want failed", run.Outcome)
		}
		if got := gittest.Run(t, r.root, "show", "main:"+bootState); got != `{"phase":"blocked","next":"first thing"}` {
			t.Errorf("committed memory = %s", got)
		}
		if got := gittest.Run(t, r.root, "show", "main:src/a.txt"); got != "one" {
			t.Errorf("the failed work was committed: %q", got)
		}
		if *tries != 1 || run.Snapshot == "" {
			t.Errorf("pushed %d times, snapshot %q", *tries, run.Snapshot)
		}
	})
}

func TestAnEffectThatHappenedAndSaidItFailedIsNotRepeated(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		target, tries := r.boot(true)
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "good\n")
			return says(t, req, `{"outcome":"done"}`)
		}
		if run := r.run(target, engine.Firing{}); run.Outcome != loop.OutcomeDone || *tries != 1 {
			t.Errorf("run = %s %q after %d pushes, want done after 1", run.Outcome, run.Detail, *tries)
		}
	})
}

func TestAnEffectThatDidNotHappenFailsTheRunAndOpensItsSteps(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		target, _ := r.boot(false)
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "good\n")
			// Somebody moves main while the agent works.
			gittest.WriteFile(t, filepath.Join(r.root, "README.md"), "moved\n")
			gittest.Run(t, r.root, "commit", "-qam", "moved")
			return says(t, req, `{"outcome":"done"}`)
		}
		run := r.run(target, engine.Firing{})
		if run.Outcome != loop.OutcomeFailed || run.Reason != loop.ReasonEffectFailed {
			t.Fatalf("run = %s %s %q, want failed by its effect", run.Outcome, run.Reason, run.Detail)
		}
		if got := gittest.Run(t, r.root, "log", "-1", "--format=%s", "main"); got != "moved" {
			t.Errorf("main is at %q", got)
		}
		if run.Snapshot == "" {
			t.Error("the work is kept nowhere")
		}
	})
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
