package compose_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// startDetached starts a child whose agent, with a daemon in a session of its own,
// sleeps for longer than any test, and waits until both are at work.
func (s *fixture) startDetached(lease time.Duration, sleep string) (*suspended, []proc.Identity) {
	s.t.Helper()
	path := filepath.Join(s.root, ".loops/fix/loop.config.yaml")
	text := strings.Replace(readFile(s.t, path), "agent_command: '", "agent_command: 'echo half > src/a.txt; (setsid sleep "+sleep+" &); sleep "+sleep+"; ", 1)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
	s.git("commit", "-aqm", "an agent that never ends")
	cmd := s.command("run", leaseEnv+"="+lease.String())
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = cmd.Process.Kill() })
	for range 6000 {
		if sleeps := s.sleepsBelow(cmd, sleep); len(sleeps) == 2 {
			return &suspended{s, cmd, proc.IdentityOf(cmd.Process.Pid), lease}, sleeps
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatal("the agent does not work")
	return nil, nil
}

func (s *fixture) sleepsBelow(cmd *exec.Cmd, sleep string) (found []proc.Identity) {
	for _, pid := range descendants(s.t, cmd.Process.Pid) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // It may have ended.
		if string(line) == "sleep\x00"+sleep+"\x00" {
			found = append(found, proc.IdentityOf(pid))
		}
	}
	return found
}

// stopUntilGone stops the child and waits until the guard has ended its programs.
func (h *suspended) stopUntilGone(programs []proc.Identity) {
	h.t.Helper()
	if err := h.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		h.t.Fatal(err)
	}
	for range 6000 {
		living := 0
		for _, id := range programs {
			if proc.Alive(id) {
				living++
			}
		}
		if living == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	h.t.Fatal("its programs live on")
}

// A process that is stopped past its lease has no programs any more, and when it goes on
// its run ends with the reason.
func TestAStoppedProcessLosesItsProgramsWithItsLease(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "")
	held, programs := s.startDetached(3*time.Second, "300.8171")
	before := s.git("rev-parse", "main")
	held.stopUntilGone(programs)
	v, stderr := held.resume()
	if v == nil || v.Run.Outcome != loop.OutcomeInterrupted || v.Run.Reason != loop.ReasonStoodStill || v.Run.Snapshot == "" {
		t.Fatalf("it came to %+v %s, want an interrupted run with its work kept", v, stderr)
	}
	if now := s.git("rev-parse", "main"); now != before {
		t.Errorf("main moved to %s", now)
	}
	s.nothingLeft()
}

// When another node takes the run, no program of the stopped one is at work any more. The
// stopped one moves nothing when it goes on.
func TestWhenAnotherNodeTakesARunItsProgramsAreGone(t *testing.T) {
	t.Parallel()
	n := newTwoNodes(t)
	n.join()
	held, programs := n.a.startDetached(3*time.Second, "300.8172")
	before := n.a.git("rev-parse", "main")
	held.stopUntilGone(programs)
	var taken []string
	for range 600 {
		if taken = n.b.pawl("recover").Recovered; len(taken) > 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if len(taken) != 1 || !strings.HasPrefix(taken[0], "fix#1 ") || !strings.Contains(taken[0], " interrupted ") {
		t.Errorf("the other node has taken %q", taken)
	}
	if v, stderr := held.resume(); v != nil || !strings.Contains(stderr, "lost its lease") {
		t.Errorf("the stopped process came to %+v %s, want a lost lease", v, stderr)
	}
	if now := n.a.git("rev-parse", "main"); now != before {
		t.Errorf("main moved to %s", now)
	}
}
