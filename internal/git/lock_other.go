//go:build !unix

package git

import "os"

// lockFile does nothing: no run lands on these platforms, so nobody competes.
func lockFile(*os.File) error { return nil }

func unlockFile(*os.File) error { return nil }
