package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Parent returns the first parent of a commit, by its full object name, with
// the parent's tree.
func (r *Repo) Parent(ctx context.Context, commit string) (b Base, err error) {
	defer func() {
		if err != nil {
			b, err = Base{}, fmt.Errorf("parent of %s: %w", commit, err)
		}
	}()
	blobs, err := r.Blobs(ctx)
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	parents, err := blobs.Parents(commit)
	if err != nil {
		return b, err
	}
	if len(parents) == 0 {
		return b, errors.New("it has none")
	}
	b.Commit = parents[0]
	b.Tree, err = blobs.TreeOf(b.Commit)
	return b, err
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
	if len(out) == 0 {
		return nil, nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
}

// TreeWithout returns the name that the tree of a commit, or a tree, would have without
// those files of the folders that enter lets it into. Nothing is written.
func (r *Repo) TreeWithout(ctx context.Context, rev string, enter, drop func(path string) bool) (tree string, err error) {
	blobs, err := r.Blobs(ctx)
	if err != nil {
		return "", fmt.Errorf("a part of %s: %w", rev, err)
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	if tree, err = blobs.TreeWithout(rev, enter, drop); err != nil {
		return "", fmt.Errorf("a part of %s: %w", rev, err)
	}
	return tree, nil
}

// TreeOf returns the tree of a commit, both by their full object names.
func (r *Repo) TreeOf(ctx context.Context, commit string) (tree string, err error) {
	blobs, err := r.Blobs(ctx)
	if err != nil {
		return "", fmt.Errorf("tree of %s: %w", commit, err)
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	if tree, err = blobs.TreeOf(commit); err != nil {
		return "", fmt.Errorf("tree of %s: %w", commit, err)
	}
	return tree, nil
}
