package engine_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/loop"
)

// Rows of an older version are found by these ids and keys: an id that changes makes a
// step that was settled a new one, and a key that changes repeats an effect.
func TestIDsOfStepsAndKeysOfEffectsStayAsTheyAreStored(t *testing.T) {
	r := one(t)
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		write(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
		return says(t, req, `{"outcome":"done"}`)
	}
	run := r.run(r.worker(loop.TierAssisted, nil), engine.Firing{})
	if got, want := r.step().ID, "st_e8548e3c1f84f5bc"; got != want {
		t.Errorf("the step is %s, want %s", got, want)
	}
	if got, want := r.effect(run.ID).Key, run.ID+"/pawl/w/1"; got != want {
		t.Errorf("the effect is %s, want %s", got, want)
	}
}
