package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/storetest"
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
			if got.IsZero() == c.set || c.set && (!strings.Contains(got.String(), "PAUSED (cannot be read: ") || got.StopsAll() != c.all) {
				t.Errorf("Switch = %q, want that it is set: %v, for all loops: %v", got, c.set, c.all)
			}
		})
	}
}

func TestASwitchThatIsSetAfterItWasReadStillStandsBeforeTheEffect(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
			return says(t, req, `{"outcome":"done"}`)
		}
		plan := new(fault.Plan).Do("engine.effect.commit.before", 1, func(ctx context.Context) error {
			return r.store.Update(ctx, func(tx *store.Tx) error { return tx.Pause(ctx, "lp_w", true) })
		})
		run, err := r.engine.Run(fault.With(t.Context(), plan), r.worker(loop.TierAssisted, nil), engine.Firing{Trigger: "manual"})
		if err != nil {
			t.Fatal(err)
		}
		if run.Outcome != loop.OutcomePaused || run.Reason != loop.ReasonKillSwitch || run.Branch != "" || run.Snapshot != "refs/pawl/snapshots/w/1" {
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

func TestThePathsOfADefinitionAreSwitchesOfItsLoopOnly(t *testing.T) {
	root := t.TempDir()
	named := []string{"ops/off", filepath.Join(root, "away")}
	if got := engine.Switch(root, "w", named...); !got.IsZero() {
		t.Errorf("Switch = %q, want none", got)
	}
	if err := os.Symlink("nowhere", filepath.Join(root, "away")); err != nil {
		t.Fatal(err)
	}
	if got := engine.Switch(root, "w", named...); got.String() != named[1] || !engine.Switch(root, "other").IsZero() {
		t.Errorf("Switch = %q, want %q for this loop", got, named[1])
	}
	if err := os.WriteFile(filepath.Join(root, "ops"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := engine.Switch(root, "w", named...); !strings.HasPrefix(got.String(), "ops/off (cannot be read: ") {
		t.Errorf("Switch = %q, want that ops/off cannot be read", got)
	}
}

func TestAttack091TheLabelStopsALoopThatNamesIt(t *testing.T) {
	const on = "https://forge.example/owner/name/issues/7"
	for name, c := range map[string]struct {
		tier   loop.Tier
		text   string
		answer func(asked int64) (string, error)
		paused string // before the run starts
		ends   loop.Outcome
		note   string
	}{
		"set": {loop.TierAssisted, "the loop-pause label", func(int64) (string, error) { return on, nil }, "the label loop-pause is on " + on, "", ""},
		"set while the agent works": {
			loop.TierAssisted, "the loop-pause label",
			func(asked int64) (string, error) {
				if asked == 1 {
					return "", nil
				}
				return on, nil
			},
			"", loop.OutcomePaused, "the label loop-pause is on " + on,
		},
		"not asked below L3": {
			loop.TierReport, "the loop-pause label", func(int64) (string, error) { return "", errors.New("no network") },
			"", loop.OutcomeReported, "cannot be asked for, and does not stop this run: no network",
		},
		"not asked at L3": {
			loop.TierUnattended, "the loop-pause label", func(int64) (string, error) { return "", errors.New("no network") },
			"cannot be asked for, which counts as set at L3: no network", "", "",
		},
		"no code host at L3": {
			loop.TierUnattended, "the loop-pause label", func(int64) (string, error) { return "", engine.ErrNoCodeHost }, "", loop.OutcomeProposed, "",
		},
		"not named": {loop.TierUnattended, "stop/it", func(int64) (string, error) { return on, nil }, "", loop.OutcomeProposed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, storetest.SQLite(t))
			var asked atomic.Int64
			r.deps.LabelGap = time.Millisecond
			r.deps.Label = func(context.Context, *git.Repo) (string, error) { return c.answer(asked.Add(1)) }
			r.engine = engine.New(r.deps)
			r.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
				if c.ends == loop.OutcomePaused {
					<-ctx.Done()
					return agent.Result{}, ctx.Err()
				}
				if c.tier != loop.TierReport {
					gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
				}
				return says(t, req, `{"outcome":"done"}`)
			}
			run, err := r.engine.Run(t.Context(), r.worker(c.tier, func(d *loop.Definition) { d.KillSwitch = c.text }), engine.Firing{Trigger: "manual"})
			if f, ok := errors.AsType[*loop.Fault](err); ok != (c.paused != "") || ok && (f.Exit != loop.ExitPaused || !strings.Contains(f.Why, c.paused)) {
				t.Fatalf("Run = %v, want paused: %q", err, c.paused)
			}
			if run.Outcome != c.ends {
				t.Errorf("run = %s (%s), want %s", run.Outcome, run.Detail, c.ends)
			}
			said := []string{run.Detail}
			for _, e := range r.events {
				said = append(said, e.Text)
			}
			if !strings.Contains(strings.Join(said, "\n"), c.note) {
				t.Errorf("the run says %q, want %q", said, c.note)
			}
		})
	}
}
