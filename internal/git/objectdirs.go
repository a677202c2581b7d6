package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ObjectDirs lists the directories that hold the objects of the repository:
// its own first, then those that it borrows from, as absolute paths. One that
// is not there is left out.
func (r *Repo) ObjectDirs() ([]string, error) {
	dirs := []string{filepath.Join(r.CommonDir, "objects")}
	for i := 0; i < len(dirs); i++ {
		text, err := os.ReadFile(filepath.Join(dirs[i], "info", "alternates"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list object directories: %w", err)
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimRight(line, "\r\n")
			if line == "" || line[0] == '#' {
				continue
			}
			if store := resolve(dirs[i], line); isDir(store) && !slices.Contains(dirs, store) {
				dirs = append(dirs, store)
			}
		}
		if len(dirs) > maxIncludes {
			return nil, fmt.Errorf("list object directories: %s borrows from more than %d", dirs[0], maxIncludes)
		}
	}
	return dirs, nil
}

// Shallow returns what git knows about where a shallow clone ends, nil for a
// complete repository.
func (r *Repo) Shallow() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(r.CommonDir, "shallow"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read where the clone ends: %w", err)
	}
	return text, nil
}
