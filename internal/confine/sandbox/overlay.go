package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Overlay is a directory made of layers. Programs see Upper over Lower[0] over
// Lower[1] and so on; whatever they write or delete is recorded in Upper.
type Overlay struct {
	Lower []string // absolute paths, topmost first; never written to
	Upper string   // absolute path; empty: read-only
	Work  string   // a directory on the file system of Upper that only the kernel uses; Run makes it anew
}

// RemoveTree removes a directory with everything in it. It is no error if the
// directory does not exist. If the removal fails, it makes all directories
// accessible to their owner and tries again: programs make some that are not, and
// the kernel leaves such in Work.
func RemoveTree(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
