//go:build linux || darwin

package workspace

import (
	"os"
	"path/filepath"
	"testing"
)

// prepared is a directory as a set-up leaves it, and a tree of the kind into
// which it was pushed.
func prepared(t *testing.T, kind Kind) *Tree {
	t.Helper()
	dir, outside := t.TempDir(), t.TempDir()
	root, _, _ := newRepo(t, map[string]string{"a": "1", "d/b": "2", "file": "3"})
	must(t, os.Symlink(outside, filepath.Join(root, "out")))
	_, repo, base := commitAll(t, root)
	trees := New(filepath.Join(dir, "trees"), repo, Options{Kind: kind, Cache: filepath.Join(dir, "cache")})
	tree, err := trees.Make(t.Context(), "act", base.Commit)
	must(t, err)
	layer := filepath.Join(dir, "layer")
	write(t, layer, map[string]string{"a": "other", "d/new": "x", "more/of/it": "y", "run": "z", "out/evil": "e", "file/below": "f"})
	must(t, os.Chmod(filepath.Join(layer, "run"), 0o755))
	must(t, os.Symlink("/usr/bin/env", filepath.Join(layer, "more/link")))
	must(t, tree.Push(t.Context(), layer))
	for name, want := range map[string]string{"a": "1", "d/b": "2", "d/new": "x", "more/of/it": "y", "run": "z", "file": "3"} {
		if got, err := os.ReadFile(filepath.Join(tree.Dir, name)); string(got) != want {
			t.Errorf("%s = %q, %v, want %q", name, got, err, want)
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("through a link of the tree was written: %v, %v", entries, err)
	}
	return tree
}

func TestWhatIsPushedIntoADirectoryIsNoChangeOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(t *testing.T, dir string)
		want string
	}{
		"nothing":                {func(*testing.T, string) {}, ""},
		"all of it taken away":   {func(t *testing.T, d string) { must(t, os.RemoveAll(filepath.Join(d, "more"))) }, ""},
		"new content":            {func(t *testing.T, d string) { write(t, d, map[string]string{"d/new": "w"}) }, "M d/new"},
		"more content":           {func(t *testing.T, d string) { write(t, d, map[string]string{"d/new": "xx"}) }, "M d/new"},
		"a program of it":        {func(t *testing.T, d string) { must(t, os.Chmod(filepath.Join(d, "d/new"), 0o755)) }, "X d/new"},
		"a file beside it":       {func(t *testing.T, d string) { write(t, d, map[string]string{"more/mine": "y"}) }, "M more/mine"},
		"the same, elsewhere":    {func(t *testing.T, d string) { write(t, d, map[string]string{"d/it": "y"}) }, "M d/it"},
		"a file of the tree":     {func(t *testing.T, d string) { write(t, d, map[string]string{"a": "other"}) }, "M a"},
		"one of the tree, taken": {func(t *testing.T, d string) { must(t, os.Remove(filepath.Join(d, "a"))) }, "D a"},
		"a link led elsewhere": {func(t *testing.T, d string) {
			must(t, os.Remove(filepath.Join(d, "more/link")))
			must(t, os.Symlink("of/it", filepath.Join(d, "more/link")))
		}, "L more/link"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []Kind{Plain, Pooled} {
				tree := prepared(t, kind)
				c.do(t, tree.Dir)
				adopted, err := tree.trees.Adopt(t.Context(), "act", tree.Base)
				must(t, err)
				for who, tree := range map[string]*Tree{"the same process": tree, "a later one": adopted} {
					if got, problems := changes(t, tree); short(got) != c.want || len(problems) > 0 {
						t.Errorf("kind %d, %s: changes %q, problems %v, want %q", kind, who, short(got), problems, c.want)
					}
				}
				must(t, tree.Remove(t.Context()))
			}
		})
	}
}

func TestWhatWasPushedIsGoneInTheNextUseOfACopy(t *testing.T) {
	tree := prepared(t, Pooled)
	must(t, tree.Remove(t.Context()))
	next, err := tree.trees.Make(t.Context(), "next", tree.Base)
	must(t, err)
	for _, name := range []string{"d/new", "more", "run"} {
		if _, err := os.Lstat(filepath.Join(next.Dir, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	if left, err := filepath.Glob(filepath.Join(tree.trees.root, ".*"+suffixRecord)); len(left) > 0 {
		t.Errorf("records stay behind: %v, %v", left, err)
	}
}

func TestADamagedRecordOfADirectoryLosesNoWork(t *testing.T) {
	tree := prepared(t, Pooled)
	write(t, tree.Dir, map[string]string{"a": "work"})
	must(t, os.WriteFile(tree.trees.hiddenPath("act", suffixRecord), nil, 0o600))
	adopted, err := tree.trees.Adopt(t.Context(), "act", tree.Base)
	must(t, err)
	if got, _ := changes(t, adopted); len(got) == 0 || got[0].Path != "a" {
		t.Errorf("changes %s", short(got))
	}
}

func TestCopiesAreParkedForTheUserWhoWroteThem(t *testing.T) {
	_, repo, base := newRepo(t, map[string]string{"a": "1"})
	dir := t.TempDir()
	own := New(filepath.Join(dir, "trees"), repo, Options{Kind: Pooled, Cache: filepath.Join(dir, "cache")})
	other := New(own.root, repo, Options{Kind: Pooled, Cache: own.options.Cache, UID: os.Geteuid() + 1000, GID: os.Getegid() + 1000})
	tree, err := own.Make(t.Context(), "one", base.Commit)
	must(t, err)
	must(t, tree.Remove(t.Context()))
	if got := parkedUnits(t, own); len(got) != 1 {
		t.Fatalf("parked %v", got)
	}
	if other.layerCache().leaseUnit(filepath.Join(dir, "unit")) {
		t.Error("a copy of one user was given to another")
	}
	must(t, os.MkdirAll(filepath.Join(other.layerCache().parkedDir(), "old"), 0o700))
	if n, err := own.Collect(t.Context(), Policy{}); n != 2 || err != nil {
		t.Errorf("collected %d copies, %v, want those of both users", n, err)
	}
}

func TestObjectsAreSeenWhereTheOptionsSayInACopyToo(t *testing.T) {
	_, repo, _ := newRepo(t, map[string]string{"a": "1"})
	for _, kind := range []Kind{Plain, Layered, Pooled} {
		stores, err := New(t.TempDir(), repo, Options{Kind: kind, Objects: "/run/objects"}).Stores()
		if err != nil || len(stores) != 1 || stores[0].Inside != "/run/objects" {
			t.Errorf("kind %d: %v, %v", kind, stores, err)
		}
	}
}
