package daemon_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store/pgtest"
)

// proposedSite is a site whose first run proposed a branch.
func proposedSite(t *testing.T, database string) *site {
	t.Helper()
	s := newSite(t, database)
	if v := s.pawl("run"); v == nil || v.Run.Outcome != loop.OutcomeProposed || v.Run.Approval == "" {
		t.Fatalf("the run before = %+v, want proposed with an approval", v)
	}
	return s
}

// TestKilledAtAnyPointOfLandingTheBranchIsOldOrGated kills a landing at every
// hit of every fault point. Whatever comes next, the branch is where it was or
// at the gated tree, the row of the effect says which, and the checkout is as a
// whole what the branch is.
func TestKilledAtAnyPointOfLandingTheBranchIsOldOrGated(t *testing.T) {
	for name, database := range map[string]func(t *testing.T) string{
		"sqlite":   func(*testing.T) string { return "" },
		"postgres": func(t *testing.T) string { t.Helper(); return pgtest.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shared := database(t)
			trace := filepath.Join(t.TempDir(), "trace")
			v := proposedSite(t, shared).pawl("approve", "PAWL_FAULTS=1", "PAWL_FAULT_TRACE="+trace)
			if v == nil || v.Run.Outcome != loop.OutcomeLanded || v.Landing != loop.EffectDone {
				t.Fatalf("an undisturbed landing = %+v, want landed", v)
			}
			points := readHits(t, trace)
			for _, want := range []string{"git.advance.ref.before:1", "git.advance.file.after:1", "engine.effect.apply.after:1"} {
				if !slices.Contains(points, want) {
					t.Fatalf("a landing does not pass %s: %v", want, points)
				}
			}
			for _, at := range points {
				t.Run(at, func(t *testing.T) { killLanding(t, proposedSite(t, shared), at) })
			}
		})
	}
}

func killLanding(t *testing.T, s *site, at string) {
	t.Helper()
	old, gated := s.git("rev-parse", "main"), s.git("rev-parse", "pawl/fix/1")
	if v := s.pawl("approve", "PAWL_FAULTS=1", "PAWL_CRASH_AT="+at); v != nil {
		t.Fatalf("it was not killed: %+v", v)
	}
	if now := s.git("rev-parse", "main"); now != old && now != gated {
		t.Fatalf("main is at %s after the kill, want %s or %s", now, old, gated)
	}
	v := s.pawl("recover")
	landed := s.git("rev-parse", "main") == gated
	if !landed && s.git("rev-parse", "main") != old {
		t.Fatalf("main is at %s after recovery, want %s or %s", s.git("rev-parse", "main"), old, gated)
	}
	if landed != (v.Landing == loop.EffectDone) {
		t.Errorf("landed = %v, and the effect is %q", landed, v.Landing)
	}
	if dirty := s.git("status", "--porcelain", "--untracked-files=no", "--", "src", "README.md"); dirty != "" {
		t.Errorf("landed = %v, and the checkout differs from the branch:\n%s", landed, dirty)
	}
	s.nothingLeft()
}
