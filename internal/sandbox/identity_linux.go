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
	return strings.Join([]string{strings.TrimSpace(string(boot)), kernel(), strconv.Itoa(os.Geteuid()), id}, " ")
}

func number(sys any) uint64 {
	if st, ok := sys.(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}
