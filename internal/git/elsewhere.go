package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/git/gitconfig"
	"github.com/pawl-run/pawl/internal/git/gitdir"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// unfinishedWork are files of a git directory that exist while a person is in
// the middle of something that a moved branch would disturb.
var unfinishedWork = map[string]string{
	"MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert",
	"rebase-merge": "rebase", "rebase-apply": "rebase",
}

// checkWorktrees refuses a branch that another worktree has checked out
// or rebases, and one that this checkout is in the middle of something with.
// The files of the git directory are read here because git has no one answer.
func (a Advance) checkWorktrees(here gitdir.Dirs) error {
	dirs := []string{here.CommonDir}
	admins, err := os.ReadDir(filepath.Join(here.CommonDir, "worktrees"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("advance %s: list worktrees: %w", a.Branch, err)
	}
	for _, admin := range admins {
		dirs = append(dirs, filepath.Join(here.CommonDir, "worktrees", admin.Name()))
	}
	for _, dir := range dirs {
		if dir == here.GitDir || !hasCheckedOut(dir, a.ref()) || dir == here.CommonDir && isBare(here) {
			continue
		}
		return &loop.Fault{
			Exit: loop.ExitRefused, What: fmt.Sprintf("%s is checked out in another worktree, %s", a.Branch, checkoutOf(dir, here.CommonDir)),
			Why:     "its files would no longer match its branch",
			Fix:     "switch that worktree to another branch, or {1} if it is gone; then land again",
			Actions: []loop.Command{loop.HostCommand("git", "worktree", "prune")},
		}
	}
	for name, what := range unfinishedWork {
		if _, err := os.Lstat(filepath.Join(here.GitDir, name)); err == nil {
			return &loop.Fault{
				Exit: loop.ExitRefused, What: fmt.Sprintf("%s is in the middle of a %s", here.Root, what),
				Why: "a branch that moves now would disturb it", Fix: fmt.Sprintf("finish it or `git %s --abort`, then land again", what),
			}
		}
	}
	return nil
}

// isBare reports whether the shared git directory is nobody's checkout.
func isBare(dirs gitdir.Dirs) bool {
	data, err := gitdir.Read(filepath.Join(dirs.CommonDir, "config"))
	if err != nil {
		return false
	}
	settings, _ := gitconfig.Parse(data)
	bare := false
	for _, s := range settings {
		if s.Key == "core.bare" {
			bare = isTrue(s.Value)
		}
	}
	return bare
}

// isTrue reads a boolean of git's: a key without a value is true.
func isTrue(value string) bool {
	switch strings.ToLower(value) {
	case "false", "no", "off", "0":
		return false
	}
	return true
}

// hasCheckedOut reports whether the checkout of an administrative directory is on ref,
// or will return to it when its rebase ends.
func hasCheckedOut(dir, ref string) bool {
	for _, name := range []string{"HEAD", "rebase-merge/head-name", "rebase-apply/head-name"} {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err == nil && strings.TrimSpace(strings.TrimPrefix(string(text), "ref:")) == ref {
			return true
		}
	}
	return false
}

// checkoutOf names the directory that an administrative directory belongs to.
func checkoutOf(dir, common string) string {
	if dir == common {
		return filepath.Dir(common)
	}
	text, err := os.ReadFile(filepath.Join(dir, "gitdir"))
	if err != nil {
		return filepath.Base(dir)
	}
	return filepath.Dir(gitdir.Resolve(dir, strings.TrimSpace(string(text))))
}
