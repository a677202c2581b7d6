package toolset_test

import (
	"testing"

	"golang.org/x/sys/unix"
)

func whiteout(t *testing.T, path string) bool {
	t.Helper()
	return unix.Mknod(path, unix.S_IFCHR, 0) == nil
}
