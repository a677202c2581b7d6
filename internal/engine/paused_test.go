package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/fault"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
)

func TestASwitchThatCannotBeReadIsSet(t *testing.T) {
	for name, c := range map[string]struct {
		make     func(root string) error
		set, all bool
	}{
		"there is no folder": {func(string) error { return nil }, false, false},
		"no file in it":      {func(root string) error { return os.MkdirAll(filepath.Join(root, ".loops/w"), 0o755) }, false, false},
		"a file in the place of the folder of all loops": {func(root string) error { return os.WriteFile(filepath.Join(root, ".loops"), nil, 0o600) }, true, true},
		"a folder of all loops that leads to itself":     {func(root string) error { return os.Symlink(".loops", filepath.Join(root, ".loops")) }, true, true},
		"a file in the place of the loop's folder": {func(root string) error {
			return errors.Join(os.Mkdir(filepath.Join(root, ".loops"), 0o755), os.WriteFile(filepath.Join(root, ".loops/w"), nil, 0o600))
		}, true, false},
		"the loop's folder leads to itself": {func(root string) error {
			return errors.Join(os.Mkdir(filepath.Join(root, ".loops"), 0o755), os.Symlink("w", filepath.Join(root, ".loops/w")))
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if err := c.make(root); err != nil {
				t.Fatal(err)
			}
			got := engine.Switch(root, "w")
			if (got != "") != c.set || c.set && (!strings.Contains(got, "PAUSED (cannot be read: ") || engine.StopsAll(got) != c.all) {
				t.Errorf("Switch = %q, want that it is set: %v, for all loops: %v", got, c.set, c.all)
			}
		})
	}
}

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
