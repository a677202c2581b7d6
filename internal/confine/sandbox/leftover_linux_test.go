package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestWhatAKilledSelfTestLeftIsRemovedByTheNextOne(t *testing.T) {
	home := t.TempDir()
	open755(t, home)
	killed, err := newTestDir(home, Full)
	if err != nil {
		t.Fatal(err)
	}
	socket := socketPrefix + killed.name
	if err := os.MkdirAll(filepath.Join(socket, "socket"), 0o755); err != nil {
		t.Fatal(err)
	}
	// The kernel leaves such a folder, and the claim of a process ends with it.
	if err := errors.Join(os.Mkdir(killed.work, 0o755), os.Mkdir(filepath.Join(killed.work, "work"), 0o000)); err != nil {
		t.Fatal(err)
	}
	if err := killed.claim.Close(); err != nil {
		t.Fatal(err)
	}
	other, err := newTestDir(home, Full)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{killed.root, socket, killed.claim.Name()} {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
	// One that is still being made is nobody's to remove.
	if _, err := Test(t.Context(), Full, home); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(other.canaryPath()); err != nil {
		t.Error(err)
	}
	other.cleanUp()
	if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
