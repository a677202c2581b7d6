package git

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/pawl-run/pawl/internal/git/gitdir"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/git/program"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Module opens the repository of a submodule that is part of this clone and has
// the commit, or returns loop.ErrNotFound. It is looked for by its name, which
// may be empty, where `git submodule` keeps it, and at its path in the checkout.
func (r *Repo) Module(ctx context.Context, name, path, commit string) (*Repo, error) {
	root := filepath.Join(r.Root, filepath.FromSlash(path))
	var dirs []string
	if object.CheckPath(name) == nil {
		dirs = append(dirs, filepath.Join(r.GitDir, "modules", filepath.FromSlash(name)), filepath.Join(r.CommonDir, "modules", filepath.FromSlash(name)))
	}
	if own, err := gitdir.Of(root); err == nil && own != "" {
		dirs = append(dirs, own)
	}
	for i, dir := range dirs {
		found, ok := gitdir.At(root, dir)
		if !ok || slices.Contains(dirs[:i], dir) {
			continue
		}
		m := &Repo{Dirs: found, git: program.New(r.git.Run, found.GitDir, found.CommonDir, found.GitDir)}
		m.Store = object.At(m.git, r.Format, m.ObjectDirs)
		if has, err := m.hasCommit(ctx, commit); has || ctx.Err() != nil {
			return m, err
		}
	}
	return nil, fmt.Errorf("commit %s of the submodule %q: %w", commit, path, loop.ErrNotFound)
}

// hasCommit reports whether the repository can be read by git, and has a commit.
func (r *Repo) hasCommit(ctx context.Context, commit string) (bool, error) {
	kind, err := r.git.Output(ctx, nil, "cat-file", "-t", commit)
	if program.Status(err) != 0 {
		return false, nil
	}
	return err == nil && string(kind) == "commit\n", err
}
