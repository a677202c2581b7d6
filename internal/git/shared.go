package git

import (
	"os"
	"path/filepath"
)

// Shared reports whether other checkouts share the refs of this one: it is a
// linked worktree, or has some.
func (r *Repo) Shared() bool {
	if r.GitDir != r.CommonDir {
		return true
	}
	_, err := os.Lstat(filepath.Join(r.CommonDir, "worktrees"))
	return err == nil
}
