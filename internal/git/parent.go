package git

import (
	"context"
	"fmt"
	"strings"
)

// Parent returns the first parent of a commit, by its full object name, with
// the parent's tree.
func (r *Repo) Parent(ctx context.Context, commit string) (Base, error) {
	if err := r.Format.Check(commit); err != nil {
		return Base{}, fmt.Errorf("parent of %s: %w", commit, err)
	}
	out, err := r.git.Output(ctx, nil, "rev-parse", commit+"^", commit+"^^{tree}")
	if err != nil {
		return Base{}, fmt.Errorf("parent of %s: %w", commit, err)
	}
	ids := strings.Fields(string(out))
	if len(ids) != 2 {
		return Base{}, fmt.Errorf("parent of %s: git answered %q", commit, out)
	}
	return Base{Commit: ids[0], Tree: ids[1]}, nil
}

// Changed lists the paths that differ between two trees or commits, sorted.
func (r *Repo) Changed(ctx context.Context, from, to string) ([]string, error) {
	for _, id := range []string{from, to} {
		if err := r.Format.Check(id); err != nil {
			return nil, fmt.Errorf("compare %s with %s: %w", from, to, err)
		}
	}
	if from == to {
		return nil, nil
	}
	out, err := r.git.Output(ctx, nil, "diff-tree", "-r", "-z", "--name-only", "--no-renames", from, to)
	if err != nil {
		return nil, fmt.Errorf("compare %s with %s: %w", from, to, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
}

// TreeOf returns the tree of a commit, both by their full object names.
func (r *Repo) TreeOf(ctx context.Context, commit string) (string, error) {
	if err := r.Format.Check(commit); err != nil {
		return "", fmt.Errorf("tree of %s: %w", commit, err)
	}
	out, err := r.git.Output(ctx, nil, "rev-parse", "--verify", commit+"^{tree}")
	if err != nil {
		return "", fmt.Errorf("tree of %s: %w", commit, err)
	}
	return strings.TrimSpace(string(out)), nil
}
