package workspace

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// attributed gives a file an extended attribute where the file system has them.
func attributed(t *testing.T, path string) {
	t.Helper()
	if err := unix.Setxattr(path, "user.pawl", []byte("1"), 0); err != nil && !errors.Is(err, unix.ENOTSUP) {
		t.Fatal(err)
	}
}
