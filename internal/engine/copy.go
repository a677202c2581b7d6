package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/sandbox"
	"github.com/pawl-run/pawl/internal/workspace"
	"github.com/pawl-run/pawl/internal/workspace/kit"
)

// copied is a tree that a run works in. What the ignore rules of its base name
// is no change of it: build output, installed packages.
type copied struct {
	*workspace.Tree
	ignores *git.Ignores      // nil: everything counts
	stores  []workspace.Store // where git inside finds the repository's objects
	scratch string            // folder for what programs leave beside the copy
	layer   string            // what a set-up prepared for it, if any
	path    []string          // directories of prepared dependencies, for PATH, as programs see them
}

// files shows the copy as it was made, and is to be closed.
func (k *copied) files() (fs.FS, func(), error) {
	layers := k.Overlay()
	if layers == nil {
		return os.DirFS(k.Dir), func() {}, nil
	}
	files, err := kit.Open(*layers)
	if err != nil {
		return nil, nil, err
	}
	return files, func() { _ = files.Close() }, nil
}

// caches is where programs add to caches that nobody else is to see.
func (k *copied) caches() string { return filepath.Join(k.scratch, "caches") }

// where is the directory of the host that holds the copy's own content.
func (k *copied) where() string {
	if layers := k.Overlay(); layers != nil {
		return layers.Upper
	}
	return k.Dir
}

// names are those at the top of a layered copy, also such as an upper layer
// hides; nil means that there may be any.
func (k *copied) names() (map[string]bool, error) {
	layers := k.Overlay()
	if layers == nil {
		return nil, nil
	}
	there := map[string]bool{}
	for _, dir := range append([]string{layers.Upper}, layers.Lower...) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("list what is protected: %w", err)
		}
		for _, e := range entries {
			there[e.Name()] = true
		}
	}
	return there, nil
}

// remove takes the copy away with what watches over it.
func (k *copied) remove(ctx context.Context) error {
	var err error
	if k.ignores != nil {
		err = k.ignores.Close()
	}
	return errors.Join(err, k.Remove(ctx), sandbox.Discard(k.scratch))
}

// copies are the trees of one run for one purpose. The tree is known to the
// rules only when it is made or adopted, which is before anybody asks.
func (e *Engine) copies(ctx context.Context, repo *git.Repo, tier sandbox.Tier, runID, purpose string) (*workspace.Trees, *copied) {
	k := &copied{scratch: filepath.Join(e.runDir(runID), "scratch-"+purpose)}
	if purpose == purposeGate {
		// What one gate leaves behind must not reach the next, ignored or not.
		return e.trees(repo, tier, workspace.Limits{}), k
	}
	// A run that is stopped still looks at what its agent left.
	ctx = context.WithoutCancel(ctx)
	k.ignores = repo.Ignores(ctx, filepath.Join(e.runDir(runID), "rules-"+purpose), func(dir string) error {
		return writeRules(ctx, repo, k.Tree, dir)
	})
	return e.trees(repo, tier, workspace.Limits{Skip: k.ignores.Ignored}), k
}

// trees are the copies of a repository for programs in a tier: layers where
// something mounts them, else directories that are used again.
func (e *Engine) trees(repo *git.Repo, tier sandbox.Tier, limits workspace.Limits) *workspace.Trees {
	o := workspace.Options{Kind: workspace.Pooled, Limits: limits, Cache: filepath.Join(e.Home, "layers")}
	if tier.Mounts() {
		o.Kind, o.Objects = workspace.Layered, objectsSeen
		if uid, gid := tier.Owner(); uid != os.Geteuid() {
			o.UID, o.GID = uid, gid
		}
	}
	return workspace.New(e.treesDir(), repo, o)
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

// copyOf makes a copy of a commit, with its dependencies prepared.
func (s site) copyOf(ctx context.Context, purpose, commit string) (*copied, error) {
	k, err := s.bare(ctx, purpose, commit)
	if err != nil {
		return nil, err
	}
	if err := s.prepare(ctx, k); err != nil {
		return nil, errors.Join(err, k.remove(context.WithoutCancel(ctx)))
	}
	return k, nil
}

// bare makes a copy of a commit or tree. One of the same purpose that could not
// be removed before goes first.
func (s site) bare(ctx context.Context, purpose, commit string) (*copied, error) {
	trees, k := s.copies(ctx, s.repo, s.tier(), s.id, purpose)
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
	if k.stores, err = trees.Stores(); err != nil {
		return nil, err
	}
	return k, nil
}

// adopt takes up the copy that a dead process left of a commit, or returns nil
// if there is none.
func (e *Engine) adopt(ctx context.Context, repo *git.Repo, run loop.Run) (*copied, error) {
	trees, k := e.copies(ctx, repo, sandbox.Tier(run.Sandbox), run.ID, purposeAct)
	tree, err := trees.Adopt(ctx, treeName(run.ID, purposeAct), run.BaseCommit)
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("adopt the tree of run %s: %w", run.ID, err)
	}
	k.Tree = tree
	return k, nil
}
