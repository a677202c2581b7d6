package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// meet is a gate that prints "met" when n gates have come to it, goes on when
// the file swept is there, and then passes if its copy is intact.
func meet(dir string, n int) string {
	return fmt.Sprintf(`cd . && : >'%[1]s'/"$PAWL_RUN" && until [ $(ls '%[1]s' | wc -l) -ge %[2]d ]; do sleep 0.01; done; echo met
until [ -e '%[1]s.swept' ]; do sleep 0.01; done; grep -q one src/a.txt && test -e README.md && pwd`, dir, n)
}

func TestTriesAndARunAndASweepAtOnceDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	r := trier(t)
	dir := filepath.Join(t.TempDir(), "met")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	target := r.gates(meet(dir, 3), "")
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		return says(t, req, `{"outcome":"done","no_change":true}`)
	}
	sweep := &onText{text: "met", do: func() {
		// Another process that shares the home.
		if err := engine.New(r.deps).Sweep(t.Context(), r.repo); err != nil {
			t.Error(err)
		}
		gittest.WriteFile(t, dir+".swept", "")
	}}
	var all sync.WaitGroup
	var mu sync.Mutex
	var dirs []string
	for _, out := range []*onText{sweep, {text: "met", do: func() {}}} {
		all.Go(func() {
			results, err := r.engine.TryGates(t.Context(), target, out)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || len(results) != 1 || !results[0].Pass {
				t.Errorf("try = %+v, %v", results, err)
				return
			}
			dirs = append(dirs, results[0].Evidence)
		})
	}
	run := r.run(target, engine.Firing{})
	all.Wait()
	if run.Outcome != loop.OutcomeDone || run.N != 1 {
		t.Errorf("run = #%d %s %q", run.N, run.Outcome, run.Detail)
	}
	if len(dirs) != 2 || dirs[0] == dirs[1] {
		t.Errorf("the tries worked in %q, want copies of their own", dirs)
	}
	if names := left(t, r.home); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
}
