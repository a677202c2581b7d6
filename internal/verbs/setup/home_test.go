package setup

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLookingLeavesNoHomeUnlessSomethingIsInIt(t *testing.T) {
	for name, c := range map[string]struct{ before, meanwhile, left []string }{
		"a home that a try made goes, and the folders above it": {meanwhile: []string{"a/home/runs", "a/home/trees"}},
		"what another process put there stays":                  {meanwhile: []string{"a/home/runs", "a/home/written"}, left: []string{"a/home/runs", "a/home/written"}},
		"a copy in use stays":                                   {meanwhile: []string{"a/home/trees/run_1"}, left: []string{"a/home/trees/run_1"}},
		"a home that was there stays":                           {before: []string{"a/home"}, meanwhile: []string{"a/home/runs"}, left: []string{"a/home/runs"}},
		"nothing made is nothing to remove":                     {},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			mkdirs(t, dir, c.before)
			remove := removeIfNew(filepath.Join(dir, "a/home"))
			mkdirs(t, dir, c.meanwhile)
			remove()
			for _, path := range c.left {
				if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
					t.Errorf("gone: %v", err)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "a")); len(c.left) == 0 && err == nil {
				t.Error("a folder was left behind")
			}
		})
	}
}

func mkdirs(t *testing.T, dir string, paths []string) {
	t.Helper()
	for _, path := range paths {
		if err := os.MkdirAll(filepath.Join(dir, path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
