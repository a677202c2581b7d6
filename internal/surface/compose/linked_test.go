package compose_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A checkout that is a linked worktree has its git directory elsewhere. While that
// cannot be found, nothing can be concluded: the error names the file, and once it is
// put right the run is carried on.
func TestALinkedCheckoutThatLostItsGitDirectoryIsRecoveredWhenItIsBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose, repair func(s *fixture, linked string) error
	}{
		"its .git file leads nowhere": {
			func(_ *fixture, linked string) error {
				return os.WriteFile(filepath.Join(linked, ".git"), []byte("gitdir: /nowhere\n"), 0o600)
			},
			func(s *fixture, _ string) error { s.git("worktree", "repair"); return nil },
		},
		"its folder in the repository is gone": {
			func(s *fixture, _ string) error { return os.RemoveAll(filepath.Join(s.root, ".git/worktrees/linked")) },
			func(s *fixture, linked string) error {
				if err := os.Rename(linked, linked+".old"); err != nil {
					return err
				}
				s.git("worktree", "prune")
				s.git("worktree", "add", "-q", linked, "side")
				return nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, "")
			linked := filepath.Join(t.TempDir(), "linked")
			s.git("worktree", "add", "-q", "-b", "side", linked)
			l := &fixture{t: t, root: linked, home: s.home}
			l.pawl("run", "PAWL_FAULTS=1", "PAWL_CRASH_AT=engine.effect.apply.before:1")
			if err := c.lose(s, linked); err != nil {
				t.Fatal(err)
			}
			if _, said := l.try("recover"); !strings.Contains(said, filepath.Join(linked, ".git")) {
				t.Errorf("recovery says %q, want the file that is wrong", said)
			}
			if err := c.repair(s, linked); err != nil {
				t.Fatal(err)
			}
			if v := l.pawl("recover"); !slices.Equal(v.Recovered, []string{"fix#1 effect proposed "}) {
				t.Errorf("recovered %q, want the proposal", v.Recovered)
			}
			if refs := s.git("for-each-ref", "refs/pawl"); refs != "" {
				t.Errorf("left behind: %s", refs)
			}
			if left, _ := filepath.Glob(filepath.Join(s.root, ".git/worktrees/linked/pawl-effects-*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
