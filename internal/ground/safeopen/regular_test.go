//go:build unix

package safeopen

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestARegularFileIsOpenedAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(at("file"), []byte("text"), 0o600), os.Symlink("file", at("link")), os.Mkdir(at("folder"), 0o700), syscall.Mkfifo(at("fifo"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	f, info, err := Open(at("file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if text, err := io.ReadAll(f); string(text) != "text" || info.Size() != 4 || err != nil {
		t.Errorf("read %q of %d bytes, %v", text, info.Size(), err)
	}
	for _, name := range []string{"link", "folder", "fifo", "none"} {
		if f, _, err := Open(at(name)); err == nil {
			t.Errorf("%s was opened", name)
			f.Close()
		}
	}
}
