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
	"time"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/flock"
)

var (
	beforeCollect = fault.New("workspace.collect.before")
	afterCollect  = fault.New("workspace.collect.after")
)

// Policy says which unused parts of the cache stay.
type Policy struct {
	Now   time.Time
	Age   time.Duration // since the last use; older parts are removed
	Count int           // of each repository, the most recently used layers, and as many parked copies
}

// Collect removes layers and parked copies that the policy does not keep, of all
// repositories in the cache, and returns how many. Layers of a tree stay, also if a dead
// process left it below this root. Collect may run at any time, also twice at once, and
// removes what an interrupted Collect left.
func (t *Trees) Collect(ctx context.Context, p Policy) (removed int, err error) {
	entries, err := os.ReadDir(t.options.Cache)
	if errors.Is(err, fs.ErrNotExist) || t.options.Cache == "" {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("collect layers: %w", err)
	}
	used := map[string]bool{}
	for _, r := range t.readRecords() {
		for _, name := range r.Lower {
			used[name] = true
		}
	}
	c := &collector{policy: p, used: used}
	for _, e := range entries {
		if err := c.collectCache(ctx, &layerCache{dir: filepath.Join(t.options.Cache, e.Name()), trees: t}); err != nil {
			return c.removed, fmt.Errorf("collect layers: %w", err)
		}
	}
	return c.removed, nil
}

type collector struct {
	policy  Policy
	used    map[string]bool // layers of trees without a living process
	removed int
}

func (c *collector) collectCache(ctx context.Context, s *layerCache) error {
	boot, _ := bootID() // Without a boot id there are no layers.
	for _, name := range c.expiredLayers(s, boot) {
		if err := c.collectLayer(ctx, s, name); err != nil {
			return err
		}
	}
	for _, dir := range s.allParkedDirs() {
		if err := c.collectParked(ctx, dir); err != nil {
			return err
		}
	}
	return errors.Join(c.collectLeftovers(s), c.collectCommits(s))
}

// expiredLayers lists the layers that the policy does not keep, deltas first, so that no
// delta is ever without its base.
func (c *collector) expiredLayers(s *layerCache, boot string) []string {
	entries, _ := os.ReadDir(s.layersDir())
	names, used := []string{}, map[string]time.Time{}
	for _, e := range entries {
		if name := e.Name(); name[0] != '.' {
			names = append(names, name)
			if info, err := os.Lstat(s.lockPath(name)); err == nil {
				used[name] = info.ModTime()
			}
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(used[b].Compare(used[a]), cmp.Compare(a, b)) })
	keep, n := map[string]bool{}, 0
	for _, name := range names {
		young := n < c.policy.Count && c.policy.Now.Sub(used[name]) <= c.policy.Age
		if s.isSound(name, boot) && (young || c.used[name]) {
			n++
			keep[name] = true
			if _, base, delta := strings.Cut(name, "-"); delta {
				keep[base] = true
			}
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return keep[name] })
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return names
}

// collectLayer removes a layer and its lock, unless somebody holds it.
func (c *collector) collectLayer(ctx context.Context, s *layerCache, name string) error {
	if err := beforeCollect.Hit(ctx); err != nil {
		return err
	}
	return ifUnlocked(s.lockPath(name), func() error {
		if err := s.discardLayer(name); err != nil {
			return err
		}
		c.removed++
		return errors.Join(os.Remove(s.lockPath(name)), afterCollect.Hit(ctx))
	})
}

// collectParked removes copies that are parked for longer than the policy says.
func (c *collector) collectParked(ctx context.Context, dir string) error {
	entries, _ := os.ReadDir(dir)
	at := map[string]time.Time{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			at[e.Name()] = info.ModTime()
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return at[b.Name()].Compare(at[a.Name()]) })
	n := 0
	for _, e := range entries {
		hidden := e.Name()[0] == '.'
		if n++; !hidden && n <= c.policy.Count && c.policy.Now.Sub(at[e.Name()]) <= c.policy.Age {
			continue
		}
		gone := filepath.Join(dir, "."+strings.TrimPrefix(e.Name(), "."))
		if err := beforeCollect.Hit(ctx); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(dir, e.Name()), gone); err != nil {
			continue // It is in use again.
		}
		if err := sandbox.RemoveTree(gone); err != nil {
			return err
		}
		c.removed++
	}
	return nil
}

// collectLeftovers removes what a process that was killed while making or removing a layer
// left, and the locks that nobody needs.
func (c *collector) collectLeftovers(s *layerCache) error {
	entries, _ := os.ReadDir(s.layersDir())
	for _, e := range entries {
		name, hidden := strings.CutPrefix(e.Name(), ".")
		if !hidden {
			continue
		}
		name = strings.TrimSuffix(strings.TrimSuffix(name, suffixNew), suffixGone)
		tree, _, _ := strings.Cut(name, "-")
		if err := ifUnlocked(s.lockPath(tree+suffixMake), func() error { return sandbox.RemoveTree(filepath.Join(s.layersDir(), e.Name())) }); err != nil {
			return err
		}
	}
	locks, _ := os.ReadDir(s.locksDir())
	for _, e := range locks {
		if _, err := os.Lstat(s.layerDir(e.Name())); err == nil {
			continue
		}
		if err := ifUnlocked(s.lockPath(e.Name()), func() error { return os.Remove(s.lockPath(e.Name())) }); err != nil {
			return err
		}
	}
	return nil
}

// ifUnlocked calls do with the lock, or not at all if somebody else has it.
func ifUnlocked(lock string, do func() error) error {
	claim, err := flock.Try(lock)
	if errors.Is(err, flock.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	defer claim.Close()
	return do()
}

// collectCommits removes the recorded trees of commits that are older than layers may be.
func (c *collector) collectCommits(s *layerCache) error {
	entries, _ := os.ReadDir(s.commitsDir())
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || c.policy.Now.Sub(info.ModTime()) <= c.policy.Age {
			continue
		}
		if err := os.Remove(s.commitPath(e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
