package toolset_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/confine/workspace/toolset"
)

// tree writes files below a new directory; a name that ends with a slash is a
// directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLayersAreReadAsOneTree(t *testing.T) {
	base := tree(t, map[string]string{"a": "base", "d/x": "base", "gone": "base", "old/y": "base"})
	delta := tree(t, map[string]string{"a": "delta", "d/z": "delta"})
	if !whiteout(t, filepath.Join(delta, "gone")) || !whiteout(t, filepath.Join(delta, "old")) {
		t.Log("this user or system cannot make whiteouts: deletions are not tried")
		os.Remove(filepath.Join(base, "gone"))
		os.RemoveAll(filepath.Join(base, "old"))
	}
	f, err := toolset.Open(sandbox.Overlay{Lower: []string{delta, base}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := fstest.TestFS(f, "a", "d/x", "d/z"); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"a": "delta", "d/x": "base", "d/z": "delta", "gone": "", "old/y": "", "b": ""} {
		file, err := f.Open(name)
		if want == "" && !os.IsNotExist(err) || want != "" && err != nil {
			t.Errorf("open %s: %v", name, err)
		}
		if err == nil {
			text := make([]byte, 16)
			n, _ := file.Read(text)
			if string(text[:n]) != want {
				t.Errorf("%s holds %q, want %q", name, text[:n], want)
			}
			file.Close()
		}
	}
}

func TestALinkOfATreeLeadsToNothingOutside(t *testing.T) {
	base, outside := t.TempDir(), tree(t, map[string]string{"secret": "text"})
	if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(base, "package.json")); err != nil {
		t.Fatal(err)
	}
	f, err := toolset.Open(sandbox.Overlay{Lower: []string{base}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if file, err := f.Open("package.json"); err == nil {
		file.Close()
		t.Error("a link to the outside was followed")
	}
}
