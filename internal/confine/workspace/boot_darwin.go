package workspace

import "golang.org/x/sys/unix"

// bootID identifies the current start of the machine. Files that were written before it
// may never have reached the disk.
func bootID() (string, error) {
	return unix.Sysctl("kern.bootsessionuuid")
}
