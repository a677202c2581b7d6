package dirglob

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
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
			if diff := cmp.Diff(want, Find(dir, pattern)); diff != "" {
				t.Errorf("%s in %s (-want +got):\n%s", pattern, name, diff)
			}
		}
	}
}

func TestADirectoryThatIsMissingHasNoFiles(t *testing.T) {
	if got := Find(filepath.Join(t.TempDir(), "missing"), "*"); got != nil {
		t.Errorf("Find = %q, want nothing", got)
	}
}

func TestAMalformedPatternPanics(t *testing.T) {
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, path.ErrBadPattern.Error()) {
			t.Errorf("it panics with %q, want a bad pattern", said)
		}
	}()
	t.Errorf("Find = %q", Find(t.TempDir(), "["))
}
