package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-run/pawl/internal/ground/durable"
)

// watch collects the paths below dir of all that is synced.
func watch(t *testing.T, dir string) *[]string {
	t.Helper()
	seen := &[]string{}
	stop := durable.WatchSyncs(func(f *os.File) error {
		if name, err := filepath.Rel(dir, f.Name()); err == nil && !strings.HasPrefix(name, "..") {
			*seen = append(*seen, filepath.ToSlash(name))
		}
		return nil
	})
	t.Cleanup(stop)
	return seen
}

// The system refuses to sync a pipe: the call is made.
func TestASyncAsksTheSystem(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if err := durable.SyncFile(w); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("sync of a pipe = %v, want EINVAL", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := durable.SyncFile(w); !errors.Is(err, os.ErrClosed) {
		t.Errorf("sync of a closed file = %v", err)
	}
}

func TestAFolderIsSyncedWhereThatIsPossible(t *testing.T) {
	dir := t.TempDir()
	var answer error
	stop := durable.WatchSyncs(func(f *os.File) error {
		if f.Name() == dir {
			return answer
		}
		return nil
	})
	defer stop()
	for err, want := range map[error]error{
		nil: nil, syscall.EIO: syscall.EIO, syscall.ENOSPC: syscall.ENOSPC, syscall.EINVAL: nil, errors.ErrUnsupported: nil, os.ErrPermission: nil,
	} {
		answer = err
		if got := durable.SyncFolder(dir); !errors.Is(got, want) {
			t.Errorf("where a sync is %v, Folder = %v, want %v", err, got, want)
		}
	}
	if err := durable.SyncFolder(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there = %v", err)
	}
}

func TestFoldersThatAreMadeHaveTheirNamesSynced(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	seen := watch(t, dir)
	for _, want := range [][]string{{"a/b", "a", "."}, nil} { // The second time all are there.
		*seen = nil
		if err := durable.MkdirAll(root, "a/b/c", 0o755); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(*seen, want) {
			t.Errorf("synced %q, want %q", *seen, want)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "a/b/c")); err != nil || !info.IsDir() {
		t.Error(info, err)
	}
}

func TestAllBelowAFolderIsSynced(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "d"), 0o755), os.WriteFile(filepath.Join(dir, "d/f"), []byte("x"), 0o600), os.Symlink("none", filepath.Join(dir, "l"))); err != nil {
		t.Fatal(err)
	}
	if err := durable.SyncTree(dir); err != nil {
		t.Error(err)
	}
	if err := durable.SyncTree(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Below a folder that is not there: %v", err)
	}
}

func TestMissingFoldersAreListedFromTheDeepestUp(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b")
	if got := durable.MissingFolders(deep); !slices.Equal(got, []string{deep, filepath.Join(dir, "a")}) {
		t.Errorf("missing = %q, want the folder and the one above", got)
	}
	if got := durable.MissingFolders(dir); got != nil {
		t.Errorf("missing = %q of a folder that exists", got)
	}
}

func TestAFileIsMadeWithItsFoldersAndNeverOverAnother(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	if err := durable.CreateIn(root, "a/b/c.txt", []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := durable.CreateIn(root, "a/b/c.txt", []byte("second")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("made over another file: %v, want fs.ErrExist", err)
	}
	if text, err := root.ReadFile("a/b/c.txt"); string(text) != "first" || err != nil {
		t.Errorf("the file has %q, %v", text, err)
	}
	if err := durable.CreateIn(root, "../out.txt", nil); err == nil {
		t.Error("a file was made outside of the root")
	}
}

func TestAFileIsReplacedAsAWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	if err := durable.ReplaceFile(name, []byte("one"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o604); err != nil {
		t.Fatal(err)
	}
	if err := durable.ReplaceFile(name, []byte("two"), 0o640); err != nil {
		t.Fatal(err)
	}
	check := func(want string) {
		t.Helper()
		got, err := os.ReadFile(name)
		info, statErr := os.Stat(name)
		if err != nil || statErr != nil || string(got) != want || info.Mode().Perm() != 0o604 {
			t.Errorf("the file says %q (%v), with the mode %v", got, err, info.Mode())
		}
		if left, err := filepath.Glob(filepath.Join(dir, ".pawl*")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	check("two")
	full := errors.New("the disk is full")
	stop := durable.WatchSyncs(func(f *os.File) error {
		if filepath.Base(f.Name()) != filepath.Base(dir) {
			return full
		}
		return nil
	})
	defer stop()
	if err := durable.ReplaceFile(name, []byte("three"), 0o640); !errors.Is(err, full) {
		t.Errorf("%v, want %v", err, full)
	}
	check("two")
}
