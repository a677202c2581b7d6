package compose_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// suspended is a child that stopped itself at a fault point.
type suspended struct {
	*fixture

	cmd      *exec.Cmd
	identity proc.Identity
	lease    time.Duration // zero: the usual one
}

// stopAt starts a child and waits until it has stopped itself at a hit.
func (s *fixture) stopAt(verb, at string) *suspended {
	s.t.Helper()
	return s.stopWith(0, verb, at)
}

// stopWith is stopAt with another lease than usual. It is nil if the child lost
// its lease before it came to the hit, because this host is so slow.
func (s *fixture) stopWith(lease time.Duration, verb, at string) *suspended {
	s.t.Helper()
	env := []string{"PAWL_FAULTS=1", "PAWL_FAIL_AT=" + at + "=stop"}
	if lease > 0 {
		env = append(env, leaseEnv+"="+lease.String())
	}
	cmd := s.command(verb, env...)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = cmd.Process.Kill() })
	held := &suspended{s, cmd, proc.IdentityOf(cmd.Process.Pid), lease}
	for range 12000 {
		if proc.Stopped(held.identity) {
			return held
		}
		if !proc.Alive(held.identity) {
			v, stderr := s.told(cmd, cmd.Wait())
			tooSlow := v != nil && (v.Run.Reason == loop.ReasonStoodStill || v.Run.Reason == loop.ReasonStoreAway)
			if lease > 0 && (tooSlow || strings.Contains(stderr, loop.ErrLeaseLost.Error())) {
				return nil
			}
			s.t.Fatalf("the child ended before it was stopped at %s: %+v %s", at, v, stderr)
		}
		time.Sleep(5 * time.Millisecond)
	}
	s.t.Fatalf("the child was not stopped at %s", at)
	return nil
}

// lapse ends the leases of all live runs of the fixture.
func (s *fixture) lapse() {
	s.t.Helper()
	s.sql(`UPDATE runs SET lease_until_ms = 1 WHERE state IN ('running', 'settling')`)
}

// resume continues the child and returns what became of it. One that was killed
// meanwhile has ended already.
func (h *suspended) resume() (*told, string) {
	h.t.Helper()
	_ = h.cmd.Process.Signal(syscall.SIGCONT) // It may be dead.
	return h.told(h.cmd, h.cmd.Wait())
}

// shortLease is how long the claims of a process last that is stopped for longer.
const shortLease = time.Second

// stopped is the kind in which a process is stopped past its lease (a closed lid,
// a Ctrl-Z) while another command does something.
func stopped(verb string, sample int, rows string, always ...string) kind {
	return kind{
		name: "stop, " + verb, lease: shortLease, sample: sample, rows: []string{rows}, only: verb != "recover", always: always,
		strike: func(h *suspended) {
			time.Sleep(h.lease + 100*time.Millisecond)
			v, stderr := h.try(verb)
			// In one of many tries it was stopped while it wrote to SQLite. Then the
			// file of the switch holds, and the store says who is in the way.
			inTheWay := verb == "kill" && strings.Contains(stderr, "SQLITE_BUSY")
			if v == nil && !inTheWay && !strings.Contains(stderr, "another process has had") {
				h.t.Errorf("%s said %q", verb, stderr)
			}
		},
		check: func(s *fixture, v *told, stderr string) {
			if v == nil && stderr != "" && !slices.ContainsFunc([]string{"lease lost", "kill switch", "paused", "it became void"}, func(why string) bool { return strings.Contains(stderr, why) }) {
				s.t.Errorf("the process that was stopped said %q", stderr)
			}
		},
		// A process that is stopped while it writes files has the lock of the loop's
		// files, for which each other command waits in vain. One such point is enough.
		skips: func(at string) bool { return strings.HasPrefix(at, "projection.") && at != "projection.write.before:1" },
	}
}

// Who was stopped past its lease is ended by whoever takes its run, and moves
// nothing when it is continued.
func TestStoppedPastItsLeaseAtAnyPointNothingMovesUnrecorded(t *testing.T) {
	sweep(t,
		stopped("recover", 0, "run", "engine.effect.confirm.after:1", "git.advance.ref.before:1"),
		stopped("run", 0, "landing", "engine.effect.confirm.after:1"),
		stopped("kill", 0, "boot", "engine.effect.confirm.after:1", "git.advance.ref.after:2"),
	)
}

// whole holds that a process which nobody took anything from did its work.
func whole(s *fixture, v *told, stderr string) {
	if v == nil || !isDone(v) {
		s.t.Errorf("the process came to %+v %s, want it done", v, stderr)
	}
	s.checkDurations(v)
}

// What people do to their repository while a run is under way takes nothing from
// the run: no object that it still needs goes without a ref.
func TestObjectsCollectedAtAnyPointLoseNothing(t *testing.T) {
	sweep(t, kind{name: "gc", sample: 1, strike: func(h *suspended) {
		h.collectGarbage()
		h.collected = true
	}, check: whole})
}

// A wall clock that is set while a process works takes no run from it, makes no
// duration wrong and breaks no chain.
func TestAClockThatIsSetAtAnyPointChangesNothingButTimes(t *testing.T) {
	set := func(name string, by time.Duration, rows string) kind {
		return kind{name: name, sample: 1, rows: []string{rows}, only: true, strike: func(h *suspended) { h.setClock(by) }, check: whole}
	}
	sweep(t, set("clock +2h", 2*time.Hour, "run"), set("clock -2h", -2*time.Hour, "landing"))
}

// `pawl kill` ends a process that is stopped before it says that it is done: the
// branch must not move when the process is continued.
func TestKillEndsAStoppedLandingBeforeItIsDone(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"engine.effect.apply.before:1", "engine.effect.confirm.after:1", "git.advance.ref.before:1"} {
		t.Run(at, func(t *testing.T) {
			s := proposedFixture(t, "")
			old := s.git("rev-parse", "main")
			held := s.stopAt("approve", at)
			s.pawl("kill")
			held.resume()
			if now := s.git("rev-parse", "main"); now != old {
				t.Errorf("main moved to %s past the kill switch", now)
			}
			s.noLocks()
		})
	}
}

// A switch that was set while the process was stopped is seen when it goes on.
func TestALandingThatWasStoppedAsksForTheSwitchAgain(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"engine.effect.apply.before:1", "git.advance.journal.after:1", "git.advance.ref.before:1"} {
		t.Run(at, func(t *testing.T) {
			s := proposedFixture(t, "")
			old := s.git("rev-parse", "main")
			held := s.stopAt("approve", at)
			if err := os.WriteFile(filepath.Join(s.root, ".loops/fix/PAUSED"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			held.resume()
			if now := s.git("rev-parse", "main"); now != old {
				t.Errorf("main moved to %s past the kill switch", now)
			}
			if v := s.pawl("recover"); v.Landing != loop.EffectRefused || len(v.Recovered) != 0 {
				t.Errorf("the effect is %q and recovery found %v, want it refused and the run concluded", v.Landing, v.Recovered)
			}
		})
	}
}

// A process that runs keeps its run however old its lease is: this host may be
// slow, or its clock may have jumped.
func TestARunningHolderOfThisHostKeepsItsRunPastItsLease(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "")
	cmd := s.command("run", "PAWL_FAULTS=1", "PAWL_FAIL_AT=engine.act.after=stall")
	trace := filepath.Join(t.TempDir(), "trace")
	cmd.Env = append(cmd.Env, "PAWL_FAULT_TRACE="+trace)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	for traced := ""; !strings.Contains(traced, "engine.act.after"); time.Sleep(10 * time.Millisecond) {
		text, _ := os.ReadFile(trace) // It is there once the first point was hit.
		traced = string(text)
	}
	s.lapse()
	if v := s.pawl("recover"); len(v.Recovered) != 0 {
		t.Errorf("the run was taken from a process that runs: %v", v.Recovered)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if v := s.pawl("recover"); len(v.Recovered) != 1 {
		t.Errorf("after it died recovery found %v", v.Recovered)
	}
	s.nothingLeft()
}

// noLocks finds locks of effects whose run has ended.
func (s *fixture) noLocks() {
	s.t.Helper()
	left, err := filepath.Glob(filepath.Join(s.root, ".git", "pawl-effects-*"))
	if err != nil || len(left) > 0 {
		s.t.Errorf("left behind: %v %v", left, err)
	}
}
