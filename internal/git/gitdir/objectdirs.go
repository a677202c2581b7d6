package gitdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxBorrowed bounds the chain of object stores.
const maxBorrowed = 10

// ObjectDirs lists the directories that hold the objects of the repository:
// its own first, then those that it borrows from, as absolute paths. One that
// is not there is left out.
func (d Dirs) ObjectDirs() ([]string, error) {
	dirs := []string{filepath.Join(d.CommonDir, "objects")}
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
			if store := Resolve(dirs[i], line); isDir(store) && !slices.Contains(dirs, store) {
				dirs = append(dirs, store)
			}
		}
		if len(dirs) > maxBorrowed {
			return nil, fmt.Errorf("list object directories: %s borrows from more than %d", dirs[0], maxBorrowed)
		}
	}
	return dirs, nil
}

// Shallow returns what git knows about where a shallow clone ends, nil for a
// complete repository.
func (d Dirs) Shallow() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(d.CommonDir, "shallow"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read where the clone ends: %w", err)
	}
	return text, nil
}

// Shared reports whether other checkouts share the refs of this one: it is a
// linked worktree, or has some.
func (d Dirs) Shared() bool {
	if d.GitDir != d.CommonDir {
		return true
	}
	_, err := os.Lstat(filepath.Join(d.CommonDir, "worktrees"))
	return err == nil
}
