package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/ground/fault"
)

// manyLayers makes a base and a delta over it, both of which nobody uses.
func manyLayers(t *testing.T) (*Trees, string, string) {
	t.Helper()
	dir, repo, base := newRepo(t, map[string]string{"a": "1"})
	trees := layeredTrees(t, repo, Limits{})
	one, err := trees.Make(t.Context(), "one", base.Commit)
	must(t, err)
	write(t, dir, map[string]string{"a": "2"})
	_, _, next := commitAll(t, dir)
	two, err := trees.Make(t.Context(), "two", next.Commit)
	must(t, err)
	must(t, errors.Join(one.Remove(t.Context()), two.Remove(t.Context())))
	return trees, base.Commit, next.Commit
}

func TestCollectKeepsWhatIsUsedOrYoung(t *testing.T) {
	now := time.Now()
	old := Policy{Now: now.Add(48 * time.Hour), Age: 24 * time.Hour, Count: 10}
	for name, c := range map[string]struct {
		policy Policy
		use    func(t *testing.T, trees *Trees, base, next string)
		bases  int
		deltas int
	}{
		"young ones":  {Policy{Now: now, Age: time.Hour, Count: 10}, nil, 1, 1},
		"old ones go": {old, nil, 0, 0},
		"too many go": {Policy{Now: now, Age: time.Hour}, nil, 0, 0},
		"the newest stays, with its base": {Policy{Now: now, Age: time.Hour, Count: 1}, func(t *testing.T, trees *Trees, _, next string) {
			tree, err := trees.Make(t.Context(), "use", next)
			must(t, err)
			must(t, tree.Remove(t.Context()))
		}, 1, 1},
		"a living tree holds its base": {old, func(t *testing.T, trees *Trees, base, _ string) {
			_, err := trees.Make(t.Context(), "use", base)
			must(t, err)
		}, 1, 0},
		"a living tree holds its delta": {old, func(t *testing.T, trees *Trees, _, next string) {
			_, err := trees.Make(t.Context(), "use", next)
			must(t, err)
		}, 1, 1},
		"a left tree holds its layers": {old, func(t *testing.T, trees *Trees, _, next string) {
			tree, err := trees.Make(t.Context(), "use", next)
			must(t, err)
			tree.form.release()
		}, 1, 1},
		"what an earlier start of the machine made goes": {Policy{Now: now, Age: time.Hour, Count: 10}, func(t *testing.T, trees *Trees, _, _ string) {
			for _, name := range layerNames(t, trees) {
				must(t, os.WriteFile(filepath.Join(trees.layerCache().layerDir(name), "boot"), nil, 0o600))
			}
		}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			trees, base, next := manyLayers(t)
			if c.use != nil {
				c.use(t, trees, base, next)
			}
			removed, err := trees.Collect(t.Context(), c.policy)
			must(t, err)
			left := layerNames(t, trees)
			deltas := slices.DeleteFunc(slices.Clone(left), func(n string) bool { return !strings.Contains(n, "-") })
			if len(deltas) != c.deltas || len(left)-len(deltas) != c.bases || removed != 2-len(left) {
				t.Errorf("removed %d, left %v", removed, left)
			}
			must(t, trees.Remove(t.Context(), "use"))
			tree, err := trees.Make(t.Context(), "again", next)
			must(t, err)
			if got := mount(t, t, tree, nil).run(t, "cat a"); got != "2" {
				t.Errorf("made again: %q", got)
			}
		})
	}
}

func TestAnInterruptedCollectIsFinishedByTheNext(t *testing.T) {
	for _, point := range []string{"workspace.collect.before", "workspace.collect.after", "workspace.collect.before:2", "workspace.collect.after:2"} {
		t.Run(point, func(t *testing.T) {
			trees, _, _ := manyLayers(t)
			s := trees.layerCache()
			must(t, os.MkdirAll(s.makingDir("x"), 0o700))
			must(t, os.MkdirAll(filepath.Join(s.layersDir(), ".y"+suffixGone), 0o700))
			plan, err := fault.Parse(point + "=EIO")
			must(t, err)
			everything := Policy{Now: time.Now(), Age: -time.Hour}
			if _, err := trees.Collect(fault.With(t.Context(), plan), everything); !errors.Is(err, syscall.EIO) {
				t.Errorf("Collect = %v, want EIO", err)
			}
			_, err = trees.Collect(t.Context(), everything)
			must(t, err)
			for _, dir := range []string{s.layersDir(), s.locksDir(), s.commitsDir()} {
				if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
					t.Errorf("%s holds %v, %v", filepath.Base(dir), entries, err)
				}
			}
		})
	}
}

func TestTreesAreMadeWhileLayersAreCollected(t *testing.T) {
	trees, base, next := manyLayers(t)
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if _, err := trees.Collect(t.Context(), Policy{Now: time.Now(), Age: -time.Hour}); err != nil {
				done <- err
				return
			}
		}
	}()
	for i := range 20 {
		tree, err := trees.Make(t.Context(), fmt.Sprint("t", i), []string{base, next}[i%2])
		must(t, err)
		for _, at := range layersOf(tree).lower {
			if _, err := readListing(at.listingPath()); err != nil {
				t.Error(err)
			}
		}
		must(t, tree.Remove(t.Context()))
	}
	close(stop)
	must(t, <-done)
}
