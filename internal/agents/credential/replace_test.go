package credential

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/ground/durable"
)

// A login that a power cut leaves empty is lost: the old one is not valid any more.
func TestALoginIsOnTheDiskBeforeAndAfterItHasItsName(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "login.json")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	stop := durable.WatchSyncs(func(f *os.File) error {
		if f.Name() != dir && filepath.Dir(f.Name()) != dir {
			return nil
		}
		name, err := filepath.Rel(dir, f.Name())
		if err != nil {
			return err
		}
		text, err := os.ReadFile(file)
		got = append(got, name+" "+string(text))
		if string(text) == "newer" && f.Name() == dir {
			return syscall.EIO
		}
		return err
	})
	defer stop()
	if err := replaceFile(file, []byte("new"), nil); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{".login.json.pawl old", ". new"}, got); d != "" {
		t.Errorf("synced (-want +got):\n%s", d)
	}
	if err := writeLike(filepath.Join(dir, "none", "login.json"), []byte("new"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its folder is missing: %v, want that error", err)
	}
	if err := replaceFile(file, []byte("newer"), nil); !errors.Is(err, syscall.EIO) {
		t.Errorf("its folder cannot be synced: %v, want that error", err)
	}
}
