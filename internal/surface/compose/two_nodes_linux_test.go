package compose_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/definitions/config"
	"github.com/pawl-run/pawl/internal/record/runlog"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/test/storetest"
	"github.com/pawl-run/pawl/internal/verbs/approvals"
	"github.com/pawl-run/pawl/internal/verbs/loops"
)

// twoNodes are two hosts, each with a home and a clone of one repository, on one
// PostgreSQL. The second one sees nothing of the processes of the first.
type twoNodes struct {
	t    *testing.T
	a, b *fixture
	id   string // of the workspace
}

func newTwoNodes(t *testing.T) *twoNodes {
	t.Helper()
	a := newFixture(t, storetest.PostgreSQL(t))
	b := &fixture{t: t, root: filepath.Join(t.TempDir(), "clone"), home: newHome(t), database: a.database, host: "far"}
	if out, err := exec.CommandContext(t.Context(), "git", "clone", "-q", a.root, b.root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	a.pawl("recover") // Registers it.
	id := strings.TrimSpace(readFile(t, filepath.Join(a.root, ".git", "pawl-workspace")))
	return &twoNodes{t, a, b, id}
}

// withParts calls fn with a composition of a node that may write.
func (n *twoNodes) withParts(s *fixture, fn func(*compose.Parts) error) {
	n.t.Helper()
	settings, err := config.Load(config.Settings{Home: s.home, Database: s.database}, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	d, err := compose.New(n.t.Context(), compose.Options{Settings: settings, Log: compose.Log(nil)})
	if err != nil {
		n.t.Fatal(err)
	}
	if err := fn(d); err != nil {
		n.t.Error(err)
	}
	if err := d.Close(); err != nil {
		n.t.Error(err)
	}
}

func (n *twoNodes) join() {
	n.t.Helper()
	n.withParts(n.b, func(d *compose.Parts) error {
		_, err := d.Join(n.t.Context(), n.b.root, n.id)
		return err
	})
}

// logged are the runs in the run log of a clone, with their outcomes.
func (n *twoNodes) logged(s *fixture) string {
	n.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.root, ".loops/fix/run-log.md"))
	if err != nil && !os.IsNotExist(err) {
		n.t.Fatal(err)
	}
	lines, bad := runlog.Parse(string(text))
	if len(bad) > 0 {
		n.t.Errorf("the log of %s has bad lines %v", s.root, bad)
	}
	var runs []string
	for _, l := range lines {
		runs = append(runs, fmt.Sprintf("#%d %s", l.Run, l.Outcome))
	}
	return strings.Join(runs, ", ")
}

func (n *twoNodes) wantLogs(when, a, b string) {
	n.t.Helper()
	if gotA, gotB := n.logged(n.a), n.logged(n.b); gotA != a || gotB != b {
		n.t.Errorf("%s the logs say %q and %q, want %q and %q", when, gotA, gotB, a, b)
	}
}

func TestClonesOfTwoNodesShareNothingUnlessOneJoins(t *testing.T) {
	t.Parallel()
	n := newTwoNodes(t)
	n.a.pawl("run")
	if v := n.b.pawl("run"); v.Run.N != 1 || v.Run.Outcome != loop.OutcomeProposed {
		t.Errorf("the first run of the other clone is #%d %s", v.Run.N, v.Run.Outcome)
	}
	n.wantLogs("after a run of each", "#1 branch-proposed", "#1 branch-proposed")
}

// A proposal is a branch in the clone of its node. Elsewhere it is seen, and neither lands
// nor becomes void.
func TestAProposalIsAnsweredOnItsNode(t *testing.T) {
	t.Parallel()
	n := newTwoNodes(t)
	n.join()
	proposed(t, n.a)
	n.withParts(n.b, func(d *compose.Parts) error {
		s, err := d.Verbs(t.Context(), n.b.root)
		if err != nil {
			return err
		}
		_, err = s.Approvals.Approve(t.Context(), "fix#1", loop.Answer{By: "ann"})
		wantElsewhere(t, err, n.a.root)
		_, err = s.Runs.Diff(t.Context(), "fix#1")
		wantElsewhere(t, err, n.a.root)
		_, err = s.Approvals.Landing(t.Context(), "fix#1", approvals.LandRequest{})
		wantElsewhere(t, err, n.a.root)
		return nil
	})
	if v := n.b.pawl("run"); v.Run.Outcome != loop.OutcomeQuiet {
		t.Errorf("the run of the other node is %s, want quiet: the step is proposed", v.Run.Outcome)
	}
	if v := n.a.pawl("approve"); v.Run.Outcome != loop.OutcomeLanded {
		t.Errorf("approved on its node, the run is %s: %s", v.Run.Outcome, v.Run.Detail)
	}
}

func wantElsewhere(t *testing.T, err error, path string) {
	t.Helper()
	f, ok := errors.AsType[*loop.Fault](err)
	if !ok || f.Exit != loop.ExitHeld || !strings.Contains(f.Why, "the work of fix#1 is on node ") || !strings.Contains(f.Why, path) {
		t.Errorf("error = %v, want that the work is on the other node", err)
	}
}

// What a node that was lost leaves behind is its own: the other node frees the loop and
// works in its own clone, and writes not a line of the first.
func TestALostNodeKeepsItsWorkAndFinishesItWhenItIsBack(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]struct {
		snapshot bool   // of the work that was on no branch
		branch   string // that the lost run had made
	}{
		"engine.act.after:1":             {snapshot: true},
		"engine.conclude.commit.after:1": {snapshot: true},
		"engine.effect.apply.before:1":   {snapshot: true},
		"engine.effect.apply.after:1":    {branch: "pawl/fix/1"},
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			n := newTwoNodes(t)
			n.join()
			if v := n.a.pawl("run", "PAWL_FAULTS=1", "PAWL_CRASH_AT="+at); v != nil {
				t.Fatalf("the run was not killed: %+v", v)
			}
			n.a.lapse()
			v := n.b.pawl("run")
			if len(v.Recovered) != 1 || !strings.HasPrefix(v.Recovered[0], "fix#1 ") || v.Run.N != 2 || v.Run.Outcome != loop.OutcomeProposed {
				t.Fatalf("the other node recovers %q, and its run is #%d %s", v.Recovered, v.Run.N, v.Run.Outcome)
			}
			n.wantLogs("before the node is back", "", "#2 branch-proposed")
			if refs := n.b.git("for-each-ref", "refs/pawl"); refs != "" {
				t.Errorf("the other node has kept %s", refs)
			}
			n.verify(n.b)
			back := n.a.pawl("recover")
			if len(back.Recovered) != 1 || !strings.HasPrefix(back.Recovered[0], "fix#1 ") || back.Lost != "" {
				t.Errorf("the node that is back finishes %+v", back)
			}
			n.wantLogs("when the node is back", "#1 interrupted", "#2 branch-proposed")
			if refs := n.a.git("for-each-ref", "--format=%(refname)", "refs/pawl/snapshots"); (refs != "") != want.snapshot {
				t.Errorf("snapshots: %q", refs)
			}
			if branch := n.a.git("for-each-ref", "--format=%(refname:short)", "refs/heads/pawl"); branch != want.branch {
				t.Errorf("branches: %q, want %q", branch, want.branch)
			}
			n.a.checkRecovered(back.Recovered)
			n.a.nothingLeft()
			n.verify(n.a)
			n.verify(n.b)
			if again := n.a.pawl("recover"); len(again.Recovered) != 0 {
				t.Errorf("it is finished again: %q", again.Recovered)
			}
		})
	}
}

// verify holds that the audit of a clone is green.
func (n *twoNodes) verify(s *fixture) {
	n.t.Helper()
	if err := s.reader().Audit.VerifyChain(context.WithoutCancel(n.t.Context()), "fix"); err != nil {
		n.t.Errorf("%s: %v", s.root, err)
	}
}

func TestWhatAForgottenNodeOwesIsGivenUpAndItsCloneIsRefusedAfterwards(t *testing.T) {
	t.Parallel()
	n := newTwoNodes(t)
	n.join()
	n.a.pawl("run", "PAWL_FAULTS=1", "PAWL_CRASH_AT=engine.act.after:1")
	n.a.lapse()
	n.b.pawl("recover")
	n.withParts(n.b, func(d *compose.Parts) error {
		all, err := d.Nodes().List(t.Context())
		if err != nil {
			return err
		}
		for _, v := range all {
			if !v.Here {
				f, err := d.Nodes().Forget(t.Context(), ann, v.Name)
				if err != nil {
					return err
				}
				if len(f.Runs) != 1 || f.Runs[0].Run != "fix#1" || len(f.Workspaces) != 1 {
					t.Errorf("given up is %+v", f)
				}
			}
		}
		return nil
	})
	if _, stderr := n.a.try("recover"); !strings.Contains(stderr, "copy of another clone") {
		t.Errorf("the clone of the forgotten node: %s", stderr)
	}
	n.withParts(n.a, func(d *compose.Parts) error {
		_, err := d.Join(t.Context(), n.a.root, n.id)
		return err
	})
	if back := n.a.pawl("recover"); len(back.Recovered) != 0 {
		t.Errorf("what was given up is finished: %q", back.Recovered)
	}
	n.wantLogs("after all", "", "")
}

// The kill switch of a workspace reaches the runs of it on every node, and whoever sets it
// returns when they are at their end.
func TestAKillOnOneNodeEndsTheRunsOfAnother(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]func(*compose.Parts, *api.Workspace) (loops.Switched, error){
		"of the workspace": func(_ *compose.Parts, v *api.Workspace) (loops.Switched, error) {
			return v.Loops.Kill(t.Context(), ann, loops.All, "drill")
		},
		"everywhere": func(d *compose.Parts, _ *api.Workspace) (loops.Switched, error) {
			return d.Everywhere().Pause(t.Context(), ann, "drill")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newTwoNodes(t)
			n.join()
			const worker, long = "agent_command: ", "607.0173"
			text, _, _ := strings.Cut(fixConfig, worker)
			config := text + worker + "'echo two > src/a.txt; exec sleep " + long + "'\nsandbox: none\n"
			if err := os.WriteFile(filepath.Join(n.a.root, ".loops/fix/loop.config.yaml"), []byte(config), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := n.a.command("run")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			sleeps := func(pid int) bool {
				line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // It may have ended.
				return string(line) == "sleep\x00"+long+"\x00"
			}
			agent := -1
			for agent < 0 && t.Context().Err() == nil {
				tree := descendants(t, cmd.Process.Pid)
				if i := slices.IndexFunc(tree, sleeps); i >= 0 {
					agent = tree[i]
				}
				time.Sleep(50 * time.Millisecond)
			}
			n.withParts(n.b, func(d *compose.Parts) error {
				v, err := d.Verbs(t.Context(), n.b.root)
				if err != nil {
					return err
				}
				sw, err := kill(d, v)
				if len(sw.Stopped) != 1 || sw.Stopped[0] != "fix#1" || len(sw.Silent) > 0 {
					t.Errorf("kill = %+v", sw)
				}
				return err
			})
			if sleeps(agent) {
				t.Error("the agent lives on when the switch has returned")
			}
			v, stderr := n.a.told(cmd, cmd.Wait())
			if stderr != "" || v.Run.Outcome != loop.OutcomePaused || !v.Run.Cause.Switch.StopsAll() || v.Run.Snapshot == "" {
				t.Fatalf("the run ended as %+v %s", v, stderr)
			}
			if _, stderr := n.a.try("run"); !strings.Contains(stderr, "fix is paused: the kill switch is set: `pawl pause --") || !strings.HasSuffix(strings.TrimSpace(stderr), ": drill") {
				t.Errorf("the next run says %q", stderr)
			}
			n.wantLogs("after the kill", "", "")
		})
	}
}

// A node that does not answer is named; whoever kills does not wait for it for ever.
func TestANodeThatDoesNotAnswerAKillIsNamed(t *testing.T) {
	t.Parallel()
	n := newTwoNodes(t)
	n.join()
	if v := n.a.pawl("run", "PAWL_FAULTS=1", "PAWL_CRASH_AT=engine.act.after:1", leaseEnv+"=1s"); v != nil {
		t.Fatalf("the run was not killed: %+v", v)
	}
	_, stderr := n.b.try("kill", leaseEnv+"=1s")
	if !strings.Contains(stderr, "run fix#1 did not stop: process ") || !strings.Contains(stderr, "last heard of at 20") {
		t.Errorf("kill = %q, want that it names the silent run", stderr)
	}
}
