package workspace

import "golang.org/x/sys/unix"

// bootID names the time from one start of the machine to the next. What was
// written before the last start may never have reached the disk.
func bootID() (string, error) {
	return unix.Sysctl("kern.bootsessionuuid")
}
