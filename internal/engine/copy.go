package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/workspace"
)

// copied is a tree that a run works in. What the ignore rules of its base name
// is no change of it: build output, installed packages.
type copied struct {
	*workspace.Tree
	ignores *git.Ignores // nil: everything counts
}

// remove takes the copy away with what watches over it.
func (k *copied) remove(ctx context.Context) error {
	if k.ignores == nil {
		return k.Remove(ctx)
	}
	return errors.Join(k.ignores.Close(), k.Remove(ctx))
}

// copies are the trees of one run for one purpose. The tree is known to the
// rules only when it is made or adopted, which is before anybody asks.
func (e *Engine) copies(ctx context.Context, repo *git.Repo, runID, purpose string) (*workspace.Trees, *copied) {
	k := &copied{}
	if purpose == purposeGate {
		// What one gate leaves behind must not reach the next, ignored or not.
		return workspace.New(e.treesDir(), repo, workspace.Limits{}), k
	}
	// A run that is stopped still looks at what its agent left.
	ctx = context.WithoutCancel(ctx)
	k.ignores = repo.Ignores(ctx, filepath.Join(e.runDir(runID), "rules-"+purpose), func(dir string) error {
		return writeRules(ctx, repo, k.Tree, dir)
	})
	return workspace.New(e.treesDir(), repo, workspace.Limits{Skip: k.ignores.Ignored}), k
}

// writeRules puts the .gitignore files of the copy's base into dir. Those in
// the copy may be an agent's.
func writeRules(ctx context.Context, repo *git.Repo, tree *workspace.Tree, dir string) (err error) {
	rules := tree.Named(".gitignore")
	if len(rules) == 0 {
		return nil
	}
	blobs, err := repo.Blobs(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	for _, r := range rules {
		text, err := blobs.Read(r.ID)
		if err != nil {
			return err
		}
		name := filepath.Join(dir, filepath.FromSlash(r.Path))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// copyOf makes a copy of a commit for the run.
func (c *cycle) copyOf(ctx context.Context, purpose, commit string) (*copied, error) {
	c.copied = true
	return c.site().copyOf(ctx, purpose, commit)
}

// copyOf makes a copy of a commit. One of the same purpose that could not be
// removed before goes first.
func (s site) copyOf(ctx context.Context, purpose, commit string) (*copied, error) {
	trees, k := s.copies(ctx, s.repo, s.id, purpose)
	name := treeName(s.id, purpose)
	tree, err := trees.Make(ctx, name, commit)
	if errors.Is(err, fs.ErrExist) {
		if err := trees.Remove(ctx, name); err != nil {
			return nil, err
		}
		tree, err = trees.Make(ctx, name, commit)
	}
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", short(commit), err)
	}
	k.Tree = tree
	return k, nil
}

// adopt takes up the copy that a dead process left of a commit, or returns nil
// if there is none.
func (e *Engine) adopt(ctx context.Context, repo *git.Repo, runID, commit string) (*copied, error) {
	trees, k := e.copies(ctx, repo, runID, purposeAct)
	tree, err := trees.Adopt(ctx, treeName(runID, purposeAct), commit)
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("adopt the tree of run %s: %w", runID, err)
	}
	k.Tree = tree
	return k, nil
}
