package gatecheck_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/gatecheck"
	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestWhatATryCouldNotRemoveIsSweptAndItsResultsStand(t *testing.T) {
	r := newRig(t)
	plan, err := fault.Parse("workspace.remove.before:1+=EIO")
	if err != nil {
		t.Fatal(err)
	}
	results, err := r.tries.Gates(fault.With(t.Context(), plan), r.gates("true", ""), nil)
	if err != nil || len(results) != 1 || !results[0].Pass {
		t.Errorf("try = %+v, %v", results, err)
	}
	if names := left(t, r.home); len(names) == 0 {
		t.Fatal("nothing stayed behind, so that nothing is tested")
	}
	r.untouched(func() {
		if err := r.tries.Sweep(t.Context(), r.repo); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatAPowerCutLeftOfATryIsSwept(t *testing.T) {
	for name, files := range map[string][]string{
		"a copy without its lock":     {"trees/try_x1-gate/src/a.txt"},
		"a copy that was never whole": {"trees/.try_x2-gate.new/src/a.txt"},
		"a copy that was half gone":   {"trees/.try_x3-gate.gone/a.txt", "runs/try_x3.lock"},
		"rules alone":                 {"runs/try_x4/rules-gate/.gitignore"},
		"a lock alone":                {"runs/try_x5.lock"},
		"several": {
			"trees/try_x6-gate/a", "runs/try_x6.lock", "runs/try_x7/rules-gate/.gitignore", "trees/try_x8-gate/b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			for _, f := range files {
				gittest.WriteFile(t, filepath.Join(r.home, f), "left\n")
			}
			gittest.WriteFile(t, filepath.Join(r.home, "trees/run_other-act/a.txt"), "of a run that this store does not know\n")
			gittest.WriteFile(t, filepath.Join(r.home, "trees/kept-run_z1/a.txt"), "kept for good\n")
			if err := r.tries.Sweep(t.Context(), r.repo); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff([]string{"trees/kept-run_z1", "trees/run_other-act"}, left(t, r.home)); diff != "" {
				t.Errorf("home (-want +got):\n%s", diff)
			}
		})
	}
}

// tryEnv makes this test binary a process that tries a gate that never ends,
// in the current folder, with the variable's value as its home.
const tryEnv = "PAWL_TEST_TRY"

func tryForEver(home string) int {
	ctx := context.Background()
	repo, err := git.Open(ctx, ".")
	if err == nil {
		// Not held together, so that the gate outlives this process.
		d := loop.Definition{Name: "w", Sandbox: "none", Verify: "sleep 3600 & echo started; wait"}
		_, err = tries(home, proc.Plain{}).Gates(ctx, gatecheck.Subject{Loop: "w", Repo: repo, Definition: d}, os.Stdout)
	}
	fmt.Fprintln(os.Stderr, "child:", err)
	return 1
}

func TestATryWhoseProcessIsKilledIsSweptWithWhatSurvivedIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Dir, cmd.Env = r.root, append(os.Environ(), tryEnv+"="+r.home)
	swept := make(chan error, 1)
	cmd.Stdout = &onText{text: "started", do: func() { swept <- r.tries.Sweep(t.Context(), r.repo) }}
	cmd.WaitDelay = time.Second // The gate keeps the pipe open.
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-swept:
		if err != nil {
			t.Error(err)
		}
	case err := <-ended:
		t.Fatalf("the try ended before its gate: %v", err)
	}
	alive := left(t, r.home)
	if len(alive) != 4 || !strings.HasPrefix(alive[1], "trees/try_child") || !strings.HasSuffix(alive[3], ".lock") {
		t.Errorf("a sweep left %v of a try that lives, want its copy with a record, its folder and its lock", alive)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended // It says that the process was killed.
	if now := left(t, r.home); !slices.Equal(now, alive) {
		t.Errorf("a process that was killed left %v, want %v", now, alive)
	}
	r.untouched(func() {
		if err := r.tries.Sweep(t.Context(), r.repo); err != nil {
			t.Error(err)
		}
	})
	id := fmt.Sprintf("try_child%d", cmd.Process.Pid)
	if n, err := proc.KillTagged(t.Context(), runenv.Tag(id)); n != 0 || err != nil {
		t.Errorf("%d processes of the gate had survived the sweep (%v)", n, err)
	}
}
