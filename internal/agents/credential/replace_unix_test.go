//go:build unix

package credential

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestALoginKeepsItsGroup(t *testing.T) {
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		groups = append(groups, 1)
	}
	file := filepath.Join(t.TempDir(), "login.json")
	writeFile(t, file, "old")
	for _, group := range groups { // Some users have no other group than their own.
		if err := os.Chown(file, -1, group); err != nil {
			t.Fatal(err)
		}
		if err := replaceFile(file, []byte("new"), nil); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if has := info.Sys().(*syscall.Stat_t).Gid; int(has) != group {
			t.Errorf("the group is %d, want %d", has, group)
		}
	}
}

// nobodys is the file info of a file on a system without owners.
type nobodys struct{ fs.FileInfo }

func (nobodys) Sys() any { return nil }

func TestAFileIsGivenToAnOwnerWhoIsKnown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "text")
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if err := setOwner(f, nobodys{info}); err != nil {
		t.Errorf("setOwner = %v of a file whose owner is not known", err)
	}
	f.Close()
	if err := setOwner(f, info); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("setOwner = %v of a file that is closed", err)
	}
}
