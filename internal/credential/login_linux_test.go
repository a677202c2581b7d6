package credential

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
