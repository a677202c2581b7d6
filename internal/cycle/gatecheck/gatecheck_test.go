package gatecheck_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

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
			r := newRig(t)
			r.untouched(func() {
				results, err := r.tries.Gates(t.Context(), r.gates(c.verify, c.guard), nil)
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

func TestATryAsksNoReviewer(t *testing.T) {
	r := newRig(t)
	of := r.gates("true", "")
	of.Definition.Gates = []loop.Gate{{Name: "good", Kind: loop.GateReviewer, Check: "It is good."}}
	if results, err := r.tries.Gates(t.Context(), of, nil); err != nil || len(results) != 1 || results[0].Name != "verify" {
		t.Errorf("results = %+v, %v; want only that of verify", results, err)
	}
}

func TestATryTakesTheTipOfTheDefinitionsBase(t *testing.T) {
	r := newRig(t)
	gittest.Run(t, r.root, "checkout", "-qb", "release")
	gittest.WriteFile(t, filepath.Join(r.root, "src/a.txt"), "released\n")
	gittest.Run(t, r.root, "commit", "-qam", "release")
	gittest.Run(t, r.root, "checkout", "-q", "main")
	for base, want := range map[string]string{"": "one", "main": "one", "release": "released"} {
		target := r.gates("cat src/a.txt", "")
		target.Definition.Base = base
		results, err := r.tries.Gates(t.Context(), target, nil)
		if err != nil || len(results) != 1 || results[0].Evidence != want {
			t.Errorf("on %q: %+v, %v, want %s", base, results, err, want)
		}
	}
	r.untouched(func() {
		target := r.gates("true", "true")
		target.Definition.Base = "mian"
		results, err := r.tries.Gates(t.Context(), target, nil)
		f, ok := errors.AsType[*loop.Fault](err)
		if !ok || f.Exit != loop.ExitNotFound || !strings.Contains(f.What, `no branch "mian"`) || !strings.Contains(f.Advice().String(), "main") || results != nil {
			t.Errorf("try = %v, %v, want the fault that names the branch and those that there are", results, err)
		}
	})
}

func TestAGateThatIsTooSlowForARunIsTooSlowForATry(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	target := r.gates("echo started; trap '' TERM; while :; do sleep 1; done", "true")
	r.untouched(func() {
		// A machine that is too slow for the guard, or for the first line of
		// verify, gets longer.
		for target.Definition.MaxWallClock = time.Second; ; target.Definition.MaxWallClock *= 2 {
			results, err := r.tries.Gates(t.Context(), target, nil)
			if err != nil || len(results) != 2 {
				t.Fatalf("try = %+v, %v", results, err)
			}
			g := results[0]
			if g.Pass || g.Exit != 124 || gate.Missing(g) || !strings.Contains(g.Evidence, "(stopped after ") {
				t.Fatalf("verify = %+v, want it stopped", g)
			}
			if strings.Contains(g.Evidence, "started\n(stopped after ") && results[1].Pass {
				return
			}
		}
	})
}

func TestATryThatIsCanceledLeavesNothing(t *testing.T) {
	lost := errors.New("somebody pressed a key")
	const hangs = "touch junk; echo started; sleep 3600"
	for name, c := range map[string]struct {
		verify, guard string
		ended         int
	}{
		"in verify": {hangs, "true", 0},
		"in guard":  {"true", hangs, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.untouched(func() {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				results, err := r.tries.Gates(ctx, r.gates(c.verify, c.guard), &onText{text: "started", do: func() { cancel(lost) }})
				if !errors.Is(err, lost) || !strings.Contains(err.Error(), "try the gates of w") || len(results) != c.ended {
					t.Errorf("try = %+v, %v, want the cause and %d results", results, err, c.ended)
				}
			})
		})
	}
	t.Run("before it starts", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.untouched(func() {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if results, err := r.tries.Gates(ctx, r.gates("true", ""), nil); err == nil || results != nil {
				t.Errorf("try = %+v, %v", results, err)
			}
		})
	})
}

func TestACommandIsAskedOnTheBaseAndLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		command, text string
		exit          int
	}{
		"it reads the base":   {"cat src/a.txt", "one", 0},
		"it fails":            {"echo no >&2; exit 3", "no", 3},
		"it is not there":     {"exec 2>/dev/null; no-such-program-anywhere", "", 127},
		"it writes":           {"echo junk >src/a.txt; cat src/a.txt", "junk", 0},
		"it is not told much": {`echo "$PAWL_LOOP ${PAWL_PROMPT-none}"`, "w none", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.untouched(func() {
				a, err := r.tries.Ask(t.Context(), r.gates("", ""), c.command)
				if err != nil || a.Text != c.text || a.Exit != c.exit {
					t.Errorf("it says %q with %d, %v, want %q with %d", a.Text, a.Exit, err, c.text, c.exit)
				}
			})
		})
	}
}
