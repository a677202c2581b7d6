package proc

import (
	"os"
	"strings"

	"github.com/pawl-run/pawl/internal/ground/proc/stage"
)

// bootID returns the kernel's boot id and the PID namespace, because two containers of
// one kernel share the boot id but not their pids.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	id := strings.TrimSpace(string(b))
	const initial = "pid:[4026531836]"
	if ns, err := os.Readlink("/proc/self/ns/pid"); err == nil && ns != initial {
		id += " " + ns
	}
	return id
}

// startOf returns the start of a living process in clock ticks after boot.
func startOf(pid int) (int64, bool) {
	p, ok := stage.ReadProcess(pid)
	return p.Start, ok && !p.Dead
}
