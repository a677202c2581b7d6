package dirglob

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheDirectoryIsNeverAPattern(t *testing.T) {
	for _, name := range []string{"plain", "a[b", "a[b]c", "a*", "a?", "a{b", "a b", "ä"} {
		dir := filepath.Join(t.TempDir(), name)
		for _, file := range []string{"x-1/home", "x-2/home", "y/home", ".x-3/home"} {
			if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(file)), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for pattern, want := range map[string][]string{
			"x-*":      {filepath.Join(dir, "x-1"), filepath.Join(dir, "x-2")},
			"x-*/home": {filepath.Join(dir, "x-1", "home"), filepath.Join(dir, "x-2", "home")},
			".x-*":     {filepath.Join(dir, ".x-3")},
			"y":        {filepath.Join(dir, "y")},
			"z*":       nil,
		} {
			got, err := Find(dir, pattern)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s in %s (-want +got):\n%s", pattern, name, diff)
			}
		}
	}
}

func TestADirectoryThatIsMissingHasNoFiles(t *testing.T) {
	if got, err := Find(filepath.Join(t.TempDir(), "missing"), "*"); got != nil || err != nil {
		t.Errorf("Find = %q, %v, want nothing", got, err)
	}
	if _, err := Find(t.TempDir(), "["); !errors.Is(err, path.ErrBadPattern) {
		t.Errorf("Find = %v, want a bad pattern", err)
	}
}
