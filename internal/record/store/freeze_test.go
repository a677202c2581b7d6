package store

import (
	"os"
	"path/filepath"
	"testing"
)

func TestACopyOfAStoreThatFailsLeavesNothing(t *testing.T) {
	scratch := t.TempDir()
	t.Setenv("TMPDIR", scratch)
	path := filepath.Join(t.TempDir(), "pawl.db")
	if err := os.WriteFile(path, []byte("rows"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := newFrozen(path); err != nil || f.copy != "" {
		t.Errorf("a store without a log = %+v, %v, want that it is read as it is", f, err)
	}
	if err := os.WriteFile(path+"-wal", []byte("more"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := newFrozen(path)
	if err != nil || f.copy == "" {
		t.Fatalf("a store with a log = %+v, %v, want a copy", f, err)
	}
	for name, want := range map[string]string{"pawl.db": "rows", "pawl.db-wal": "more"} {
		if text, err := os.ReadFile(filepath.Join(f.copy, name)); err != nil || string(text) != want {
			t.Errorf("%s = %q, %v, want %q", name, text, err, want)
		}
	}
	if err := f.close(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(path + "-wal"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+"-wal", 0o700); err != nil { // Its content cannot be read.
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path+"-wal", "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newFrozen(path); err == nil {
		t.Error("half a copy was believed")
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("%d folders are left, %v", len(left), err)
	}
	if _, err := newFrozen(filepath.Join(scratch, "none")); err == nil {
		t.Error("a store that is not there was read")
	}
}
