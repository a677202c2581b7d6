package engine_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/fault"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
)

func TestASwitchThatIsSetAfterItWasReadStillStandsBeforeTheEffect(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			write(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
			return says(t, req, `{"outcome":"done"}`)
		}
		plan := new(fault.Plan).Do("engine.effect.commit.before", 1, func(ctx context.Context) error {
			return r.store.Update(ctx, func(tx *store.Tx) error { return tx.Pause(ctx, "lp_w", true) })
		})
		run, err := r.engine.Run(fault.With(t.Context(), plan), r.worker(loop.TierAssisted, nil), engine.Firing{Trigger: "manual"})
		if err != nil {
			t.Fatal(err)
		}
		if run.Outcome != loop.OutcomePaused || run.Reason != loop.ReasonKillSwitch || run.Branch != "" || run.Snapshot == "" {
			t.Errorf("run = %s %s, branch %q, snapshot %q, want paused with its work kept", run.Outcome, run.Reason, run.Branch, run.Snapshot)
		}
		if _, there, err := r.repo.Ref(t.Context(), "refs/heads/pawl/w/1"); there || err != nil {
			t.Errorf("a branch was made while the loop was paused: %v", err)
		}
		r.view(func(rd *store.Reader) error {
			effects, err := rd.Effects(t.Context(), run.ID)
			if len(effects) != 1 || effects[0].State != loop.EffectRefused || !strings.Contains(effects[0].Error, "kill switch") {
				t.Errorf("effects = %+v, want it refused", effects)
			}
			return err
		})
	})
}
