package runenv

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestUsageIsWhatARunWritesAndNotWhatItBeganWith(t *testing.T) {
	const mebi = 1 << 20
	for _, tier := range []string{"none", "full"} {
		t.Run(tier, func(t *testing.T) {
			s := newEnv(t, loop.Definition{Sandbox: tier}, map[string]string{"base.bin": strings.Repeat("x", 5*mebi)})
			s.Disk = &Disk{}
			k, err := s.Copy(t.Context(), ForAct, s.head(t))
			if err != nil {
				t.Fatal(err)
			}
			defer k.Remove(t.Context()) //nolint:errcheck // The folder of the test goes.
			used := func() Usage {
				u, err := s.Usage(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return u
			}
			if u := used(); u.Bytes > mebi/4 {
				t.Errorf("a copy that nobody wrote to uses %+v", u)
			}
			dir := filepath.Join(k.Where(), "a", "b", "c")
			gittest.Write(t, dir, map[string]string{"x": strings.Repeat("x", 2*mebi)})
			if err := os.Link(filepath.Join(dir, "x"), filepath.Join(dir, "again")); err != nil {
				t.Fatal(err)
			}
			holes, err := os.Create(filepath.Join(dir, "holes"))
			if err != nil {
				t.Fatal(err)
			}
			// Below the limits of file sizes that test runs have (ulimit -f).
			if err := holes.Truncate(1 << 30); err != nil {
				t.Fatal(err)
			}
			holes.Close()
			gittest.Write(t, filepath.Join(k.cacheDir(), "npm"), map[string]string{"y": strings.Repeat("y", mebi)})
			u := used()
			if got := u.Bytes / (mebi / 2); got != 6 {
				t.Errorf("used %d bytes, want 3 MiB", u.Bytes)
			}
			if want := []string{filepath.Join("a", "b") + " (2.0 MiB)", "beside the tree: " + filepath.Join("scratch-act", "caches") + " (1.0 MiB)"}; !slices.Equal(u.Largest, want) {
				t.Errorf("the largest are %q, want %q", u.Largest, want)
			}
		})
	}
}
