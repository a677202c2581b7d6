package engine_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// endless sets the switch, and then waits for the end of its context and for
// nothing else: a step of that kind that the switch does not reach never ends.
func (r *rig) endless(t *testing.T) fault.Action {
	t.Helper()
	return func(ctx context.Context) error {
		gittest.WriteFile(t, filepath.Join(r.root, ".loops/PAUSED"), "")
		<-ctx.Done()
		return context.Cause(ctx)
	}
}

// A point that is not reached, or that the switch does not reach, hangs the test.
func TestTheSwitchEndsEveryPhaseThatWouldNeverEnd(t *testing.T) {
	worked := map[string]bool{ // points, and whether there is work to keep by then
		"engine.rehydrate.open.before":  false,
		"engine.sense.before":           false,
		"workspace.make.before":         false,
		"engine.tree.made.after":        false,
		"engine.act.before":             false,
		"engine.act.after":              true,
		"engine.gather.before":          true,
		"engine.gather.candidate.after": true,
		"engine.verify.before":          true,
		"engine.verify.gates.after":     true,
	}
	for point, kept := range worked {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := one(t)
			r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
				gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "worked\n")
				return says(t, req, `{"outcome":"done"}`)
			}
			plan := (&fault.Plan{}).Do(point, 1, r.endless(t))
			target := r.worker(loop.TierAssisted, func(d *loop.Definition) { d.Verify = "true" })
			run, err := r.engine.Run(fault.With(t.Context(), plan), target, engine.Firing{Trigger: "manual"})
			if err != nil || run.Outcome != loop.OutcomePaused || run.Reason != loop.ReasonKillSwitch || run.Branch != "" {
				t.Fatalf("run = %s %s %q on %q, %v, want paused", run.Outcome, run.Reason, run.Detail, run.Branch, err)
			}
			if !kept {
				return
			}
			if got := gittest.Run(t, r.root, "show", run.Snapshot+":src/a.txt"); got != "worked" {
				t.Errorf("kept a.txt = %q", got)
			}
		})
	}
}

func TestTheSwitchEndsAGateThatWouldNeverEnd(t *testing.T) {
	r := one(t)
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "worked\n")
		return says(t, req, `{"outcome":"done"}`)
	}
	target := r.worker(loop.TierAssisted, func(d *loop.Definition) {
		d.Verify = "if grep -q worked src/a.txt; then mkdir -p '" + r.root + "/.loops' && touch '" + r.root + "/.loops/PAUSED' && exec sleep 300; fi"
	})
	if run := r.run(target, engine.Firing{}); run.Outcome != loop.OutcomePaused || run.Snapshot == "" {
		t.Errorf("run = %s %q, kept %q", run.Outcome, run.Detail, run.Snapshot)
	}
}

// slowRemote is an effect that waits for another machine.
type slowRemote struct{ do fault.Action }

func (s slowRemote) Apply(ctx context.Context, _ loop.Effect, _ func(context.Context) error) (map[string]string, error) {
	return nil, s.do(ctx)
}

func (slowRemote) Look(ctx context.Context, _ loop.Effect) (effect.Found, error) {
	return effect.Found{}, ctx.Err()
}

// pushes asks for a push whenever a step passes.
type pushes struct{ boardLike }

func (p pushes) Open(ctx context.Context, v engine.View) (engine.Session, error) {
	s, err := p.boardLike.Open(ctx, v)
	return pushSession{s}, err
}

type pushSession struct{ engine.Session }

func (s pushSession) Record(r engine.Result) ([]loop.Change, []loop.EffectRequest) {
	changes, _ := s.Session.Record(r)
	return changes, []loop.EffectRequest{{Kind: effect.KindPush, Key: r.Run.ID + "/push", Args: map[string]string{effect.ArgTree: r.Iteration.Tree}}}
}

func TestTheSwitchEndsAPushThatWouldNeverEnd(t *testing.T) {
	r := one(t)
	r.deps.Effects = func(*git.Repo) map[string]engine.Effect {
		return map[string]engine.Effect{effect.KindPush: slowRemote{r.endless(t)}}
	}
	r.engine = engine.New(r.deps)
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "worked\n")
		return says(t, req, `{"outcome":"done"}`)
	}
	target := r.worker(loop.TierAssisted, func(d *loop.Definition) { d.Verify = "true" })
	target.Protocol = pushes{boardLike{nil, []string{"the task"}}}
	if run := r.run(target, engine.Firing{}); run.Outcome != loop.OutcomePaused || run.Snapshot == "" {
		t.Errorf("run = %s %s %q, kept %q, want it paused and the work kept", run.Outcome, run.Reason, run.Detail, run.Snapshot)
	}
}
