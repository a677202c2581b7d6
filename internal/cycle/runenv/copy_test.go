package runenv

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestWhatTheBaseIgnoresIsNoChangeButForGates(t *testing.T) {
	s := newEnv(t, loop.Definition{}, map[string]string{"a.txt": "one\n", ".gitignore": "built/\n"})
	for purpose, want := range map[Purpose]int{ForAct: 1, ForRetry: 1, ForGate: 3} {
		k, err := s.Copy(t.Context(), purpose, s.head(t))
		if err != nil {
			t.Fatal(err)
		}
		gittest.Write(t, k.Dir, map[string]string{"built/out": "x", ".gitignore": "a.txt\n", "built/more": "y"})
		changes, problems, err := k.Changes(t.Context())
		if err != nil || len(changes) != want || len(problems) > 0 {
			t.Errorf("%s: %d changes, %v, %v; want %d", purpose, len(changes), problems, err, want)
		}
		if err := k.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if left := s.trees(t); len(left) > 0 {
		t.Errorf("copies stay behind: %v", left)
	}
}

func TestACopyThatCouldNotBeRemovedBeforeGoesFirst(t *testing.T) {
	s := newEnv(t, loop.Definition{}, map[string]string{"a.txt": "one\n"})
	for range 2 {
		k, err := s.Copy(t.Context(), ForAct, s.head(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(k.Dir, "junk")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the copy holds what another one held: %v", err)
		}
		gittest.Write(t, k.Dir, map[string]string{"junk": "x"})
		if err := k.Leave(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheCopyOfADeadRunIsAdoptedWithWhatIsInIt(t *testing.T) {
	s := newEnv(t, loop.Definition{}, map[string]string{"a.txt": "one\n"})
	run := loop.Run{ID: s.ID, Sandbox: "none", BaseCommit: s.head(t)}
	if k, err := s.Adopt(t.Context(), s.Repo, run); k != nil || err != nil {
		t.Fatalf("adopted %v, %v where there is none", k, err)
	}
	k, err := s.Copy(t.Context(), ForAct, s.head(t))
	if err != nil {
		t.Fatal(err)
	}
	gittest.Write(t, k.Dir, map[string]string{"b.txt": "new\n"})
	if err := k.Leave(); err != nil {
		t.Fatal(err)
	}
	k, err = s.Adopt(t.Context(), s.Repo, run)
	if err != nil {
		t.Fatal(err)
	}
	changes, _, err := k.Changes(t.Context())
	if err != nil || len(changes) != 1 || changes[0].Path != "b.txt" {
		t.Errorf("changes = %v, %v; want the new file", changes, err)
	}
	if err := errors.Join(k.Leave(), s.Drop(t.Context(), s.Repo, s.Tier(), s.ID)); err != nil {
		t.Fatal(err)
	}
	if k, err := s.Adopt(t.Context(), s.Repo, run); k != nil || err != nil {
		t.Errorf("adopted %v, %v after all were dropped", k, err)
	}
}

func TestASetUpIsInTheCopyAndOneThatFailsLeavesNone(t *testing.T) {
	s := newEnv(t, loop.Definition{Setup: "mkdir deps && echo a > deps/a"}, map[string]string{"a.txt": "one\n", ".gitignore": "deps/\n"})
	k, err := s.Copy(t.Context(), ForAct, s.head(t))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(k.Dir, "deps/a")); string(text) != "a\n" {
		t.Errorf("deps/a = %q, %v", text, err)
	}
	if err := k.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Definition.Setup = "echo the lockfile is broken; exit 3"
	_, err = s.Copy(t.Context(), ForAct, s.head(t))
	broken, ok := errors.AsType[*SetupError](err)
	want := `setup "echo the lockfile is broken; exit 3" ended with exit status 3:` + "\nthe lockfile is broken"
	if !ok || broken.Error() != want {
		t.Errorf("Copy = %v, want %q", err, want)
	}
	if diff := cmp.Diff([]string(nil), s.trees(t)); diff != "" {
		t.Errorf("copies stay behind (-want +got):\n%s", diff)
	}
}

func TestLayersAndSetUpsAreCollectedOnceADay(t *testing.T) {
	s := newEnv(t, loop.Definition{}, map[string]string{"a.txt": "one\n"})
	mark, now := filepath.Join(s.Home, "collected"), time.Now()
	collect := func() bool {
		t.Helper()
		before, _ := os.Stat(mark)
		if err := s.Collect(t.Context(), s.Repo); err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(mark)
		return err == nil && (before == nil || !after.ModTime().Equal(before.ModTime()))
	}
	if collect() {
		t.Error("there was nothing to collect")
	}
	if err := os.MkdirAll(filepath.Join(s.Home, "layers"), 0o700); err != nil {
		t.Fatal(err)
	}
	if !collect() {
		t.Error("nothing was collected")
	}
	if err := os.Chtimes(mark, now, now.Add(-betweenCollect+time.Minute)); err != nil {
		t.Fatal(err)
	}
	if collect() {
		t.Error("it was collected again within a day")
	}
	if err := os.Chtimes(mark, now, now.Add(-betweenCollect)); err != nil {
		t.Fatal(err)
	}
	if !collect() {
		t.Error("it was not collected after a day")
	}
}
