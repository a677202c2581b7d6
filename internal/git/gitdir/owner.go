package gitdir

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Owners returns the ids of the users to whom the repository belongs: its checkout, the
// entry .git and the git directories. They are sorted, and none on a system that has no
// such ids. Whoever owns one of them decides what git and pawl read there.
func (d Dirs) Owners() ([]int, error) {
	var owners []int
	for _, path := range []string{d.Root, filepath.Join(d.Root, ".git"), d.GitDir, d.CommonDir} {
		info, err := os.Lstat(path)
		if err != nil {
			return nil, fmt.Errorf("find out to whom the repository belongs: %w", err)
		}
		if uid, known := ownerOf(info); known {
			owners = append(owners, uid)
		}
	}
	slices.Sort(owners)
	return slices.Compact(owners), nil
}
