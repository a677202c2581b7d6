package sandbox

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// testIdentity is all that a self-test depends on and that may differ the next
// time; empty: it cannot be told.
func testIdentity() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	_, id := binaryID()
	if err != nil || id == "" {
		return ""
	}
	return joinIdentity(strings.TrimSpace(string(boot)), kernelRelease(), os.Geteuid(), id)
}

// joinIdentity joins a start of the host, the release of its kernel, the user and the
// binary. None of them but the release can hold a space, so that no two are one text.
func joinIdentity(boot, release string, uid int, binary string) string {
	return strings.Join([]string{boot, release, strconv.Itoa(uid), binary}, " ")
}

func inodeNumber(sys any) uint64 {
	if st, ok := sys.(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}
