//go:build !unix

package projection

import "os"

// openFlags is empty: on this platform folders hold no pipes, and users cannot make
// links without being asked.
const openFlags = 0

// lockFile does nothing here: runs of one loop exclude each other by their lease.
func lockFile(*os.File) error { return nil }

// DiskFull reports whether an error means that there is no room left on a disk.
func DiskFull(error) bool { return false }

func readOnly(error) bool { return false }
