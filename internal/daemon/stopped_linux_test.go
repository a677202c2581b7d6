package daemon_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/clock"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/proc"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/pgtest"
)

// suspended is a child that stopped itself at a fault point.
type suspended struct {
	*site

	cmd      *exec.Cmd
	identity proc.Identity
}

// stopAt starts a child and waits until it has stopped itself at a hit.
func (s *site) stopAt(verb, at string) *suspended {
	s.t.Helper()
	cmd := s.command(verb, "PAWL_FAULTS=1", "PAWL_FAIL_AT="+at+"=stop")
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = cmd.Process.Kill() })
	held := &suspended{s, cmd, proc.IdentityOf(cmd.Process.Pid)}
	for range 3000 {
		if proc.Stopped(held.identity) {
			return held
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatalf("the child was not stopped at %s", at)
	return nil
}

// lapse ends the leases of all live runs of the site.
func (s *site) lapse() {
	s.t.Helper()
	where := s.database
	if where == "" {
		where = filepath.Join(s.home, "pawl.db")
	}
	db, err := store.Open(s.t.Context(), store.Options{Database: where, Now: clock.System{}.Now})
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	const past = `UPDATE runs SET lease_until_ms = 1 WHERE state IN ('running', 'settling')`
	err = db.Update(s.t.Context(), func(tx *store.Tx) error {
		if pg := tx.Postgres(); pg != nil {
			_, err := pg.Exec(s.t.Context(), past)
			return err
		}
		_, err := tx.SQLite().ExecContext(s.t.Context(), past)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// resume continues the child and returns when it has ended. One that was killed
// meanwhile has ended already.
func (h *suspended) resume() {
	h.t.Helper()
	_ = h.cmd.Process.Signal(syscall.SIGCONT) // It may be dead.
	_ = h.cmd.Wait()                          // Killed, or its lease is lost.
}

// landingPoints are the hits of an undisturbed approval.
func landingPoints(t *testing.T, database string) []string {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "trace")
	if v := proposedSite(t, database).pawl("approve", "PAWL_FAULTS=1", "PAWL_FAULT_TRACE="+trace); v == nil || v.Landing != loop.EffectDone {
		t.Fatalf("an undisturbed landing = %+v, want landed", v)
	}
	points := readHits(t, trace)
	if !slices.Contains(points, "engine.effect.confirm.after:1") {
		t.Fatalf("a landing does not ask before it moves the branch: %v", points)
	}
	return points
}

// A process that was stopped past its lease (a closed lid, a Ctrl-Z) is ended by
// whoever takes its run, and moves nothing when it is continued.
func TestStoppedAtAnyPointOfLandingNothingMovesUnrecorded(t *testing.T) {
	for name, database := range map[string]func(t *testing.T) string{
		"sqlite":   func(*testing.T) string { return "" },
		"postgres": func(t *testing.T) string { t.Helper(); return pgtest.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shared := database(t)
			ended := false
			for _, at := range landingPoints(t, shared) {
				// From here on the run has ended, and each point would make recovery
				// wait for the same lock.
				if ended {
					break
				}
				ended = strings.HasPrefix(at, "projection.write.before:")
				t.Run(at, func(t *testing.T) {
					s := proposedSite(t, shared)
					old, gated := s.git("rev-parse", "main"), s.git("rev-parse", "pawl/fix/1")
					held := s.stopAt("approve", at)
					s.lapse()
					v, stderr := s.try("recover")
					if v == nil && !strings.Contains(stderr, "another process has had") {
						t.Fatalf("recovery said %q", stderr)
					}
					settled := s.git("rev-parse", "main")
					if v != nil && (settled == gated) != (v.Landing == loop.EffectDone) {
						t.Errorf("main is at %s, and the effect is %q", settled, v.Landing)
					}
					begun := at != "engine.claim.commit.before:1" // Until then it has no run to lose.
					held.resume()
					now := s.git("rev-parse", "main")
					if now != settled && begun {
						t.Errorf("main moved to %s after the run was concluded", now)
					}
					v = s.pawl("recover")
					if now != old && now != gated || (now == gated) != (v.Landing == loop.EffectDone) {
						t.Errorf("main is at %s, was at %s, and the effect is %q", now, old, v.Landing)
					}
					s.noLocks()
				})
			}
		})
	}
}

// `pawl kill` ends a process that is stopped before it says that it is done: the
// branch must not move when the process is continued.
func TestKillEndsAStoppedLandingBeforeItIsDone(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"engine.effect.apply.before:1", "engine.effect.confirm.after:1", "git.advance.ref.before:1"} {
		t.Run(at, func(t *testing.T) {
			s := proposedSite(t, "")
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
			s := proposedSite(t, "")
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
	s := newSite(t, "")
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
func (s *site) noLocks() {
	s.t.Helper()
	left, err := filepath.Glob(filepath.Join(s.root, ".git", "pawl-effects-*"))
	if err != nil || len(left) > 0 {
		s.t.Errorf("left behind: %v %v", left, err)
	}
}
