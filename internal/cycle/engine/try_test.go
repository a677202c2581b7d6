package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// trier is a rig whose engine holds process trees together, as in the product.
func trier(t *testing.T) *rig {
	t.Helper()
	r := one(t)
	r.deps.Exec = proc.Tree{}
	r.engine = engine.New(r.deps)
	return r
}

func (r *rig) gates(verify, guard string) engine.Target {
	return r.worker(loop.TierAssisted, func(d *loop.Definition) {
		d.Verify, d.Guard, d.MaxWallClock = verify, guard, 40*time.Second
	})
}

// left lists what an engine has in a home.
func left(t *testing.T, home string) (names []string) {
	t.Helper()
	for _, dir := range []string{"trees", "runs"} {
		entries, err := os.ReadDir(filepath.Join(home, dir))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, dir+"/"+e.Name())
		}
	}
	return names
}

// A gate that passes for one of them and not for the other would make a try
// worth nothing.
func TestAGateOfATrySeesWhatAGateOfARunSees(t *testing.T) {
	r := trier(t)
	r.deps.Environ = append(slices.Clone(os.Environ()), "ALLOWED=yes", "SECRET=s3cret")
	r.engine = engine.New(r.deps)
	gittest.WriteFile(t, filepath.Join(r.root, "src/uncommitted.txt"), "not in the base\n")
	target := r.gates("env | grep -v -e ^_= -e ^PAWL_STEP= | sort; test -n \"$PAWL_STEP\" || echo no step; ls -lR | tail -n +2 | sed 's/ [0-9:]* / /g'", "git rev-parse --show-toplevel 2>&1; ls -a; cat src/a.txt")
	target.Definition.Env = []string{"ALLOWED"}
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		return says(t, req, `{"outcome":"done","no_change":true}`)
	}
	run := r.run(target, engine.Firing{})
	its := r.iterations(run.ID)
	if len(its) != 1 || len(its[0].Gates) != 2 {
		t.Fatalf("run = %s %q, want one iteration with two gates", run.Outcome, run.Detail)
	}
	var printed strings.Builder
	results, err := r.engine.TryGates(t.Context(), target, &printed)
	if err != nil || len(results) != 2 {
		t.Fatalf("try = %+v, %v", results, err)
	}
	id := ""
	for line := range strings.Lines(results[0].Evidence) {
		if v, ok := strings.CutPrefix(line, "PAWL_RUN="); ok {
			id = strings.TrimSpace(v)
		}
	}
	if !strings.HasPrefix(id, "try_") {
		t.Fatalf("the try is %q", id)
	}
	for i, g := range results {
		// The tree is that of the base, where the run had its gates tried.
		want := strings.NewReplacer(run.ID+"-base", id+map[string]string{"verify": "-gate", "guard": "-guard"}[g.Name], run.ID, id).Replace(its[0].Gates[i].Evidence)
		if diff := cmp.Diff(want, g.Evidence); diff != "" {
			t.Errorf("%s sees (-run +try):\n%s", g.Name, diff)
		}
		if !strings.Contains(printed.String(), g.Evidence) {
			t.Errorf("%q was not printed: %q", g.Evidence, printed.String())
		}
	}
	for text, there := range map[string]bool{"ALLOWED=yes": true, "SECRET": false, "PAWL_LOOP=w\n": true, "PAWL_ITERATION=1\n": true, "uncommitted": false} {
		if strings.Contains(printed.String(), text) != there {
			t.Errorf("%q was printed: %v, want %v", text, !there, there)
		}
	}
}

func TestATryNeedsNoStore(t *testing.T) {
	r := trier(t)
	deps := r.deps
	deps.Store, deps.Home = nil, filepath.Join(t.TempDir(), "none", "yet")
	results, err := engine.New(deps).TryGates(t.Context(), r.gates("true", "true"), nil)
	if err != nil || len(results) != 2 {
		t.Errorf("try = %+v, %v", results, err)
	}
	if names := left(t, deps.Home); len(names) > 0 {
		t.Errorf("left behind: %v", names)
	}
}

// onText calls do when the text was printed.
type onText struct {
	text string
	do   func()

	all strings.Builder
}

func (o *onText) Write(p []byte) (int, error) {
	before := strings.Contains(o.all.String(), o.text)
	o.all.Write(p)
	if !before && strings.Contains(o.all.String(), o.text) {
		o.do()
	}
	return len(p), nil
}

func TestASwitchThatIsSetKeepsNobodyFromTrying(t *testing.T) {
	r := trier(t)
	gittest.WriteFile(t, filepath.Join(r.root, ".loops/PAUSED"), "")
	if results, err := r.engine.TryGates(t.Context(), r.gates("true", ""), nil); err != nil || len(results) != 1 || !results[0].Pass {
		t.Errorf("try = %+v, %v", results, err)
	}
}
