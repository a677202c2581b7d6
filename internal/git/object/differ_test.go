//go:build unix

package object

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// treePaths meet each other: files where folders were, and the same parts at
// every depth.
var treePaths = rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "A", "a.", "a-b", "b", "é"}), 1, 4), func(parts []string) string { return strings.Join(parts, "/") })

// drawTree writes a tree of drawn files, and returns it with what it holds.
func drawTree(t *testing.T, rt *rapid.T, r Store, label, from string, blobs []string) (string, []Entry) {
	t.Helper()
	var changes []FileChange
	for _, p := range rapid.SliceOfN(treePaths, 0, 8).Draw(rt, label) {
		c := FileChange{Path: p, Mode: ModeFile, ID: rapid.SampledFrom(blobs).Draw(rt, "content")}
		c.Delete = rapid.Bool().Draw(rt, "delete")
		if rapid.Bool().Draw(rt, "executable") {
			c.Mode = ModeExec
		}
		changes = append(changes, c)
	}
	c, err := r.Candidate(t.Context(), Draft{Tree: from, Changes: changes, When: when})
	if err != nil {
		rt.Fatal(err)
	}
	return c.Tree, list(t, r, c.Tree)
}

func TestTwoTreesDifferByWhatTheirWholeListsDo(t *testing.T) {
	for _, format := range []string{SHA1, SHA256} {
		t.Run(format, func(t *testing.T) {
			r := open(t, gittest.Repo(t, map[string]string{"1": "1", "2": "2"}, "--object-format="+format))
			contents := []string{r.Format.HashBytes([]byte("1")), r.Format.HashBytes([]byte("2"))}
			blobs, err := r.Blobs(t.Context())
			must(t, err)
			defer blobs.Close()
			sample.Checks(t, 30)
			rapid.Check(t, func(rt *rapid.T) {
				from, before := drawTree(t, rt, r, "from", "", contents)
				to, after := drawTree(t, rt, r, "to", from, contents)
				enough := rapid.IntRange(0, 12).Draw(rt, "enough")
				got, err := blobs.Differ(from, to, math.MaxInt, enough)
				if err != nil {
					rt.Fatal(err)
				}
				want := wholeLists(before, after)
				if got.Files > len(before) || got.Files < min(enough, len(before)) {
					rt.Fatalf("%d files of %d, %d are enough", got.Files, len(before), enough)
				}
				want.Files = got.Files
				slices.Sort(got.Beside)
				slices.Sort(got.Gone)
				if d := cmp.Diff(want, got); d != "" {
					rt.Fatalf("from %v\nto %v\n%s", pathsOf(before), pathsOf(after), d)
				}
			})
		})
	}
}

// wholeLists is Differ by two whole lists.
func wholeLists(before, after []Entry) Differences {
	byPath := func(list []Entry) map[string]Entry {
		all := map[string]Entry{}
		for _, e := range list {
			e.Size = 0
			all[e.Path] = e
		}
		return all
	}
	old, now := byPath(before), byPath(after)
	var d Differences
	open := map[string]bool{} // folders of the first tree that something differs below
	for _, p := range slices.Sorted(maps.Keys(both(old, now))) {
		if old[p] == now[p] {
			continue
		}
		d.Paths = append(d.Paths, Difference{Path: p, Old: old[p], New: now[p]})
		for dir := path.Dir(p); ; dir = path.Dir(dir) {
			open[dir] = true
			if dir == "." {
				break
			}
		}
	}
	beside := map[string]bool{}
	for p := range old {
		if _, there := now[p]; !there {
			continue
		}
		for ; p != "."; p = path.Dir(p) {
			if open[path.Dir(p)] {
				beside[p] = true
			}
		}
	}
	d.Beside = slices.Sorted(maps.Keys(beside))
	d.Gone = gone(foldersOf(old), foldersOf(now))
	return d
}

// foldersOf lists the folders that hold files, the top among them.
func foldersOf(files map[string]Entry) map[string]bool {
	set := map[string]bool{".": true}
	for p := range files {
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			set[dir] = true
		}
	}
	return set
}

// gone lists the folders that are before and not after, without what lies
// below them.
func gone(before, after map[string]bool) []string {
	var list []string
	for dir := range before {
		if !after[dir] && after[path.Dir(dir)] {
			list = append(list, dir)
		}
	}
	slices.Sort(list)
	return list
}

func both(a, b map[string]Entry) map[string]Entry {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func pathsOf(entries []Entry) []string {
	var paths []string
	for _, e := range entries {
		paths = append(paths, e.Path)
	}
	return paths
}

func TestFoldersThatAreTheSameAreNotRead(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"same/deep/a": "1", "same/b": "2", "other/c": "3", "top": "4"})
	r := open(t, dir)
	from := base(t, r).Tree
	same := gittest.Run(t, dir, "rev-parse", from+":same")
	c, err := r.Candidate(t.Context(), Draft{Tree: from, When: when, Changes: []FileChange{{Path: "other/c", Delete: true}, {Path: "new", Mode: ModeFile, ID: r.Format.HashBytes([]byte("1"))}}})
	must(t, err)
	must(t, os.Remove(filepath.Join(dir, ".git", "objects", same[:2], same[2:])))
	blobs, err := r.Blobs(t.Context())
	must(t, err)
	defer blobs.Close()
	d, err := blobs.Differ(from, c.Tree, 2, 3)
	must(t, err)
	// The folder that was not read counts as one file.
	if len(d.Paths) != 2 || d.Files != 3 || !slices.Equal(d.Beside, []string{"same", "top"}) {
		t.Errorf("differences = %+v", d)
	}
	if _, err := blobs.Differ(from, c.Tree, 2, 4); !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("counting in what is gone = %v, want not found", err)
	}
}

func TestTreesDifferByWhatGitSays(t *testing.T) {
	r := open(t, gittest.Repo(t, nil))
	names := rapid.SampledFrom([]string{"a", "b", "a/x", "a/x/y", "b/z", "c/d/e/f", "c/d", "c/g"})
	sample.Checks(t, 30)
	rapid.Check(t, func(rt *rapid.T) {
		var trees []string
		for range 2 {
			files := map[string]string{}
			for _, path := range rapid.SliceOfNDistinct(names, 0, 6, rapid.ID).Draw(rt, "files") {
				free := true
				for other := range files {
					free = free && !strings.HasPrefix(path+"/", other+"/") && !strings.HasPrefix(other+"/", path+"/")
				}
				if free {
					files[path] = rapid.SampledFrom([]string{"1", "2"}).Draw(rt, "text")
				}
			}
			trees = append(trees, treeWith(t, rt, r, files))
		}
		blobs, err := r.Blobs(t.Context())
		if err != nil {
			rt.Fatal(err)
		}
		defer blobs.Close()
		d, err := blobs.Differ(trees[0], trees[1], 1000, 0)
		if err != nil {
			rt.Fatal(err)
		}
		var got []string
		for _, c := range d.Paths {
			got = append(got, fmt.Sprintf(":%06o %06o %s %s\t%s", c.Old.Mode, c.New.Mode, orZeros(c.Old.ID), orZeros(c.New.ID), c.Path))
		}
		want := strings.Fields(strings.ReplaceAll(gittest.Run(t, root(r), "diff-tree", "-r", "--no-renames", "--abbrev=40", trees[0], trees[1]), " ", "\x01"))
		var lines []string
		for i := 0; i+1 < len(want); i += 2 {
			f := strings.Split(want[i], "\x01")
			lines = append(lines, strings.Join(f[:4], " ")+"\t"+want[i+1])
		}
		slices.Sort(got)
		slices.Sort(lines)
		if d := cmp.Diff(lines, got); d != "" {
			rt.Fatal(d)
		}
		wantGone(t, rt, r, trees, d.Gone)
	})
}

// wantGone checks that the folders are those that git lists in one tree and not
// in the other, without what lies below them.
func wantGone(t *testing.T, rt *rapid.T, r Store, trees, got []string) {
	t.Helper()
	folders := func(tree string) map[string]bool {
		set := map[string]bool{".": true}
		for line := range strings.Lines(gittest.Run(t, root(r), "ls-tree", "-r", "-d", "--name-only", tree)) {
			set[strings.TrimSpace(line)] = true
		}
		return set
	}
	want := gone(folders(trees[0]), folders(trees[1]))
	slices.Sort(got)
	if !slices.Equal(got, want) {
		rt.Fatalf("gone %q, want %q", got, want)
	}
}

func orZeros(id string) string {
	if id == "" {
		return strings.Repeat("0", 40)
	}
	return id
}

// treeWith writes a tree of files by plumbing.
func treeWith(t *testing.T, rt *rapid.T, r Store, files map[string]string) string {
	t.Helper()
	var changes []FileChange
	dir := t.TempDir()
	for path, text := range files {
		from := filepath.Join(dir, strings.ReplaceAll(path, "/", "-"))
		if err := os.WriteFile(from, []byte(text), 0o644); err != nil {
			rt.Fatal(err)
		}
		changes = append(changes, FileChange{Path: path, Mode: ModeFile, From: from})
	}
	c, err := r.Candidate(t.Context(), Draft{Changes: changes, When: when})
	if err != nil {
		rt.Fatal(err)
	}
	return c.Tree
}

func TestAComparisonOfTreesEndsAtItsLimit(t *testing.T) {
	files := map[string]string{}
	for i := range 30 {
		files[fmt.Sprintf("d%d/f", i)] = fmt.Sprint(i)
	}
	r := open(t, gittest.Repo(t, files))
	blobs, err := r.Blobs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	full := base(t, r).Tree
	if d, err := blobs.Differ(full, full, 0, 0); err != nil || len(d.Paths)+len(d.Gone) > 0 {
		t.Errorf("a tree differs from itself: %+v, %v", d, err)
	}
	if _, err := blobs.Differ(r.Format.EmptyTree(), full, 29, 0); !errors.Is(err, ErrManyChanges) {
		t.Errorf("Differ = %v, want too many changes", err)
	}
	if d, err := blobs.Differ(r.Format.EmptyTree(), full, 30, 0); err != nil || len(d.Paths) != 30 {
		t.Errorf("Differ = %d files, %v", len(d.Paths), err)
	}
	if tree, err := blobs.TreeOf(base(t, r).Commit); err != nil || tree != full {
		t.Errorf("TreeOf = %s, %v", tree, err)
	}
}
