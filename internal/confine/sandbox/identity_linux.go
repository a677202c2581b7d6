package sandbox

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// testIdentity returns a text of everything that a self-test depends on and that may
// differ the next time, empty if it cannot be found out.
func testIdentity() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	_, id := binaryID()
	if err != nil || id == "" {
		return ""
	}
	return joinIdentity(strings.TrimSpace(string(boot)), kernelRelease(), os.Geteuid(), id)
}

// joinIdentity joins the boot id, the kernel release, the user and the binary. Only
// the release can have a space, so that different identities have different texts.
func joinIdentity(boot, release string, uid int, binary string) string {
	return strings.Join([]string{boot, release, strconv.Itoa(uid), binary}, " ")
}

func inodeNumber(sys any) uint64 {
	if st, ok := sys.(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}
