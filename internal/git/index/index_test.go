//go:build unix

package index_test

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

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/index"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func open(t *testing.T, dir string) *git.Repo {
	t.Helper()
	r, err := git.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tree is that of the commit that is checked out.
func tree(t *testing.T, r *git.Repo) string {
	t.Helper()
	b, err := r.Base(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return b.Tree
}

// indexOf describes the files of a checkout as pawl left them.
func indexOf(t *testing.T, r *git.Repo, dir string) []index.Entry {
	t.Helper()
	entries, err := r.List(t.Context(), tree(t, r))
	if err != nil {
		t.Fatal(err)
	}
	var list []index.Entry
	for _, e := range entries {
		info, err := os.Lstat(filepath.Join(dir, e.Path))
		if err != nil {
			t.Fatal(err)
		}
		e.Size = info.Size()
		list = append(list, index.Entry{Entry: e, Modified: info.ModTime(), Changed: info.ModTime(), Inode: 1 << 40})
	}
	slices.SortFunc(list, func(a, b index.Entry) int { return cmp.Compare(a.Path, b.Path) })
	return list
}

func TestGitTakesAnIndexThatPawlWrote(t *testing.T) {
	for _, format := range []string{object.SHA1, object.SHA256} {
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
			if err := index.Write(&b, r.Format, list); err != nil {
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
			if got := gittest.Run(t, dir, "write-tree"); got != tree(t, r) {
				t.Errorf("write-tree %s, want %s", got, tree(t, r))
			}
			if got := gittest.Run(t, dir, "fsck", "--no-dangling"); got != "" {
				t.Errorf("fsck: %s", got)
			}
			back, err := index.Read(r.Format, b.Bytes())
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
	entry := func(path, id string) index.Entry {
		return index.Entry{Entry: object.Entry{Path: path, Mode: object.ModeFile, ID: id}}
	}
	for name, list := range map[string][]index.Entry{
		"no path":             {entry("", id)},
		"a NUL":               {entry("a\x00b", id)},
		"a short name":        {entry("a", "12")},
		"no name":             {entry("a", strings.Repeat("x", 40))},
		"the wrong order":     {entry("b", id), entry("a", id)},
		"the same path twice": {entry("a", id), entry("a", id)},
	} {
		t.Run(name, func(t *testing.T) {
			if err := index.Write(&bytes.Buffer{}, r.Format, list); err == nil {
				t.Error("it was written")
			}
		})
	}
}

func TestAnIndexThatIsDamagedIsReadAsNone(t *testing.T) {
	r := open(t, gittest.Repo(t, nil))
	var whole bytes.Buffer
	entry := index.Entry{Entry: object.Entry{Path: "a", Mode: object.ModeFile, ID: strings.Repeat("1", 40)}}
	if err := index.Write(&whole, r.Format, []index.Entry{entry}); err != nil {
		t.Fatal(err)
	}
	conflict := bytes.Clone(whole.Bytes())
	conflict[12+60] |= 0x10 // The stage, in the flags behind the object name.
	for name, data := range map[string][]byte{
		"nothing": nil, "its beginning": whole.Bytes()[:40], "another file": bytes.Repeat([]byte("x"), 200), "a conflict": conflict,
	} {
		if got, err := index.Read(r.Format, data); err == nil || got != nil {
			t.Errorf("%s: %+v, %v, want an error", name, got, err)
		}
		if err := index.Patch(&bytes.Buffer{}, r.Format, data, nil, nil); err == nil && name != "a conflict" {
			t.Errorf("%s is patched", name)
		}
	}
	if got, err := index.Read(r.Format, whole.Bytes()); err != nil || len(got) != 1 {
		t.Errorf("the whole: %+v, %v", got, err)
	}
}

func TestAPatchedIndexIsTheOneWrittenAfresh(t *testing.T) {
	r := open(t, gittest.Repo(t, nil))
	names := rapid.SampledFrom([]string{"a", "a.b", "a/b", "a0", "b", "c/d/e", "c/d", "z", "ü", "sp ace"})
	entry := rapid.Custom(func(rt *rapid.T) index.Entry {
		id := fmt.Sprintf("%040x", rapid.Uint64().Draw(rt, "id"))
		return index.Entry{Entry: object.Entry{Path: names.Draw(rt, "path"), Mode: object.ModeFile, ID: id, Size: 7}}
	})
	sorted := func(byPath map[string]index.Entry) []index.Entry {
		var list []index.Entry
		for _, e := range byPath {
			list = append(list, e)
		}
		slices.SortFunc(list, func(a, b index.Entry) int { return cmp.Compare(a.Path, b.Path) })
		return list
	}
	rapid.Check(t, func(rt *rapid.T) {
		all, changed := map[string]index.Entry{}, map[string]index.Entry{}
		for _, e := range rapid.SliceOf(entry).Draw(rt, "base") {
			all[e.Path] = e
		}
		var old, got, want bytes.Buffer
		if err := index.Write(&old, r.Format, sorted(all)); err != nil {
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
		if err := index.Patch(&got, r.Format, old.Bytes(), gone, sorted(changed)); err != nil {
			rt.Fatal(err)
		}
		if err := index.Write(&want, r.Format, sorted(all)); err != nil {
			rt.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			rt.Fatalf("patched:\n%q\nafresh:\n%q", got.Bytes(), want.Bytes())
		}
	})
}

func FuzzPatch(f *testing.F) {
	const format = object.Format(object.SHA1)
	id := strings.Repeat("1", 40)
	var b bytes.Buffer
	if err := index.Write(&b, format, []index.Entry{{Entry: object.Entry{Path: "a", Mode: object.ModeFile, ID: id}}, {Entry: object.Entry{Path: "b/c", Mode: object.ModeExec, ID: id}}}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes(), "a")
	f.Add(b.Bytes()[:b.Len()-9], "b/c")
	f.Add([]byte("DIRC\x00\x00\x00\x02\xff\xff\xff\xff"), "")
	f.Fuzz(func(_ *testing.T, data []byte, path string) {
		// Whatever they say, they neither crash nor take more than is there.
		_ = index.Patch(&bytes.Buffer{}, format, data, []string{path}, nil)
		_, _ = index.Read(format, data)
	})
}

func FuzzParseNeverPanics(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01" + strings.Repeat("\x00", 100)))
	f.Add([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x02" + strings.Repeat("\x01", 200)))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = index.Parse(data, 20)
		_, _ = index.Parse(data, 32)
	})
}
