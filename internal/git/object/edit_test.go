//go:build unix

package object

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/sample"
)

func TestCandidateWritesTheTreeThatAnIndexWouldGive(t *testing.T) {
	for _, format := range []string{SHA1, SHA256} {
		t.Run(format, func(t *testing.T) {
			dir := gittest.Repo(t, map[string]string{"1": "1", "2": "2"}, "--object-format="+format)
			r := open(t, dir)
			contents := []string{r.Format.HashBytes([]byte("1")), r.Format.HashBytes([]byte("2"))}
			sample.Checks(t, 30)
			rapid.Check(t, func(rt *rapid.T) {
				from, before := drawTree(t, rt, r, "from", "", contents)
				changes := drawChanges(rt, dir, contents)
				c, err := r.Candidate(t.Context(), Draft{Tree: from, Changes: changes, When: when})
				if err != nil {
					rt.Fatal(err)
				}
				if want := byIndex(t, rt, r, from, before, changes); c.Tree != want {
					rt.Fatalf("%v with %+v: tree %s, want %s\n%s", pathsOf(before), changes, c.Tree, want, gittest.Run(t, dir, "diff-tree", "-r", want, c.Tree))
				}
				if _, err := gittest.Try(t.Context(), dir, "fsck", "--strict", "--no-dangling", c.Commit); err != nil {
					rt.Fatal(err)
				}
			})
		})
	}
}

// drawChanges draws changes that meet each other, with contents from files and
// from the repository.
func drawChanges(rt *rapid.T, dir string, contents []string) []FileChange {
	var changes []FileChange
	for _, p := range rapid.SliceOfN(treePaths, 0, 8).Draw(rt, "changed") {
		c := FileChange{Path: p, Mode: rapid.SampledFrom([]uint32{ModeFile, ModeExec, ModeSymlink}).Draw(rt, "mode")}
		switch rapid.SampledFrom([]string{"delete", "file", "object", "both"}).Draw(rt, "kind") {
		case "delete":
			c.Delete = true
		case "file":
			c.Mode, c.From = ModeFile, filepath.Join(dir, "1")
		case "object":
			c.ID = rapid.SampledFrom(contents).Draw(rt, "content")
		case "both":
			c.Mode, c.From, c.ID = ModeExec, filepath.Join(dir, "2"), contents[1]
		}
		changes = append(changes, c)
	}
	return changes
}

// byIndex applies changes to a tree as read-tree, update-index and write-tree
// do.
func byIndex(t *testing.T, rt *rapid.T, r Store, from string, before []Entry, changes []FileChange) string {
	t.Helper()
	gone, set := []string{"update-index"}, []string{"update-index", "--add", "--replace"}
	for _, c := range changes {
		switch {
		case c.Delete:
			for _, p := range pathsOf(before) {
				if p == c.Path || strings.HasPrefix(p, c.Path+"/") {
					gone = append(gone, "--force-remove", p)
				}
			}
		case c.ID == "":
			set = append(set, "--cacheinfo", "100644,"+r.Format.HashBytes([]byte("1"))+","+c.Path)
		default:
			mode := map[uint32]string{ModeFile: "100644", ModeExec: "100755", ModeSymlink: "120000"}[c.Mode]
			set = append(set, "--cacheinfo", mode+","+c.ID+","+c.Path)
		}
	}
	for _, args := range [][]string{{"read-tree", from}, gone, set} {
		if _, err := gittest.Try(t.Context(), root(r), args...); err != nil {
			rt.Fatalf("git %v: %v", args, err)
		}
	}
	tree, err := gittest.Try(t.Context(), root(r), "write-tree")
	if err != nil {
		rt.Fatal(err)
	}
	return tree
}

func TestCandidateReadsOnlyFoldersOnTheWay(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"here/below/a": "1", "here/b": "2", "there/c": "3"})
	r := open(t, dir)
	b := base(t, r)
	for _, folder := range []string{":there", ":here/below"} {
		id := gittest.Run(t, dir, "rev-parse", b.Tree+folder)
		must(t, os.Remove(filepath.Join(dir, ".git", "objects", id[:2], id[2:])))
	}
	c, err := r.Candidate(t.Context(), Draft{Base: b.Commit, When: when, Changes: []FileChange{{Path: "here/b", Mode: ModeExec, ID: r.Format.HashBytes([]byte("1"))}}})
	must(t, err)
	got := gittest.Run(t, dir, "ls-tree", c.Tree+":here")
	if want := "100755 blob " + r.Format.HashBytes([]byte("1")) + "\tb"; !strings.HasPrefix(got, want) {
		t.Errorf("tree:\n%s\nwant first:\n%s", got, want)
	}
}

func FuzzTreeObject(f *testing.F) {
	raw := strings.Repeat("\x01", 20)
	for _, body := range []string{"", "100644 a\x00" + raw, "40000 d\x00" + raw + "100644 d.\x00" + raw, "100644 a\x00short", "x a\x00" + raw, "100644 a/b\x00" + raw, "100644\x00" + raw} {
		f.Add([]byte(body))
	}
	b := &Blobs{format: SHA1}
	f.Fuzz(func(t *testing.T, body []byte) {
		list, err := b.parseEntries("", body)
		if err != nil {
			return
		}
		again, err := b.parseEntries("", treeBody(slices.Clone(list)))
		if err != nil {
			t.Fatalf("%q is written as what cannot be read: %v", body, err)
		}
		for _, l := range [][]Entry{list, again} {
			slices.SortFunc(l, func(a, b Entry) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		if d := cmp.Diff(list, again); d != "" {
			t.Error(d)
		}
	})
}
