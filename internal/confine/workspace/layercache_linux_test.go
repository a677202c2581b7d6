package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestSixteenAtOnceMakeOneBase(t *testing.T) {
	_, repo, base := newRepo(t, map[string]string{"a": "1", "b/c": "2"})
	trees := layeredTrees(t, repo, Limits{})
	plan, err := fault.Parse("workspace.layer.before:2+=EIO") // A second layer would fail.
	must(t, err)
	ctx := fault.With(t.Context(), plan)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			tree, err := New(trees.root, repo, trees.options).Make(ctx, fmt.Sprint("t", i), base.Commit)
			if err != nil {
				t.Error(err)
				return
			}
			if list, err := layersOf(tree).readStack(); err != nil || len(list) != 1 || list[0].n != 2 {
				t.Errorf("layers %v, %v", list, err)
			}
		})
	}
	all.Wait()
	if names := layerNames(t, trees); !slices.Equal(names, []string{base.Tree}) {
		t.Errorf("layers %v", names)
	}
}

func TestAWarmTreeStartsNoProcess(t *testing.T) {
	dir, _, base := newRepo(t, map[string]string{"a": "1", ".gitignore": "x"})
	var count starts
	repo, err := git.OpenWith(t.Context(), &count, dir)
	must(t, err)
	trees := layeredTrees(t, repo, Limits{})
	first, err := trees.Make(t.Context(), "first", base.Commit)
	must(t, err)
	must(t, first.Remove(t.Context()))
	before := count.n
	tree, err := trees.Make(t.Context(), "second", base.Commit)
	must(t, err)
	write(t, layersOf(tree).upper, map[string]string{"a": "2", "new": "3"})
	if c, _ := changes(t, tree); short(c) != "M a, M new" {
		t.Errorf("changes %s", short(c))
	}
	if got := tree.EntriesNamed(".gitignore"); len(got) != 1 {
		t.Errorf("named %v", got)
	}
	must(t, tree.Remove(t.Context()))
	if count.n != before {
		t.Errorf("%d processes were started", count.n-before)
	}
}

func TestLayersAreMadeAgainWhenTheyAreGone(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, s *layerCache){
		"all of the cache removed": func(t *testing.T, s *layerCache) { must(t, os.RemoveAll(s.dir)) },
		"the machine started again": func(t *testing.T, s *layerCache) {
			for _, n := range layerNames(t, s.trees) {
				must(t, os.WriteFile(filepath.Join(s.layerDir(n), "boot"), []byte("another"), 0o600))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree, repo := newLayers(t, map[string]string{"a": "1", "d/b": "2"})
			setup := t.TempDir()
			must(t, tree.Push(t.Context(), setup))
			m := mount(t, t, tree, nil)
			m.run(t, "rm -r d; echo x > a")
			m.close()
			tree.form.release() // As the death of its process does it.
			harm(t, tree.trees.layerCache())
			trees := New(tree.trees.root, repo, tree.trees.options)
			adopted, err := trees.Adopt(t.Context(), "act", tree.Base)
			must(t, err)
			if got := adopted.Overlay().Lower; len(got) != 2 || got[0] != setup {
				t.Errorf("lower %v", got)
			}
			if c, _ := changes(t, adopted); short(c) != "M a, D d/b" {
				t.Errorf("changes %s", short(c))
			}
			m = mount(t, t, adopted, nil)
			if got := m.run(t, "cat a; ls"); got != "x\na" {
				t.Errorf("mounted again: %q", got)
			}
		})
	}
}

func TestADamagedRecordLosesNoWork(t *testing.T) {
	tree, repo := newLayers(t, map[string]string{"a": "1"})
	write(t, layersOf(tree).upper, map[string]string{"a": "work"})
	must(t, os.WriteFile(tree.trees.hiddenPath("act", suffixRecord), nil, 0o600))
	adopted, err := New(tree.trees.root, repo, tree.trees.options).Adopt(t.Context(), "act", tree.Base)
	must(t, err)
	if c, _ := changes(t, adopted); short(c) != "M a" {
		t.Errorf("changes %s", short(c))
	}
}

func TestPlainTreesAndLayersShareARoot(t *testing.T) {
	tree, repo := newLayers(t, map[string]string{"a": "1"})
	plain := New(tree.trees.root, repo, Options{})
	_, err := plain.Make(t.Context(), "copy", tree.Base)
	must(t, err)
	if left, err := plain.TreeNames(); err != nil || !slices.Equal(left, []string{"act", "copy"}) {
		t.Errorf("Left = %v, %v", left, err)
	}
	adopted, err := tree.trees.Adopt(t.Context(), "copy", tree.Base)
	must(t, err)
	if adopted.Overlay() != nil || adopted.Dir == "" {
		t.Error("a copy was taken for layers")
	}
	must(t, plain.Remove(t.Context(), "act"))
	must(t, plain.Remove(t.Context(), "copy"))
	if entries, err := os.ReadDir(tree.trees.root); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if _, err := tree.trees.Adopt(t.Context(), "act", tree.Base); !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("Adopt of a removed tree = %v", err)
	}
}

func TestKeptLayersCanBeTakenUp(t *testing.T) {
	tree, repo := newLayers(t, map[string]string{"a": "1"})
	write(t, layersOf(tree).upper, map[string]string{"a": "work"})
	to, err := tree.KeepAs("kept-1")
	must(t, err)
	if text, err := os.ReadFile(filepath.Join(to, "upper", "a")); err != nil || string(text) != "work" {
		t.Errorf("kept %q, %v", text, err)
	}
	trees := New(tree.trees.root, repo, tree.trees.options)
	must(t, trees.Remove(t.Context(), "act"))
	adopted, err := trees.Adopt(t.Context(), "kept-1", tree.Base)
	must(t, err)
	if c, _ := changes(t, adopted); short(c) != "M a" {
		t.Errorf("changes %s", short(c))
	}
}

func TestLayersRefuseTreesThatReachOutside(t *testing.T) {
	dir, repo, base := newRepo(t, map[string]string{"a": "1", "d/passwd": "mine"})
	blob := repo.Format.HashBytes([]byte("mine"))
	must(t, os.WriteFile(filepath.Join(dir, "target"), []byte(t.TempDir()), 0o644))
	target := plainGit(t, t, dir, "hash-object", "-w", "target")
	sub := rawTree(t, dir, "100644 blob "+blob+"\tpasswd")
	for name, entries := range map[string][]string{
		"a parent directory":                      {"100644 blob " + blob + "\t.."},
		"a git directory":                         {"040000 tree " + base.Tree + "\t.git"},
		"a link and a directory of the same name": {"120000 blob " + target + "\tx", "040000 tree " + sub + "\tx"},
		"a folder whose name is a path":           {"040000 tree " + sub + "\tx/../.."},
		"an unknown kind of file":                 {"010644 blob " + blob + "\tfifo"},
	} {
		for _, warm := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", warm ", warm), func(t *testing.T) {
				trees := layeredTrees(t, repo, Limits{})
				if warm {
					tree, err := trees.Make(t.Context(), "base", base.Commit)
					must(t, err)
					must(t, tree.Remove(t.Context()))
				}
				if _, err := trees.Make(t.Context(), "x", rawTree(t, dir, entries...)); err == nil {
					t.Error("the tree was made")
				}
				if left, err := trees.TreeNames(); err != nil || len(left) > 0 {
					t.Errorf("left: %v, %v", left, err)
				}
			})
		}
	}
}

func TestAKilledMakeIsMadeAgain(t *testing.T) {
	_, repo, base := newRepo(t, map[string]string{"a": "1"})
	for _, point := range []string{"workspace.layer.before", "workspace.layer.after", "workspace.make.before", "workspace.make.after"} {
		t.Run(point, func(t *testing.T) {
			trees := layeredTrees(t, repo, Limits{})
			plan, err := fault.Parse(point + "=EIO")
			must(t, err)
			if _, err := trees.Make(fault.With(t.Context(), plan), "x", base.Commit); !errors.Is(err, syscall.EIO) {
				t.Fatalf("Make = %v, want EIO", err)
			}
			must(t, trees.Remove(t.Context(), "x"))
			tree, err := trees.Make(t.Context(), "x", base.Commit)
			must(t, err)
			m := mount(t, t, tree, nil)
			if got := m.run(t, "cat a"); got != "1" {
				t.Errorf("a = %q", got)
			}
		})
	}
}
