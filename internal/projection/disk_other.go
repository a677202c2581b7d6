//go:build !unix

package projection

import "os"

// openFlags has nothing to add: this platform has neither pipes in folders
// nor links that a user can make without being asked.
const openFlags = 0

// lock does nothing here: runs of one loop exclude each other by their lease.
func lock(*os.File) (func() error, error) { return func() error { return nil }, nil }

// syncHandle does nothing here: a folder cannot be synced on this platform.
func syncHandle(*os.File) error { return nil }

func diskFull(error) bool { return false }

func readOnly(error) bool { return false }
