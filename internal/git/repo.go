// Package git is the only way in which pawl uses git: a few verbs on one
// repository, each a bounded process with an environment made from nothing.
// Repository configuration, attributes and content are treated as hostile: no
// hook, filter, text conversion, external diff, merge driver, file-system
// monitor or signing program is ever started, and content is stored and read
// byte for byte. What a repository holds that could start one is listed by
// Hazards.
//
// Two verbs reach further. Advance writes the files and the index of a checkout
// whose branch moves, and no file in which a person has work. Push and RemoteRef
// contact another host, with the user's own login and none of the repository's
// configuration.
//
// It never fetches, never forces a push, never compares the checkout through
// git, and never moves a ref other than by comparing it with an expected value
// first.
package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/proc"
)

// Object formats of a repository.
const (
	SHA1   = "sha1"
	SHA256 = "sha256"
)

// Repo is one repository as seen from one checkout. Get it from Open. It is
// safe for concurrent use, and holds no process or file open, unless it is from
// Hold.
type Repo struct {
	Root      string // absolute path of the top of the checkout, symlinks resolved
	GitDir    string // absolute path of the git directory of this checkout
	CommonDir string // absolute path of the git directory that all linked worktrees share
	Format    string // SHA1 or SHA256

	run  Runner
	once []string // environment of every command

	shelf *shelf // nil unless held
}

// Open finds the repository whose checkout contains dir. A repository without
// a commit opens; Base refuses it. Every refusal is a *loop.Fault.
func Open(ctx context.Context, dir string) (*Repo, error) {
	return OpenWith(ctx, proc.Plain{}, dir)
}

// OpenWith is Open with another way to start processes. All commands of the
// Repo go through run.
func OpenWith(ctx context.Context, run Runner, dir string) (*Repo, error) {
	r, err := discover(dir)
	if err != nil {
		return nil, err
	}
	r.run = run
	// Told about a work tree, git answers that the repository is not bare, so
	// this one question is asked without it.
	r.once = environ(r.GitDir, r.CommonDir, "")
	out, err := r.git(ctx, nil, "rev-parse", "--show-object-format", "--is-bare-repository")
	if err != nil {
		return nil, unreadable(r.Root, err)
	}
	format, bare, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if bare == "true" {
		return nil, bareFault(r.GitDir)
	}
	if format != SHA1 && format != SHA256 {
		return nil, unreadable(r.Root, fmt.Errorf("unknown object format %q", format))
	}
	r.Format = format
	r.once = environ(r.GitDir, r.CommonDir, r.GitDir)
	return r, nil
}

// discover walks up from dir to the checkout that contains it. It is done here
// and not by git, because git would read configuration on the way.
func discover(dir string) (*Repo, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return nil, &loop.Fault{
			Exit: loop.ExitNotFound, What: dir + " cannot be opened", Why: reason(err),
			Fix: "name a directory inside a git repository", Err: err,
		}
	}
	for at := abs; ; at = filepath.Dir(at) {
		gitDir, err := dotGit(at)
		if err != nil {
			return nil, unreadable(at, err)
		}
		if gitDir != "" {
			common := commonDir(gitDir)
			return &Repo{Root: at, GitDir: gitDir, CommonDir: common}, nil
		}
		if isGitDir(at) {
			return nil, bareFault(at)
		}
		if at == filepath.Dir(at) {
			return nil, &loop.Fault{
				Exit: loop.ExitNotFound, What: abs + " is not in a git repository",
				Fix: "run it inside a git repository, or `git init`", Err: loop.ErrNotFound,
			}
		}
	}
}

// dotGit returns the git directory that at/.git is or points to, or "" if
// there is none.
func dotGit(at string) (string, error) {
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
	target = resolve(at, target)
	if !isGitDir(target) {
		return "", fmt.Errorf("%s points to %s, which is not a git directory", entry, target)
	}
	return target, nil
}

// commonDir returns what the commondir file of a linked worktree names.
func commonDir(gitDir string) string {
	text, err := os.ReadFile(filepath.Join(gitDir, "commondir"))
	if err != nil {
		return gitDir
	}
	return resolve(gitDir, strings.TrimRight(string(text), "\r\n"))
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

func resolve(base, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

func bareFault(dir string) error {
	return &loop.Fault{
		Exit: loop.ExitError, What: dir + " has no checkout",
		Why: "it is a bare repository, or the inside of a .git directory",
		Fix: "run it in a checkout: a clone, or one made by `git worktree add`",
	}
}

func unreadable(dir string, err error) error {
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		return f
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("open repository %s: %w", dir, err)
	}
	return &loop.Fault{
		Exit: loop.ExitUnreadable, What: "the git repository at " + dir + " cannot be read",
		Why: reason(err), Fix: "see what `git status` says there", Err: err,
	}
}

// reason drops the path from a file error, because the message names it.
func reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}
