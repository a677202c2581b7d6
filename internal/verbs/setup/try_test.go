package setup_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/setup"
)

func TestTheGatesOfALoopAreTriedWithoutARun(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("bare", "true", "tier", "L1", "verify", "", "guard", "")
	r.DefineLoop("broken", "nope-1", "agent", "", "agent_command", "", "verify", "exec 2>/dev/null; nope-2", "guard", "cat README.md")
	r.DefineLoop("good", "true", "verify", "grep -q one src/a.txt", "guard", "echo checked; : >junk")
	r.RecordMet("u")
	for name, c := range map[string]struct {
		loop string
		want []setup.GateTry
		out  string
	}{
		"both pass": {"good", []setup.GateTry{
			{Gate: runs.Gate{Name: "verify", Kind: "command", Pass: true}},
			{Gate: runs.Gate{Name: "guard", Kind: "command", Pass: true, Evidence: "checked"}},
		}, "checked\n"},
		"no program, no agent": {"broken", []setup.GateTry{
			{Gate: runs.Gate{Name: "verify", Kind: "command", Exit: 127}, Missing: true, Obstacle: "its program cannot be run (exit status 127)", Fix: "install it, or correct verify"},
			{Gate: runs.Gate{Name: "guard", Kind: "command", Pass: true, Evidence: "hello"}},
		}, "hello\n"},
		"no gate":             {"bare", []setup.GateTry{}, ""},
		"a loop of the store": {"u", []setup.GateTry{{Gate: runs.Gate{Name: "verify", Kind: "command", Pass: true}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			status, commits := gittest.Run(t, r.Root, "status", "--porcelain", "--untracked-files=all"), r.Store.Commits()
			var out strings.Builder
			got, err := r.Setup.TryGates(t.Context(), c.loop, &out)
			if err != nil || out.String() != c.out {
				t.Errorf("printed %q, %v, want %q", out.String(), err, c.out)
			}
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(runs.Gate{}, "MS")); diff != "" {
				t.Errorf("gates (-want +got):\n%s", diff)
			}
			for _, g := range got {
				want := "evidence exit kind missing ms name pass"
				if g.Obstacle != "" {
					want = "evidence exit fix kind missing ms name obstacle pass"
				}
				if keys := verbtest.KeysOf(verbtest.JSONObject(t, g)); g.MS <= 0 || keys != want {
					t.Errorf("%s took %v ms, has the keys %s", g.Name, g.MS, keys)
				}
			}
			if now := gittest.Run(t, r.Root, "status", "--porcelain", "--untracked-files=all"); now != status || r.Store.Commits() != commits {
				t.Errorf("%d commits to the store, checkout:\n%s", r.Store.Commits()-commits, now)
			}
		})
	}
	if rows, err := r.Loops.List(t.Context()); err != nil || rows[0].LastN+rows[1].LastN+rows[2].LastN != 0 {
		t.Errorf("a try got a number: %+v, %v", rows, err)
	}
}

func TestGatesThatCannotBeTriedAreRefused(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("astray", "true", "base", "mian")
	r.DefineLoop("wrong", "true", "tier", "L9")
	for name, c := range map[string]struct {
		loop           string
		exit           int
		what, why, fix string
	}{
		"an unknown loop":            {"nobody", loop.ExitNotFound, `"nobody"`, "", "there are: astray, wrong"},
		"a branch that is not there": {"astray", loop.ExitNotFound, `there is no branch "mian"`, "", "use one of: main"},
		"a definition with an error": {"wrong", loop.ExitNotReady, "wrong is not ready to run", "must be L1, L2 or L3", "correct .loops/wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := r.Setup.TryGates(t.Context(), c.loop, nil)
			verbtest.WantFault(t, err, c.exit, c.what, c.why, c.fix)
			if len(got) > 0 {
				t.Errorf("gates = %+v", got)
			}
		})
	}
	if _, err := r.WithoutStore().Setup.TryGates(t.Context(), "astray", nil); err == nil || !strings.Contains(err.Error(), "only reads") {
		t.Errorf("without an engine = %v", err)
	}
}

func TestATryOfGatesThatIsCanceledSaysWhatItKnows(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("slow", "true", "guard", "echo started; sleep 60")
	lost := errors.New("somebody pressed a key")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	got, err := r.Setup.TryGates(ctx, "slow", writerFunc(func(p []byte) (int, error) { cancel(lost); return len(p), nil }))
	if !errors.Is(err, lost) || len(got) != 1 || got[0].Name != "verify" || !got[0].Pass {
		t.Errorf("gates = %+v, %v", got, err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
