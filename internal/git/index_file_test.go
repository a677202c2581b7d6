//go:build unix

package git

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/git/gittest"
)

// indexOf describes the files of a checkout as pawl left them.
func indexOf(t *testing.T, r *Repo, dir string) []IndexEntry {
	t.Helper()
	entries, err := r.List(t.Context(), base(t, r).Tree)
	if err != nil {
		t.Fatal(err)
	}
	var list []IndexEntry
	for _, e := range entries {
		info, err := os.Lstat(filepath.Join(dir, e.Path))
		if err != nil {
			t.Fatal(err)
		}
		e.Size = info.Size()
		list = append(list, IndexEntry{Entry: e, Modified: info.ModTime(), Changed: info.ModTime(), Inode: 1 << 40})
	}
	slices.SortFunc(list, func(a, b IndexEntry) int { return cmp.Compare(a.Path, b.Path) })
	return list
}

func TestGitTakesAnIndexThatPawlWrote(t *testing.T) {
	for _, format := range []string{SHA1, SHA256} {
		t.Run(format, func(t *testing.T) {
			files := map[string]string{"a": "1", "a-b": "2", "a/b": "", "d/ü": "3", strings.Repeat("long", 50): "4"}
			delete(files, "a/b")
			for i := range 9 { // Every length of padding.
				files["p/"+strings.Repeat("x", i+1)] = "5"
			}
			dir := gittest.Repo(t, files, "--object-format="+format)
			r := open(t, dir)
			list := indexOf(t, r, dir)
			var b bytes.Buffer
			if err := r.WriteIndex(&b, list); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, ".git", "index")
			if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			future := time.Now().Add(time.Hour) // Then no file is as young as the index.
			if err := os.Chtimes(path, future, future); err != nil {
				t.Fatal(err)
			}
			if got := gittest.Run(t, dir, "-c", "core.checkStat=minimal", "diff-files", "--raw"); got != "" {
				t.Errorf("git takes for changed:\n%s", got)
			}
			if got := gittest.Run(t, dir, "write-tree"); got != base(t, r).Tree {
				t.Errorf("write-tree %s, want %s", got, base(t, r).Tree)
			}
			if got := gittest.Run(t, dir, "fsck", "--no-dangling"); got != "" {
				t.Errorf("fsck: %s", got)
			}
			back, err := r.ReadIndex(b.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			for i := range list {
				list[i].Inode = 0 // Its low bits are all that an index holds.
			}
			if d := diff.Diff(list, back); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAnIndexRefusesWhatItCannotHold(t *testing.T) {
	r := open(t, gittest.Repo(t, nil))
	id := strings.Repeat("1", 40)
	entry := func(path, id string) IndexEntry { return IndexEntry{Entry: Entry{Path: path, Mode: ModeFile, ID: id}} }
	for name, list := range map[string][]IndexEntry{
		"no path":             {entry("", id)},
		"a NUL":               {entry("a\x00b", id)},
		"a short name":        {entry("a", "12")},
		"no name":             {entry("a", strings.Repeat("x", 40))},
		"the wrong order":     {entry("b", id), entry("a", id)},
		"the same path twice": {entry("a", id), entry("a", id)},
	} {
		t.Run(name, func(t *testing.T) {
			if err := r.WriteIndex(&bytes.Buffer{}, list); err == nil {
				t.Error("it was written")
			}
		})
	}
}

func TestAPatchedIndexIsTheOneWrittenAfresh(t *testing.T) {
	r := open(t, gittest.Repo(t, nil))
	names := rapid.SampledFrom([]string{"a", "a.b", "a/b", "a0", "b", "c/d/e", "c/d", "z", "ü", "sp ace"})
	entry := rapid.Custom(func(rt *rapid.T) IndexEntry {
		id := fmt.Sprintf("%040x", rapid.Uint64().Draw(rt, "id"))
		return IndexEntry{Entry: Entry{Path: names.Draw(rt, "path"), Mode: ModeFile, ID: id, Size: 7}}
	})
	sorted := func(byPath map[string]IndexEntry) []IndexEntry {
		var list []IndexEntry
		for _, e := range byPath {
			list = append(list, e)
		}
		slices.SortFunc(list, func(a, b IndexEntry) int { return cmp.Compare(a.Path, b.Path) })
		return list
	}
	rapid.Check(t, func(rt *rapid.T) {
		all, changed := map[string]IndexEntry{}, map[string]IndexEntry{}
		for _, e := range rapid.SliceOf(entry).Draw(rt, "base") {
			all[e.Path] = e
		}
		var old, got, want bytes.Buffer
		if err := r.WriteIndex(&old, sorted(all)); err != nil {
			rt.Fatal(err)
		}
		gone := rapid.SliceOfDistinct(names, rapid.ID).Draw(rt, "gone")
		for _, path := range gone {
			delete(all, path)
		}
		for _, e := range rapid.SliceOf(entry).Draw(rt, "changed") {
			all[e.Path], changed[e.Path] = e, e
			gone = append(gone, e.Path)
		}
		slices.Sort(gone)
		if err := r.PatchIndex(&got, old.Bytes(), gone, sorted(changed)); err != nil {
			rt.Fatal(err)
		}
		if err := r.WriteIndex(&want, sorted(all)); err != nil {
			rt.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			rt.Fatalf("patched:\n%q\nafresh:\n%q", got.Bytes(), want.Bytes())
		}
	})
}

func FuzzPatchIndex(f *testing.F) {
	r := &Repo{Format: SHA1}
	id := strings.Repeat("1", 40)
	var b bytes.Buffer
	if err := r.WriteIndex(&b, []IndexEntry{{Entry: Entry{Path: "a", Mode: ModeFile, ID: id}}, {Entry: Entry{Path: "b/c", Mode: ModeExec, ID: id}}}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes(), "a")
	f.Add(b.Bytes()[:b.Len()-9], "b/c")
	f.Add([]byte("DIRC\x00\x00\x00\x02\xff\xff\xff\xff"), "")
	f.Fuzz(func(_ *testing.T, data []byte, path string) {
		// Whatever they say, they neither crash nor take more than is there.
		_ = r.PatchIndex(&bytes.Buffer{}, data, []string{path}, nil)
		_, _ = r.ReadIndex(data)
	})
}

func TestObjectDirsAreAllThatARepositoryBorrowsFrom(t *testing.T) {
	dir, other, third := gittest.Repo(t, nil), gittest.Repo(t, nil), gittest.Repo(t, nil)
	gittest.Write(t, dir, map[string]string{".git/objects/info/alternates": "# note\n" + other + "/.git/objects\n/nowhere\n"})
	gittest.Write(t, other, map[string]string{".git/objects/info/alternates": filepath.Join("..", "..", "..", "..", "..") + "/nowhere\n" + third + "/.git/objects\n" + dir + "/.git/objects\n"})
	got, err := open(t, dir).ObjectDirs()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, d := range []string{dir, other, third} {
		want = append(want, filepath.Join(d, ".git", "objects"))
	}
	if d := diff.Diff(want, got); d != "" {
		t.Error(d)
	}
	if text, err := open(t, third).Shallow(); text != nil || err != nil {
		t.Errorf("a complete repository ends at %q, %v", text, err)
	}
	gittest.Write(t, third, map[string]string{".git/shallow": "x\n"})
	if text, err := open(t, third).Shallow(); string(text) != "x\n" || err != nil {
		t.Errorf("Shallow = %q, %v", text, err)
	}
}
