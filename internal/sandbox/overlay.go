package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Overlay is a directory made of layers. Programs see Upper over Lower[0] over
// Lower[1] and so on, and whatever they write, also a deletion, goes to Upper.
type Overlay struct {
	Lower []string // absolute paths, topmost first; never written to
	Upper string   // absolute path; empty: nothing can be written
	Work  string   // a directory on the file system of Upper for the kernel alone; made anew for each use
}

// Discard removes a directory with all that is in it; one that is not there is
// no error. Directories that keep their owner out are opened on the way, and
// only if that is needed: programs make some, and the kernel leaves them in Work.
func Discard(dir string) error {
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
