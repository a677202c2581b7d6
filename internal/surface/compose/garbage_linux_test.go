package compose_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// collectGarbage removes every object of the repository that no ref leads to, as
// people do who want their disk back.
func (s *fixture) collectGarbage() {
	s.t.Helper()
	s.git("gc", "--quiet", "--prune=now")
}

// checkLanded holds that an approval of the fixture's first run lands it.
func (s *fixture) checkLanded() {
	s.t.Helper()
	gated := s.git("rev-parse", "pawl/fix/1")
	if v := s.pawl("approve"); v.Run.Outcome != loop.OutcomeLanded || v.Landing != loop.EffectDone {
		s.t.Errorf("approved = %s %q", v.Run.Outcome, v.Run.Detail)
	}
	if tip := s.git("rev-parse", "main"); tip != gated {
		s.t.Errorf("main is at %s, want what the gates saw: %s", tip, gated)
	}
	s.nothingLeft()
}

// A candidate has a ref from the moment it is written until its run has ended.
func TestGarbageCollectedDuringARunTakesNothingFromIt(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"engine.gather.candidate.after:2", "engine.verify.gates.after:2", "engine.effect.confirm.after:1"} {
		t.Run(at, func(t *testing.T) {
			s := newFixture(t, "")
			held := s.stopAt("run", at)
			s.collectGarbage()
			held.resume()
			s.checkLanded()
		})
	}
}

func TestGarbageCollectedAfterACrashTakesNothingFromTheRun(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "")
	s.pawl("run", "PAWL_FAULTS=1", "PAWL_CRASH_AT=engine.effect.apply.before:1")
	s.collectGarbage()
	if v := s.pawl("recover"); !slices.Equal(v.Recovered, []string{"fix#1 effect proposed "}) {
		t.Fatalf("recovered %q, want the proposal", v.Recovered)
	}
	s.checkLanded()
}

// Without its candidate a run falls back to a snapshot of its copy, and without
// both it is concluded with neither. Each time it says so, and the loop runs again.
func TestARunWhoseCandidateIsGoneIsConcludedWithWhatIsLeft(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(t *testing.T, s *fixture)
		said   string
		kept   bool // in a snapshot
	}{
		"its copy is there": {func(*testing.T, *fixture) {}, "the copy that it was taken from is kept instead", true},
		"its copy is gone": {
			func(t *testing.T, s *fixture) { t.Helper(); s.everyTree(t, os.RemoveAll) },
			"what was done only there is lost", false,
		},
		"its copy is a file": {
			func(t *testing.T, s *fixture) {
				t.Helper()
				s.everyTree(t, func(dir string) error {
					if err := os.RemoveAll(dir); err != nil {
						return err
					}
					return os.WriteFile(dir, []byte("not a copy\n"), 0o600)
				})
			},
			"its files are kept as they lie in ", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, "")
			s.pawl("run", "PAWL_FAULTS=1", "PAWL_CRASH_AT=engine.effect.apply.before:1")
			for ref := range strings.FieldsSeq(s.git("for-each-ref", "--format=%(refname)", "refs/pawl")) {
				s.git("update-ref", "-d", ref)
			}
			s.collectGarbage()
			c.damage(t, s)
			v := s.pawl("recover")
			if len(v.Recovered) != 1 || !strings.HasPrefix(v.Recovered[0], "fix#1 effect failed ") || !strings.Contains(v.Lost, c.said) {
				t.Fatalf("recovered %q, lost %q, want %q", v.Recovered, v.Lost, c.said)
			}
			if c.kept {
				s.checkRecovered(v.Recovered)
			} else if !strings.HasSuffix(v.Recovered[0], " ") {
				t.Errorf("recovered %q, want no snapshot", v.Recovered)
			}
			if v := s.pawl("recover"); len(v.Recovered) > 0 {
				t.Errorf("a second recovery found %v", v.Recovered)
			}
			if v := s.pawl("run"); v.Run.N != 2 || v.Run.Outcome != loop.OutcomeProposed {
				t.Errorf("the next run is #%d %s %q", v.Run.N, v.Run.Outcome, v.Run.Detail)
			}
			s.nothingLeft()
		})
	}
}

// What cannot be taken up is never a reason to leave the run as it is.
func TestARunWhoseCopyCannotBeReadIsConcludedAndSaysWhereItLies(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "")
	s.pawl("run", "PAWL_FAULTS=1", "PAWL_CRASH_AT=engine.act.after:2")
	s.everyTree(t, func(dir string) error {
		return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, []byte("not a copy\n"), 0o600))
	})
	v := s.pawl("recover")
	want := "fix#1 act interrupted refs/pawl/snapshots/fix/1-candidate"
	if !slices.Equal(v.Recovered, []string{want}) || !strings.Contains(v.Lost, "what iteration 1 had done is kept in ") {
		t.Fatalf("recovered %q, lost %q, want %q", v.Recovered, v.Lost, want)
	}
	s.checkRecovered(v.Recovered)
	_, place, _ := strings.Cut(v.Lost, "its files are kept as they lie in ")
	if got := readFile(t, place); got != "not a copy\n" {
		t.Errorf("%s holds %q", place, got)
	}
	if v := s.pawl("run"); v.Run.N != 2 || v.Run.Outcome != loop.OutcomeProposed {
		t.Errorf("the next run is #%d %s %q", v.Run.N, v.Run.Outcome, v.Run.Detail)
	}
	s.nothingLeft()
}

// everyTree calls fn with each copy that a run of the fixture has left.
func (s *fixture) everyTree(t *testing.T, fn func(dir string) error) {
	t.Helper()
	trees, err := filepath.Glob(filepath.Join(s.home, "trees", "run_*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range trees {
		if err := fn(dir); err != nil {
			t.Fatal(err)
		}
	}
}
