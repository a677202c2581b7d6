// Package gitdir finds the git directory of a checkout and reads files of it
// as data, by git's own rules.
//
// It starts no process, follows no configuration and writes nothing.
package gitdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Dirs is where a repository is, as seen from one checkout.
type Dirs struct {
	Root      string // absolute path of the top of the checkout, symlinks resolved
	GitDir    string // absolute path of the git directory of this checkout
	CommonDir string // absolute path of the git directory that all linked worktrees share
}

// Find walks up from dir to the checkout that contains it. It is done here
// and not by git, because git would read configuration on the way. Every
// refusal is a *loop.Fault.
func Find(dir string) (Dirs, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return Dirs{}, &loop.Fault{
			Exit: loop.ExitNotFound, What: dir + " cannot be opened", Why: Reason(err),
			Fix: "name a directory inside a git repository", Err: err,
		}
	}
	for at := abs; ; at = filepath.Dir(at) {
		gitDir, err := Of(at)
		if err != nil {
			return Dirs{}, Unreadable(at, err)
		}
		if gitDir != "" {
			common := commonDir(gitDir)
			return Dirs{Root: at, GitDir: gitDir, CommonDir: common}, nil
		}
		if isGitDir(at) {
			return Dirs{}, Bare(at)
		}
		if at == filepath.Dir(at) {
			return Dirs{}, &loop.Fault{
				Exit: loop.ExitNotFound, What: abs + " is not in a git repository",
				Fix: "run pawl in a git repository, or make one here: {1}", Err: loop.ErrNotFound,
				Actions: []loop.Command{loop.HostCommand("git", "init")},
			}
		}
	}
}

// Of returns the git directory that at/.git is or points to, or "" if there is
// none.
func Of(at string) (string, error) {
	entry := filepath.Join(at, ".git")
	info, err := os.Stat(entry)
	if err != nil {
		return "", nil //nolint:nilerr // No such entry: the search goes on above.
	}
	if info.IsDir() {
		if real, err := filepath.EvalSymlinks(entry); err == nil && isGitDir(real) {
			return real, nil
		}
		return "", nil
	}
	if !info.Mode().IsRegular() || info.Size() > 8<<10 {
		return "", fmt.Errorf("%s is neither a directory nor a small file", entry)
	}
	text, err := os.ReadFile(entry)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", entry, err)
	}
	target, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
	if !ok {
		return "", fmt.Errorf("%s does not name a git directory", entry)
	}
	target = Resolve(at, target)
	if !isGitDir(target) {
		return "", fmt.Errorf("%s points to %s, which is not a git directory", entry, target)
	}
	return target, nil
}

// At describes the git directory gitDir of a checkout whose top is root. It
// reports false if that is not a git directory.
func At(root, gitDir string) (Dirs, bool) {
	return Dirs{Root: root, GitDir: gitDir, CommonDir: commonDir(gitDir)}, isGitDir(gitDir)
}

// commonDir returns what the commondir file of a linked worktree names.
func commonDir(gitDir string) string {
	text, err := os.ReadFile(filepath.Join(gitDir, "commondir"))
	if err != nil {
		return gitDir
	}
	return Resolve(gitDir, strings.TrimRight(string(text), "\r\n"))
}

// isGitDir applies git's own test: HEAD, objects and refs exist.
func isGitDir(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err != nil {
		return false
	}
	common := commonDir(dir)
	return isDir(filepath.Join(common, "objects")) && isDir(filepath.Join(common, "refs"))
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Resolve is the path without links, or only cleaned if it leads nowhere. A
// relative one begins at base.
func Resolve(base, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// Bare is the fault of a git directory that no checkout belongs to.
func Bare(dir string) error {
	return &loop.Fault{
		Exit: loop.ExitError, What: dir + " has no checkout",
		Why: "it is a bare repository, or the inside of a .git directory",
		Fix: "run it in a checkout: a clone, or one made by {1}", Actions: []loop.Command{loop.HostCommand("git", "worktree", "add")},
	}
}

// Unreadable is the fault of a repository that is there and cannot be read. A
// fault stays what it is, and so does the end of a context.
func Unreadable(dir string, err error) error {
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		return f
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("open repository %s: %w", dir, err)
	}
	return &loop.Fault{
		Exit: loop.ExitUnreadable, What: "the git repository at " + dir + " cannot be read",
		Why: Reason(err), Fix: "see what {1} says there", Actions: []loop.Command{loop.HostCommand("git", "status")}, Err: err,
	}
}

// Reason drops the path from a file error, because the message names it.
func Reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}
