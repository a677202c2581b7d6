package flock

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Holder names another process that has locked the file at path, by this package
// or by a write lock on bytes. It is empty if there is none, or if this process may
// not see it.
func Holder(path string) string {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return ""
	}
	for range 3 { // A list that others change while it is read may miss an entry.
		if holder := holderOf(st); holder != "" {
			return holder
		}
	}
	return ""
}

// holderOf looks for a file in the kernel's list of locks, once.
func holderOf(st unix.Stat_t) string {
	text, err := os.ReadFile("/proc/locks")
	if err != nil {
		return ""
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line) // 1: FLOCK ADVISORY WRITE 4711 fd:01:12345 0 EOF
		if len(f) < 6 || f[5] != file || f[1] != "FLOCK" && f[3] != "WRITE" {
			continue
		}
		pid, err := strconv.Atoi(f[4])
		if err != nil || pid <= 0 || pid == os.Getpid() {
			continue
		}
		name, _ := os.ReadFile(filepath.Join("/proc", f[4], "comm")) // It may have ended.
		if called := strings.TrimSpace(string(name)); called != "" {
			return fmt.Sprintf("process %d (%s)", pid, called)
		}
		return fmt.Sprintf("process %d", pid)
	}
	return ""
}
