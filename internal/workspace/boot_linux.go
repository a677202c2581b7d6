package workspace

import (
	"os"
	"strings"
)

// bootID names the time from one start of the machine to the next. What was
// written before the last start may never have reached the disk.
func bootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}
