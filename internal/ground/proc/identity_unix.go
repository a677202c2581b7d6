//go:build unix && !linux

package proc

import "syscall"

func bootID() string { return "" }

// startOf only knows whether some process has the pid, a zombie included.
func startOf(pid int) (int64, bool) {
	err := syscall.Kill(pid, 0)
	return 0, err == nil || err == syscall.EPERM
}
