//go:build !unix

package projection

import "os"

// openFlags has nothing to add: this platform has neither pipes in folders
// nor links that a user can make without being asked.
const openFlags = 0

// lock does nothing here: runs of one loop exclude each other by their lease.
func lock(*os.File) error { return nil }

// DiskFull reports whether an error means that there is no room left on a disk.
func DiskFull(error) bool { return false }

func readOnly(error) bool { return false }
