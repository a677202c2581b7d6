package workspace

import (
	"os"
	"strings"
)

// bootID identifies the current start of the machine. Files that were written before it
// may never have reached the disk.
func bootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}
