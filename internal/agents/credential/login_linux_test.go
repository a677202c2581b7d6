package credential

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// A write-only file of the kernel cannot be read even by root.
func TestALoginThatCannotBeReadIsNotAnEmptyOne(t *testing.T) {
	b := newLoanTest(t, lentLogin)
	removeFile(t, b.loginFile())
	if err := os.Symlink("/proc/sys/vm/drop_caches", b.loginFile()); err != nil {
		t.Fatal(err)
	}
	got, err := Find(Want{Profile: claude, Auth: loop.AuthLend, Home: b.user, Now: now})
	f, ok := errors.AsType[*loop.Fault](err)
	if !ok || !strings.HasPrefix(f.Why, "~/"+filepath.ToSlash(claudeFile)+": permission denied") {
		t.Errorf("Find = %v, %v, want that it cannot be read", got, err)
	}
}

func TestAnOwnerThatCannotBeSetIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "text")
	f, err := os.OpenFile(file, unix.O_PATH, 0) // Nothing of such a file can be changed.
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := setOwner(f, anothers{}); !errors.Is(err, syscall.EBADF) {
		t.Errorf("own = %v, want that it cannot", err)
	}
}

// anothers is the file info of a file of somebody else.
type anothers struct{ fs.FileInfo }

func (anothers) Sys() any { return &syscall.Stat_t{Uid: 4711, Gid: 4711} }
