package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// FreeDisk returns how many bytes an unprivileged user can still write to the file
// system of path. If path does not exist, the nearest directory above it counts. The
// error matches errors.ErrUnsupported on systems that cannot say.
func (p Prober) FreeDisk(path string) (free uint64, err error) {
	dir, err := filepath.Abs(path)
	if err != nil {
		return 0, fmt.Errorf("measure free space at %s: %w", path, err)
	}
	for {
		_, err = os.Stat(dir)
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	if err == nil {
		free, err = freeBytes(dir)
	}
	if err != nil {
		return 0, fmt.Errorf("measure free space at %s: %w", path, err)
	}
	return free, nil
}
