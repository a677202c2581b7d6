package engine_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// Rows of an older version are found by these ids and keys: an id that changes makes a
// step that was settled a new one, and a key that changes repeats an effect.
func TestIDsOfStepsAndKeysOfEffectsStayAsTheyAreStored(t *testing.T) {
	r := one(t)
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
		return says(t, req, `{"outcome":"done"}`)
	}
	run := r.run(r.worker(loop.TierAssisted, nil), engine.Firing{})
	if got, want := r.step().ID, "st_e8548e3c1f84f5bc"; got != want {
		t.Errorf("the step is %s, want %s", got, want)
	}
	if got, want := r.effect(run.ID).Key, run.ID+"/pawl/w/1"; got != want {
		t.Errorf("the effect is %s, want %s", got, want)
	}
	want := fmt.Sprintf(`{"error":"","key":"%s/pawl/w/1","kind":"propose","result":{"commit":"%s"},"state":"done"}`, run.ID, run.Commit)
	links := r.chain("lp_w")
	i := slices.IndexFunc(links, func(l loop.Link) bool { return l.Kind == loop.LinkEffect })
	if i < 0 || links[i].Body != want {
		t.Errorf("links = %+v, want one of the effect with %s", links, want)
	}
}
