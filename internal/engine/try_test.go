package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/gate"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/proc"
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

// untouched holds that do changes nothing in checkout, repository and store,
// and leaves nothing in the home.
func (r *rig) untouched(do func()) {
	r.t.Helper()
	look := func() string {
		return runGit(r.t, r.root, "status", "--porcelain", "--untracked-files=all", "--ignored") + "\n" +
			runGit(r.t, r.root, "for-each-ref") + "\n" + runGit(r.t, r.root, "worktree", "list") + "\n" +
			read(r.t, filepath.Join(r.root, ".git/index")) + fmt.Sprintf("\n%d commits", r.store.Commits())
	}
	before := look()
	do()
	if diff := cmp.Diff(before, look()); diff != "" {
		r.t.Errorf("checkout, repository or store changed (-before +after):\n%s", diff)
	}
	if names := left(r.t, r.home); len(names) > 0 {
		r.t.Errorf("left behind: %v", names)
	}
}

func TestATryTellsWhatEachGateSaysOfTheBase(t *testing.T) {
	type verdict struct {
		Name     string
		Pass     bool
		Exit     int
		Missing  bool
		Evidence string
	}
	for name, c := range map[string]struct {
		verify, guard string
		want          []verdict
	}{
		"both pass": {
			"cat src/a.txt", "cat README.md",
			[]verdict{{"verify", true, 0, false, "one"}, {"guard", true, 0, false, "hello"}},
		},
		"verify is red, and the guard is tried all the same": {
			"echo a.txt lacks three; exit 7", "echo fine",
			[]verdict{{"verify", false, 7, false, "a.txt lacks three"}, {"guard", true, 0, false, "fine"}},
		},
		"both are red": {"exit 1", "exit 2", []verdict{{"verify", false, 1, false, ""}, {"guard", false, 2, false, ""}}},
		"a program that is not there": {
			"exec 2>/dev/null; no-such-program-anywhere", "exec 2>/dev/null; /",
			[]verdict{{"verify", false, 127, true, ""}, {"guard", false, 126, true, ""}},
		},
		"only a guard": {"", "true", []verdict{{"guard", true, 0, false, ""}}},
		"no gate":      {"", "", nil},
		"what verify wrote is not there for the guard": {
			"echo junk >src/a.txt; mkdir -p deep/er; : >deep/er/b; rm README.md", "cat src/a.txt README.md; test ! -e deep",
			[]verdict{{"verify", true, 0, false, ""}, {"guard", true, 0, false, "one\nhello"}},
		},
		"a guard that writes changes nothing": {
			"true", "echo junk | tee src/a.txt src/b.txt",
			[]verdict{{"verify", true, 0, false, ""}, {"guard", true, 0, false, "junk"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := trier(t)
			r.untouched(func() {
				results, err := r.engine.TryGates(t.Context(), r.gates(c.verify, c.guard), nil)
				var got []verdict
				for _, g := range results {
					got = append(got, verdict{g.Name, g.Pass, g.Exit, gate.Missing(g), g.Evidence})
					if g.Took <= 0 || g.Kind != "command" {
						t.Errorf("result = %+v, want a command that took time", g)
					}
				}
				if err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("verdicts (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A gate that passes for one of them and not for the other would make a try
// worth nothing.
func TestAGateOfATrySeesWhatAGateOfARunSees(t *testing.T) {
	r := trier(t)
	r.deps.Environ = append(slices.Clone(os.Environ()), "ALLOWED=yes", "SECRET=s3cret")
	r.engine = engine.New(r.deps)
	write(t, filepath.Join(r.root, "src/uncommitted.txt"), "not in the base\n")
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
		want := strings.ReplaceAll(its[0].Gates[i].Evidence, run.ID, id)
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

func TestATryTakesTheTipOfTheDefinitionsBase(t *testing.T) {
	r := trier(t)
	runGit(t, r.root, "checkout", "-qb", "release")
	write(t, filepath.Join(r.root, "src/a.txt"), "released\n")
	runGit(t, r.root, "commit", "-qam", "release")
	runGit(t, r.root, "checkout", "-q", "main")
	for base, want := range map[string]string{"": "one", "main": "one", "release": "released"} {
		target := r.gates("cat src/a.txt", "")
		target.Definition.Base = base
		results, err := r.engine.TryGates(t.Context(), target, nil)
		if err != nil || len(results) != 1 || results[0].Evidence != want {
			t.Errorf("on %q: %+v, %v, want %s", base, results, err, want)
		}
	}
	r.untouched(func() {
		target := r.gates("true", "true")
		target.Definition.Base = "mian"
		results, err := r.engine.TryGates(t.Context(), target, nil)
		f, ok := errors.AsType[*loop.Fault](err)
		if !ok || f.Exit != loop.ExitNotFound || !strings.Contains(f.What, `no branch "mian"`) || !strings.Contains(f.Fix, "main") || results != nil {
			t.Errorf("try = %v, %v, want the fault that names the branch and those that there are", results, err)
		}
	})
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

func TestAGateThatIsTooSlowForARunIsTooSlowForATry(t *testing.T) {
	t.Parallel()
	r := trier(t)
	target := r.gates("echo started; trap '' TERM; while :; do sleep 1; done", "true")
	target.Definition.MaxWallClock = time.Second
	r.untouched(func() {
		results, err := r.engine.TryGates(t.Context(), target, nil)
		if err != nil || len(results) != 2 {
			t.Fatalf("try = %+v, %v", results, err)
		}
		if g := results[0]; g.Pass || g.Exit != 124 || gate.Missing(g) || !strings.Contains(g.Evidence, "started\n(stopped after ") {
			t.Errorf("verify = %+v, want it stopped", g)
		}
		if !results[1].Pass {
			t.Errorf("guard = %+v", results[1])
		}
	})
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

func TestATryThatIsCanceledLeavesNothing(t *testing.T) {
	lost := errors.New("somebody pressed a key")
	const hangs = "touch junk; echo started; sleep 60"
	for name, c := range map[string]struct {
		verify, guard string
		ended         int
	}{
		"in verify": {hangs, "true", 0},
		"in guard":  {"true", hangs, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := trier(t)
			r.untouched(func() {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				began := time.Now()
				results, err := r.engine.TryGates(ctx, r.gates(c.verify, c.guard), &onText{text: "started", do: func() { cancel(lost) }})
				if !errors.Is(err, lost) || !strings.Contains(err.Error(), "try the gates of w") || len(results) != c.ended {
					t.Errorf("try = %+v, %v, want the cause and %d results", results, err, c.ended)
				}
				if took := time.Since(began); took > 20*time.Second {
					t.Errorf("it took %v to stop", took)
				}
			})
		})
	}
	t.Run("before it starts", func(t *testing.T) {
		t.Parallel()
		r := trier(t)
		r.untouched(func() {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if results, err := r.engine.TryGates(ctx, r.gates("true", ""), nil); err == nil || results != nil {
				t.Errorf("try = %+v, %v", results, err)
			}
		})
	})
}

func TestASwitchThatIsSetKeepsNobodyFromTrying(t *testing.T) {
	r := trier(t)
	write(t, filepath.Join(r.root, ".loops/PAUSED"), "")
	if results, err := r.engine.TryGates(t.Context(), r.gates("true", ""), nil); err != nil || len(results) != 1 || !results[0].Pass {
		t.Errorf("try = %+v, %v", results, err)
	}
}
