package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/ground/dirglob"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/flock"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var (
	beforeLayer = fault.New("workspace.layer.before")
	afterLayer  = fault.New("workspace.layer.after")
)

// layerCache is the folder of one repository in the cache:
//
//	layers/TREE         a base: the complete checkout of a tree
//	layers/TREE-OTHER   a delta: the changes from the base OTHER to TREE
//	locks/…             one for each layer, shared by all its users
//	commits/COMMIT      the tree of a commit
//	parked/…            copies that wait for their next use
//
// A layer gets its name only when it is complete, and is never written to again. It is
// valid only until the machine restarts: it was not synced to the disk, and after a power
// failure its content is unknown.
type layerCache struct {
	dir   string
	trees *Trees
}

// layer is one layer, with a shared lock.
type layer struct {
	name  string // TREE or TREE-OTHER
	dir   string
	claim *os.File
}

func (l *layer) filesDir() string    { return filepath.Join(l.dir, "files") }
func (l *layer) listingPath() string { return filepath.Join(l.dir, "listing") }
func (l *layer) indexPath() string   { return filepath.Join(l.filesDir(), ".git", "index") }

// releaseLock releases a layer. A nil layer is allowed.
func (l *layer) releaseLock() {
	if l != nil {
		l.claim.Close()
	}
}

func (s *layerCache) layersDir() string            { return filepath.Join(s.dir, "layers") }
func (s *layerCache) layerDir(n string) string     { return filepath.Join(s.layersDir(), n) }
func (s *layerCache) locksDir() string             { return filepath.Join(s.dir, "locks") }
func (s *layerCache) lockPath(name string) string  { return filepath.Join(s.locksDir(), name) }
func (s *layerCache) commitsDir() string           { return filepath.Join(s.dir, "commits") }
func (s *layerCache) commitPath(rev string) string { return filepath.Join(s.commitsDir(), rev) }
func (s *layerCache) makingDir(name string) string {
	return filepath.Join(s.layersDir(), "."+name+suffixNew)
}

// suffixMake ends the name of the lock that is held while a layer is made.
const suffixMake = ".make"

var objectName = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// openLayers returns the tree of rev and its layers, topmost first. They are locked, and
// the caller must release them.
func (s *layerCache) openLayers(ctx context.Context, rev string) (tree string, lower []*layer, err error) {
	boot, err := bootID()
	if err == nil {
		err = s.trees.checkCache()
	}
	if err != nil {
		return "", nil, fmt.Errorf("make layers: %w", err)
	}
	if objectName.MatchString(rev) {
		tree = s.treeOf(rev)
		lower, err = s.holdExisting(ctx, tree, boot)
		if err != nil || lower != nil {
			return tree, lower, err
		}
	}
	blobs, err := s.trees.repo.Blobs(ctx)
	if err != nil {
		return "", nil, err
	}
	defer blobs.Close()
	if tree, err = blobs.TreeOf(rev); err != nil {
		return "", nil, err
	}
	if lower, err = s.buildLayers(ctx, blobs, tree, boot); err == nil && rev != tree {
		err = s.rememberTree(rev, tree)
	}
	return tree, lower, err
}

// treeOf returns the recorded tree of a commit, or rev itself: it may be a tree.
func (s *layerCache) treeOf(rev string) string {
	if text, err := os.ReadFile(s.commitPath(rev)); err == nil && objectName.Match(text) {
		return string(text)
	}
	return rev
}

func (s *layerCache) rememberTree(commit, tree string) error {
	path := s.commitPath(commit)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(path), ".")
	if err != nil {
		return err
	}
	_, err = next.WriteString(tree)
	if err = errors.Join(err, next.Close()); err == nil {
		err = os.Rename(next.Name(), path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // It was collected already, and is recorded again.
	}
	return err
}

// holdExisting locks the layers of a tree. It returns nil if there are none.
func (s *layerCache) holdExisting(ctx context.Context, tree, boot string) ([]*layer, error) {
	base, err := s.holdLayer(ctx, tree, boot)
	if err != nil {
		return nil, err
	}
	if base != nil {
		return []*layer{base}, nil
	}
	for _, dir := range dirglob.Find(s.layersDir(), tree+"-*") {
		_, other, _ := strings.Cut(filepath.Base(dir), "-")
		base, err := s.holdLayer(ctx, other, boot)
		if err != nil {
			return nil, err
		}
		if base == nil {
			continue
		}
		delta, err := s.holdLayer(ctx, filepath.Base(dir), boot)
		if err == nil && delta != nil {
			return []*layer{delta, base}, nil
		}
		base.releaseLock()
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// holdLayer locks a layer for use. It returns nil if the layer does not exist or is not
// valid.
func (s *layerCache) holdLayer(ctx context.Context, name, boot string) (*layer, error) {
	if !s.isSound(name, boot) {
		return nil, nil
	}
	claim, err := flock.WaitShared(ctx, s.lockPath(name))
	if err != nil {
		return nil, err
	}
	if !s.isSound(name, boot) { // It was collected meanwhile.
		return nil, claim.Close()
	}
	// The time of the lock is the time of the last use.
	if _, err := claim.WriteAt([]byte{'\n'}, 0); err != nil {
		return nil, errors.Join(err, claim.Close())
	}
	return &layer{name: name, dir: s.layerDir(name), claim: claim}, nil
}

func (s *layerCache) isSound(name, boot string) bool {
	text, err := os.ReadFile(filepath.Join(s.layerDir(name), "boot"))
	return err == nil && boot != "" && string(text) == boot
}

// buildLayers makes the layers of a tree: a delta if there is a near base, otherwise a
// base. If several processes need the same tree, one makes it and the others wait.
func (s *layerCache) buildLayers(ctx context.Context, blobs *object.Blobs, tree, boot string) ([]*layer, error) {
	turn, err := flock.Wait(ctx, s.lockPath(tree+suffixMake))
	if err != nil {
		return nil, err
	}
	defer turn.Close()
	if lower, err := s.holdExisting(ctx, tree, boot); err != nil || lower != nil {
		return lower, err
	}
	base, diff, err := s.nearestBase(ctx, blobs, tree, boot)
	if err != nil {
		return nil, err
	}
	if base == nil {
		made, err := s.makeLayer(ctx, tree, boot, func(l *layer) error { return s.writeBase(ctx, l, blobs, tree) })
		if err != nil {
			return nil, err
		}
		return []*layer{made}, nil
	}
	made, err := s.makeLayer(ctx, tree+"-"+base.name, boot, func(l *layer) error { return s.writeDelta(ctx, l, blobs, base, diff) })
	if err != nil {
		base.releaseLock()
		return nil, err
	}
	return []*layer{made, base}, nil
}

// makeLayer lets fill write a layer under a hidden name, renames it and locks it. The
// caller has the lock for making it.
func (s *layerCache) makeLayer(ctx context.Context, name, boot string, fill func(*layer) error) (*layer, error) {
	made := &layer{name: name, dir: s.makingDir(name)}
	if err := errors.Join(sandbox.RemoveTree(made.dir), os.MkdirAll(made.dir, 0o700)); err != nil {
		return nil, err
	}
	err := gitDir{owner: s.trees.programOwner()}.makeFolder(made.filesDir())
	if err == nil {
		err = fill(made)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(made.dir, "boot"), []byte(boot), 0o600)
	}
	if err == nil {
		err = beforeLayer.Hit(ctx)
	}
	if err == nil {
		err = s.placeLayer(ctx, made)
	}
	if err != nil {
		return nil, errors.Join(err, sandbox.RemoveTree(made.dir))
	}
	if err := afterLayer.Hit(ctx); err != nil {
		made.releaseLock()
		return nil, err
	}
	return made, nil
}

// placeLayer gives a complete layer its name. A layer that has the name already is from
// an earlier start of the machine and unused.
func (s *layerCache) placeLayer(ctx context.Context, made *layer) error {
	if err := s.dropLayer(ctx, made.name); err != nil {
		return err
	}
	claim, err := flock.WaitShared(ctx, s.lockPath(made.name))
	if err != nil {
		return err
	}
	dir := s.layerDir(made.name)
	if err := os.Rename(made.dir, dir); err != nil {
		return errors.Join(err, claim.Close())
	}
	made.dir, made.claim = dir, claim
	return nil
}

// dropLayer removes a layer that nobody holds. It may be missing.
func (s *layerCache) dropLayer(ctx context.Context, name string) error {
	dir := s.layerDir(name)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	claim, err := flock.Wait(ctx, s.lockPath(name))
	if err != nil {
		return err
	}
	defer claim.Close()
	return s.discardLayer(name)
}

// discardLayer renames a layer and removes it. The caller has its exclusive lock.
func (s *layerCache) discardLayer(name string) error {
	gone := filepath.Join(s.layersDir(), "."+name+suffixGone)
	if err := sandbox.RemoveTree(gone); err != nil {
		return err
	}
	if err := os.Rename(s.layerDir(name), gone); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return sandbox.RemoveTree(gone)
}

// Limits for deltas: how near a base must be, and how many bases are tried.
const (
	maxDelta = 2000 // files
	maxBases = 4
)

// nearestBase locks and returns the base from which the tree differs least; nil if none is
// near.
func (s *layerCache) nearestBase(ctx context.Context, blobs *object.Blobs, tree, boot string) (best *layer, diff object.Differences, err error) {
	limit := maxDelta
	for _, name := range s.recentBases() {
		base, held := s.holdLayer(ctx, name, boot)
		if held == nil && base == nil {
			continue
		}
		err = held
		var d object.Differences
		if err == nil {
			d, err = blobs.Differ(name, tree, limit, 0)
		}
		switch {
		case err == nil:
			best.releaseLock()
			best, diff, limit = base, d, len(d.Paths)-1
		case errors.Is(err, object.ErrManyChanges), errors.Is(err, loop.ErrNotFound):
			// It is too far away, or the repository no longer has its tree.
			base.releaseLock()
		default:
			base.releaseLock()
			best.releaseLock()
			return nil, object.Differences{}, err
		}
	}
	return best, diff, nil
}

// recentBases lists the most recently used bases, the latest first.
func (s *layerCache) recentBases() []string {
	entries, _ := os.ReadDir(s.layersDir())
	var names []string
	used := map[string]int64{}
	for _, e := range entries {
		if info, err := os.Lstat(s.lockPath(e.Name())); err == nil && objectName.MatchString(e.Name()) {
			names, used[e.Name()] = append(names, e.Name()), info.ModTime().UnixNano()
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(used[b], used[a]) })
	return names[:min(len(names), maxBases)]
}
