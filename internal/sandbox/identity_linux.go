package sandbox

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// identity is all that a self-test depends on and that may differ the next
// time; empty: it cannot be told.
func identity() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	_, id := binary()
	if err != nil || id == "" {
		return ""
	}
	return keyOf(strings.TrimSpace(string(boot)), kernel(), os.Geteuid(), id)
}

// keyOf joins a start of the host, the release of its kernel, the user and the
// binary. None of them but the release can hold a space, so that no two are one text.
func keyOf(boot, release string, uid int, binary string) string {
	return strings.Join([]string{boot, release, strconv.Itoa(uid), binary}, " ")
}

func number(sys any) uint64 {
	if st, ok := sys.(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}
