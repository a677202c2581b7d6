package runenv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/confine/workspace"
	"github.com/pawl-run/pawl/internal/confine/workspace/filled"
	"github.com/pawl-run/pawl/internal/confine/workspace/toolset"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/mirror"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Purpose is what a copy is made for. A run has one copy for each.
type Purpose string

// The purposes.
const (
	ForAct   Purpose = "act"
	ForGate  Purpose = "gate"
	ForBase  Purpose = "base"
	ForRetry Purpose = "try" // of a gate that is tried again

	forSetup  Purpose = "setup"  // of dependencies
	forGuard  Purpose = "guard"  // as ForGate, whose copy may be there at the same time
	forReview Purpose = "review" // without files
)

// TreeName is the name of a run's copy among those of its repository.
func TreeName(id string, purpose Purpose) string { return id + "-" + string(purpose) }

// CopyPath is where a copy is, by its name.
func (h Host) CopyPath(name string) string { return filepath.Join(h.treesDir(), name) }

// Copy is a tree that a run works in. What the ignore rules of its base name
// is no change of it: build output, installed packages.
type Copy struct {
	*workspace.Tree
	repo    *git.Repo
	filling filled.Filling    // what the tree only names
	kept    filled.Cache      // where that is
	ignores *git.Ignores      // nil: everything counts
	stores  []workspace.Store // where git inside finds objects
	mirror  *mirror.Mirror    // that they are, where something confines programs
	scratch string            // folder for what programs leave beside the copy
	disk    *Disk             // nil: it is not measured
	layer   string            // what a set-up prepared for it, if any
	path    []string          // directories of prepared dependencies, for PATH, as programs see them
}

// openFiles shows the copy as it was made, and is to be closed.
func (k *Copy) openFiles() (fs.FS, func(), error) {
	layers := k.Overlay()
	if layers == nil {
		return os.DirFS(k.Dir), func() {}, nil
	}
	files, err := toolset.Open(*layers)
	if err != nil {
		return nil, nil, err
	}
	return files, func() { _ = files.Close() }, nil
}

// cacheDir is where programs add to caches that nobody else is to see.
func (k *Copy) cacheDir() string { return filepath.Join(k.scratch, "caches") }

// Where is the directory of the host that holds the copy's own content.
func (k *Copy) Where() string {
	if layers := k.Overlay(); layers != nil {
		return layers.Upper
	}
	return k.Dir
}

// topNames are those at the top of a layered copy, also such as an upper layer
// hides; nil means that there may be any.
func (k *Copy) topNames() (map[string]bool, error) {
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

// Leave lets go of the copy, which stays.
func (k *Copy) Leave() error {
	k.mirror.Release()
	if k.ignores == nil {
		return nil
	}
	return k.ignores.Close()
}

// Remove takes the copy away with what watches over it.
func (k *Copy) Remove(ctx context.Context) error {
	var err error
	if k.disk != nil && k.disk.full.Load() {
		err = k.PreventParking()
	}
	return errors.Join(err, k.Leave(), k.Tree.Remove(ctx), sandbox.RemoveTree(k.scratch))
}

// treesFor are the trees of one run for one purpose. The tree is known to the
// rules only when it is made or adopted, which is before anybody asks.
func (h Host) treesFor(ctx context.Context, repo *git.Repo, tier sandbox.Tier, runID string, purpose Purpose, seen *mirror.Mirror) (*workspace.Trees, *Copy) {
	k := &Copy{repo: repo, scratch: filepath.Join(h.RunDir(runID), "scratch-"+string(purpose)), mirror: seen}
	if purpose == ForGate || purpose == forGuard || purpose == forReview {
		// Nobody asks what a gate or a reviewer changed: its copy is used once.
		return h.newTrees(repo, tier, workspace.Limits{}, seen), k
	}
	// A run that is stopped still looks at what its agent left.
	ctx = context.WithoutCancel(ctx)
	k.ignores = repo.Ignores(ctx, filepath.Join(h.RunDir(runID), "rules-"+string(purpose)), func(dir string) error {
		return k.writeRules(ctx, dir)
	})
	return h.newTrees(repo, tier, workspace.Limits{Skip: k.ignores.Ignored}, seen), k
}

// Trees are the copies of a repository for programs in a tier: layers where
// something mounts them, else directories that are used again. Programs with a
// root of their own see both at the checkout's path.
func (h Host) Trees(repo *git.Repo, tier sandbox.Tier) *workspace.Trees {
	return h.newTrees(repo, tier, workspace.Limits{}, nil)
}

func (h Host) newTrees(repo *git.Repo, tier sandbox.Tier, limits workspace.Limits, seen *mirror.Mirror) *workspace.Trees {
	o := workspace.Options{Kind: workspace.Pooled, Limits: limits, Cache: filepath.Join(h.Home, "layers"), Mirror: seen}
	if tier.HasOwnRoot() {
		o.Objects = objectsSeen
		if sandbox.WhyNoLayers(h.Home) == nil {
			o.Kind = workspace.Layered
		}
		if uid, gid := tier.Owner(); uid != os.Geteuid() {
			o.UID, o.GID = uid, gid
		}
	}
	return workspace.New(h.treesDir(), repo, o)
}

// writeRules puts the .gitignore files of the copy's base into dir. Those in
// the copy may be an agent's.
func (k *Copy) writeRules(ctx context.Context, dir string) (err error) {
	if k.filling.Dir != "" {
		if err := copyRules(k.filling.Dir, dir); err != nil {
			return err
		}
	}
	rules := k.EntriesNamed(".gitignore")
	if len(rules) == 0 {
		return nil
	}
	blobs, err := k.repo.Blobs(ctx)
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

// copyRules puts the .gitignore files of submodules into dir.
func copyRules(filled, dir string) error {
	return filepath.WalkDir(filled, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.Name() != ".gitignore" || !e.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(filled, name)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		return errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, text, 0o600))
	})
}

// Changes is that of the tree. A new file that belongs to git LFS by the attributes of
// the base is a problem: it would be committed as a whole.
func (k *Copy) Changes(ctx context.Context) ([]object.FileChange, []workspace.Problem, error) {
	changes, problems, err := k.Tree.Changes(ctx)
	if err != nil || !k.filling.LFS {
		return changes, problems, err
	}
	var paths []string
	for _, c := range changes {
		held, err := k.HoldsFile(c.Path)
		if err != nil {
			return nil, nil, err
		}
		if !c.Delete && !held && c.Mode != object.ModeSymlink {
			paths = append(paths, c.Path)
		}
	}
	if len(paths) == 0 {
		return changes, problems, nil
	}
	kept, err := k.kept.KeptByLFS(ctx, k.repo, k.Tree, paths)
	if err != nil {
		return nil, nil, err
	}
	for i, path := range paths {
		if kept[i] {
			changes = slices.DeleteFunc(changes, func(c object.FileChange) bool { return c.Path == path })
			problems = append(problems, workspace.Problem{Path: path, Rule: workspace.RuleLFS})
		}
	}
	return changes, problems, nil
}

// fillCopy puts what the tree of a copy only names into it.
func (s Env) fillCopy(ctx context.Context, k *Copy) error {
	k.kept = s.filledCache()
	filling, known := s.Tools.knownFilling(k.From)
	if !known {
		var err error
		if filling, err = k.kept.FillingOf(ctx, s.Repo, k.Tree); err != nil {
			return err
		}
		s.Tools.rememberFilling(k.From, filling)
	}
	k.filling = filling
	if filling.Dir == "" {
		return nil
	}
	return k.Fill(ctx, filling.Dir)
}

// filledCache is where the content is that trees only name.
func (s Env) filledCache() filled.Cache {
	cache := filled.Cache{Prepared: s.filledDir(), Environ: s.Environ, Say: s.Say}
	if uid, gid := s.Owner(); uid >= 0 {
		cache.UID, cache.GID = uid, gid
	}
	return cache
}

func (h Host) filledDir() toolset.Prepared {
	return toolset.Prepared{Dir: filepath.Join(h.Home, "filled")}
}

// Copy makes a copy of a commit, with its dependencies prepared.
func (s Env) Copy(ctx context.Context, purpose Purpose, commit string) (*Copy, error) {
	k, err := s.copyWithoutSetup(ctx, purpose, commit)
	if err != nil {
		return nil, err
	}
	if none := sandbox.WhyNoLayers(s.Home); purpose == ForAct && s.Tier().HasOwnRoot() && none != nil {
		s.Say("copy: a complete one instead of layers, because " + none.Why)
	}
	err = s.prepareCopy(ctx, k)
	if err == nil {
		err = s.Disk.startCounting(ctx, k) // What was prepared is none of the run's doing.
	}
	if err != nil {
		return nil, errors.Join(err, k.Remove(context.WithoutCancel(ctx)))
	}
	return k, nil
}

// EmptyCopy makes a copy of a tree without files, for programs of which nothing is kept.
func (s Env) EmptyCopy(ctx context.Context) (*Copy, error) {
	k, err := s.copyWithoutSetup(ctx, forReview, s.Repo.Format.EmptyTree())
	if err != nil {
		return nil, err
	}
	if err := s.Disk.startCounting(ctx, k); err != nil {
		return nil, errors.Join(err, k.Remove(context.WithoutCancel(ctx)))
	}
	return k, nil
}

// copyWithoutSetup makes a copy of a commit or tree. One of the same purpose that could not
// be removed before goes first.
func (s Env) copyWithoutSetup(ctx context.Context, purpose Purpose, commit string) (k *Copy, err error) {
	seen, err := s.openHistory(ctx, commit)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			seen.Release()
		}
	}()
	trees, k := s.treesFor(ctx, s.Repo, s.Tier(), s.ID, purpose, seen)
	name := TreeName(s.ID, purpose)
	tree, err := trees.Make(ctx, name, commit)
	if errors.Is(err, fs.ErrExist) {
		if err := trees.Remove(ctx, name); err != nil {
			return nil, err
		}
		tree, err = trees.Make(ctx, name, commit)
	}
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", commit[:min(len(commit), 12)], err)
	}
	k.Tree = tree
	if k.stores, err = trees.Stores(); err != nil {
		return nil, err
	}
	if err := s.fillCopy(ctx, k); err != nil {
		return nil, errors.Join(err, tree.Remove(context.WithoutCancel(ctx)))
	}
	return k, nil
}

// Adopt takes up the copy that a dead process left of a commit, or returns nil
// if there is none.
func (h Host) Adopt(ctx context.Context, repo *git.Repo, run loop.Run) (*Copy, error) {
	name := TreeName(run.ID, ForAct)
	if info, err := os.Lstat(h.CopyPath(name)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err == nil && !info.IsDir() {
		return nil, fmt.Errorf("adopt the tree of run %s: %s is not a folder", run.ID, h.CopyPath(name))
	}
	return h.AdoptKept(ctx, repo, run, name)
}

// AdoptKept is Adopt for a copy that has another name by now.
func (h Host) AdoptKept(ctx context.Context, repo *git.Repo, run loop.Run, name string) (*Copy, error) {
	trees, k := h.treesFor(ctx, repo, sandbox.Tier(run.Sandbox), run.ID, ForAct, nil)
	tree, err := trees.Adopt(ctx, name, run.BaseCommit)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("adopt the tree of run %s: %w", run.ID, err), k.Leave())
	}
	k.Tree = tree
	return k, nil
}

// Drop removes all copies of a run.
func (h Host) Drop(ctx context.Context, repo *git.Repo, tier sandbox.Tier, id string) error {
	trees := h.Trees(repo, tier)
	var err error
	for _, purpose := range []Purpose{ForAct, ForGate, forGuard, ForBase, ForRetry, forSetup, forReview} {
		err = errors.Join(err, trees.Remove(ctx, TreeName(id, purpose)))
	}
	return err
}
