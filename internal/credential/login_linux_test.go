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

	"github.com/pawl-run/pawl/internal/loop"
)

// A file of the kernel that is only written cannot be read by root either.
func TestALoginThatCannotBeReadIsNotAnEmptyOne(t *testing.T) {
	b := newBench(t, lentLogin)
	remove(t, b.file())
	if err := os.Symlink("/proc/sys/vm/drop_caches", b.file()); err != nil {
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
	write(t, file, "text")
	f, err := os.OpenFile(file, unix.O_PATH, 0) // Nothing of such a file can be changed.
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := setOwner(f, anothers{}); !errors.Is(err, syscall.EBADF) {
		t.Errorf("own = %v, want that it cannot", err)
	}
}

// anothers is a file of somebody else.
type anothers struct{ fs.FileInfo }

func (anothers) Sys() any { return &syscall.Stat_t{Uid: 4711, Gid: 4711} }
