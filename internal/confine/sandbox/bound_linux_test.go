package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestRootIsShownOfTheSettingsWhatEverybodyMayRead(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{
		"hosts": 0o644, "tool/conf": 0o644, "tool/more/conf": 0o644, "service/conf": 0o644, "service/password": 0o640, "closed/conf": 0o644,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, "text")
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"open": "tool/conf", "key": "service/password", "nowhere": "gone", "all": "service"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "closed"), 0o750); err != nil {
		t.Fatal(err)
	}
	got, whole := publicPaths(dir)
	for i := range got {
		got[i], _ = filepath.Rel(dir, got[i])
	}
	if want := []string{"hosts", "service/conf", "tool"}; whole || !slices.Equal(got, want) {
		t.Errorf("public %q, whole %v; want %q", got, whole, want)
	}
}
