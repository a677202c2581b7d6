//go:build unix

package object

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// whole makes changes out of everything in dir but .git.
func whole(t *testing.T, dir string) []FileChange {
	t.Helper()
	var changes []FileChange
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		mode := uint32(ModeFile)
		if info.Mode()&0o100 != 0 {
			mode = ModeExec
		}
		if info.Mode().Type() == os.ModeSymlink {
			mode = ModeSymlink
		}
		rel, _ := filepath.Rel(dir, path)
		changes = append(changes, FileChange{Path: rel, Mode: mode, From: path})
		return err
	})
	must(t, err)
	return changes
}

func TestCandidateWritesTheTreeThatPlainGitWouldWrite(t *testing.T) {
	for _, format := range []string{SHA1, SHA256} {
		t.Run(format, func(t *testing.T) {
			dir := gittest.Repo(t, map[string]string{"old": "1", "dir/a": "1", "dir/b": "2", "file": "f", "run": "#!/bin/sh\n"}, "--object-format="+format)
			r := open(t, dir)
			b := base(t, r)
			gittest.Run(t, dir, "rm", "-q", "old", "file")
			gittest.Run(t, dir, "rm", "-q", "-r", "dir")
			gittest.Write(t, dir, gittest.OddlyNamed("y"))
			gittest.Write(t, dir, map[string]string{"dir": "now a file", "file/now": "a directory", "crlf": "a\r\nb\n", "empty": ""})
			must(t, os.Symlink("../../etc/passwd", filepath.Join(dir, "link")))
			must(t, os.Chmod(filepath.Join(dir, "run"), 0o755))

			gone := []FileChange{{Path: "old", Delete: true}, {Path: "dir/a", Delete: true}, {Path: "dir/b", Delete: true}, {Path: "file", Delete: true}, {Path: "never/was", Delete: true}}
			c, err := r.Candidate(t.Context(), Draft{Base: b.Commit, Changes: append(whole(t, dir), gone...), Message: "a \x00message\n\nbody\x1b[1m", When: when})
			if err != nil {
				t.Fatal(err)
			}
			gittest.Run(t, dir, "add", "-A")
			if want := gittest.Run(t, dir, "write-tree"); c.Tree != want {
				t.Errorf("tree = %s, want %s\n%s", c.Tree, want, gittest.Run(t, dir, "diff-tree", "-r", want, c.Tree))
			}
			want := fmt.Sprintf("tree %s\nparent %s\nauthor pawl <pawl@localhost> 1700000000 +0000\ncommitter pawl <pawl@localhost> 1700000000 +0000\n\na message\n\nbody[1m", c.Tree, b.Commit)
			if got := gittest.Run(t, dir, "cat-file", "commit", c.Commit); got != want {
				t.Errorf("commit:\n%s\nwant:\n%s", got, want)
			}
			wantNoTrace(t, dir, "refs/heads/main")
			gittest.Run(t, dir, "fsck", "--strict", "--no-dangling")
		})
	}
}

// wantNoTrace fails if the repository holds other refs or an unfinished pack.
func wantNoTrace(t *testing.T, dir string, refs ...string) {
	t.Helper()
	if got := strings.Fields(gittest.Run(t, dir, "for-each-ref", "--format=%(refname)")); !slices.Equal(got, refs) {
		t.Errorf("refs = %v, want %v", got, refs)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".git", "objects", "pack", "tmp_*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestCandidateCanEmptyTheTreeOrStartFromNothing(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "1", "d/b": "2"})
	r := open(t, dir)
	b := base(t, r)
	empty := gittest.Run(t, dir, "hash-object", "-t", "tree", "/dev/null")
	c, err := r.Candidate(t.Context(), Draft{Base: b.Commit, When: when, Changes: []FileChange{{Path: "a", Delete: true}, {Path: "d/b", Delete: true}}})
	if err != nil || c.Tree != empty {
		t.Errorf("emptied: %+v, %v, want tree %s", c, err, empty)
	}
	entries := list(t, r, c.Tree)
	if len(entries) != 0 {
		t.Errorf("list of the empty tree = %v, %v", entries, err)
	}
	c, err = r.Candidate(t.Context(), Draft{Tree: b.Tree, When: when})
	if err != nil || c.Tree != b.Tree || strings.Contains(gittest.Run(t, dir, "cat-file", "commit", c.Commit), "parent") {
		t.Errorf("from a tree: %+v, %v, want a root commit of %s", c, err, b.Tree)
	}
	c, err = r.Candidate(t.Context(), Draft{When: when})
	if err != nil || c.Tree != empty {
		t.Errorf("from nothing: %+v, %v, want tree %s", c, err, empty)
	}
}

func TestCandidateTakesObjectsThatExist(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "1"})
	r := open(t, dir)
	b := base(t, r)
	id := r.Format.HashBytes([]byte("1"))
	c, err := r.Candidate(t.Context(), Draft{Base: b.Commit, When: when, Changes: []FileChange{
		{Path: "a", Mode: ModeExec, ID: id}, {Path: "sub", Mode: ModeGitlink, ID: b.Commit},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := gittest.Run(t, dir, "ls-tree", c.Tree)
	if want := "100755 blob " + id + "\ta\n160000 commit " + b.Commit + "\tsub"; got != want {
		t.Errorf("tree:\n%s\nwant:\n%s", got, want)
	}
}

func TestCandidateRefusesAndLeavesNothing(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "1"})
	r := open(t, dir)
	b := base(t, r)
	from := filepath.Join(dir, "a")
	fifo, link := filepath.Join(t.TempDir(), "fifo"), filepath.Join(t.TempDir(), "link")
	mkfifo(t, fifo)
	must(t, os.Symlink(from, link))
	for name, c := range map[string]struct {
		base   string
		change FileChange
		says   string
	}{
		"a path with dots":             {b.Commit, FileChange{Path: "../a", Mode: ModeFile, From: from}, "leaves the tree"},
		"an absolute path":             {b.Commit, FileChange{Path: "/a", Mode: ModeFile, From: from}, "leaves the tree"},
		"a git directory":              {b.Commit, FileChange{Path: "x/.GIT/config", Mode: ModeFile, From: from}, "git directory"},
		"deleting in a git directory":  {b.Commit, FileChange{Path: ".git/config", Delete: true}, "git directory"},
		"an unknown mode":              {b.Commit, FileChange{Path: "x", Mode: 0o104755, From: from}, "mode"},
		"a missing file":               {b.Commit, FileChange{Path: "x", Mode: ModeFile, From: from + "-no"}, "no such file"},
		"a FIFO":                       {b.Commit, FileChange{Path: "x", Mode: ModeFile, From: fifo}, "not a regular file"},
		"a link for a file":            {b.Commit, FileChange{Path: "x", Mode: ModeFile, From: link}, "symbolic link"},
		"a file that changed":          {b.Commit, FileChange{Path: "x", Mode: ModeFile, From: from, ID: strings.Repeat("1", 40)}, "changed while"},
		"a link that changed":          {b.Commit, FileChange{Path: "x", Mode: ModeSymlink, From: link, ID: strings.Repeat("1", 40)}, "changed while"},
		"an object that is not there":  {b.Commit, FileChange{Path: "x", Mode: ModeFile, ID: strings.Repeat("1", 40)}, "not found"},
		"a base that is not there":     {strings.Repeat("2", 40), FileChange{Path: "x", Mode: ModeFile, From: from}, "not found"},
		"a base that is an expression": {"HEAD", FileChange{Path: "x", Mode: ModeFile, From: from}, "object name"},
		"a base that is a tree":        {b.Tree, FileChange{Path: "x", Mode: ModeFile, From: from}, "is a tree, not a commit"},
		"a tree for a file":            {b.Commit, FileChange{Path: "x", Mode: ModeFile, ID: b.Tree}, "is a tree"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := r.Candidate(t.Context(), Draft{Base: c.base, When: when, Changes: []FileChange{c.change}})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("candidate = %+v, %v, want an error that says %q", got, err, c.says)
			}
			wantNoTrace(t, dir, "refs/heads/main")
		})
	}
}

// A candidate of the contents that were read so far would be a smaller change than
// the one that was made.
func TestACandidateThatIsCanceledWhileItReadsContentsIsNone(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "1"})
	r := open(t, dir)
	b := base(t, r)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("pawl was asked to end")
	cancel(stop)
	p := &pack{store: r}
	from := filepath.Join(dir, "a")
	if named, err := p.addContents(ctx, []FileChange{{Path: "x", Mode: ModeFile, From: from}}); named != nil || !errors.Is(err, stop) {
		t.Errorf("contents = %+v, %v, want why it was canceled", named, err)
	}
	if c, err := r.Candidate(ctx, Draft{Base: b.Commit, When: when, Changes: []FileChange{{Path: "x", Mode: ModeFile, From: from}}}); err == nil {
		t.Errorf("candidate = %+v", c)
	}
	wantNoTrace(t, dir, "refs/heads/main")
}

func TestTheLastOfTwoChangesThatExcludeEachOtherStands(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"d/g": "1", "k": "1"})
	r := open(t, dir)
	blob := gittest.Run(t, dir, "rev-parse", "HEAD:k")
	file := func(path string) FileChange { return FileChange{Path: path, Mode: ModeFile, ID: blob} }
	for want, changes := range map[string][]FileChange{
		"d k": {file("d/f"), file("d")}, "d/f k": {file("d"), file("d/f")}, "d/e/f d/g k": {file("d/e"), file("d/e/f")},
	} {
		c, err := r.Candidate(t.Context(), Draft{Base: base(t, r).Commit, When: when, Changes: changes})
		must(t, err)
		var paths []string
		for _, e := range list(t, r, c.Tree) {
			paths = append(paths, e.Path)
		}
		if got := strings.Join(paths, " "); got != want {
			t.Errorf("changes %+v give %q, want %q", changes, got, want)
		}
	}
}

// What is under a folder that is gone is not nothing.
func TestATreeWithAFolderThatIsGoneIsAnErrorForAllWhoReadIt(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a/b/f": "1", "k": "1"})
	r := open(t, dir)
	first := base(t, r).Commit
	gittest.Write(t, dir, map[string]string{"a/b/f": "2"})
	gittest.Run(t, dir, "commit", "-qam", "second")
	second := base(t, r).Commit
	gone := gittest.Run(t, dir, "rev-parse", "HEAD:a")
	must(t, os.Remove(filepath.Join(dir, ".git", "objects", gone[:2], gone[2:])))
	for name, read := range map[string]func(b *Blobs) error{
		"Tree":   func(b *Blobs) error { _, _, err := b.Tree(second); return err },
		"Within": func(b *Blobs) error { _, _, err := b.Within(second, 9, func(string) bool { return true }); return err },
		"Differ": func(b *Blobs) error { _, err := b.Differ(first, second, 9, 0); return err },
		"Added":  func(b *Blobs) error { _, _, err := b.Added(second, first); return err },
		"Candidate": func(*Blobs) error {
			_, err := r.Candidate(t.Context(), Draft{Base: second, When: when, Changes: []FileChange{{Path: "a/x", Delete: true}}})
			return err
		},
	} {
		b, err := r.Blobs(t.Context())
		must(t, err)
		if err := read(b); err == nil {
			t.Errorf("%s: no error", name)
		}
		_ = b.Close()
	}
}

// Git does not write such trees, but whoever made the repository can.
func TestATreeThatHoldsANameTwiceOrAPathIsRefused(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"k": "1"})
	r := open(t, dir)
	first := base(t, r).Commit
	id, err := hex.DecodeString(gittest.Run(t, dir, "rev-parse", "HEAD:k"))
	must(t, err)
	tree := func(entries string) string {
		file := filepath.Join(t.TempDir(), "tree")
		must(t, os.WriteFile(file, []byte(entries), 0o600))
		return gittest.Run(t, dir, "hash-object", "-t", "tree", "-w", "--literally", file)
	}
	twice, path := tree(strings.Repeat("100644 f\x00"+string(id), 2)), tree("100644 a/b\x00"+string(id))
	for name, read := range map[string]func(b *Blobs) error{
		"Differ":          func(b *Blobs) error { _, err := b.Differ(first, twice, 9, 0); return err },
		"Added by it":     func(b *Blobs) error { _, _, err := b.Added(path, first); return err },
		"Added beyond it": func(b *Blobs) error { _, _, err := b.Added(first, path); return err },
	} {
		b, err := r.Blobs(t.Context())
		must(t, err)
		if err := read(b); err == nil {
			t.Errorf("%s: no error", name)
		}
		_ = b.Close()
	}
	if c, err := r.Candidate(t.Context(), Draft{Tree: twice, When: when, Changes: []FileChange{{Path: "x", Delete: true}}}); err == nil {
		t.Errorf("Candidate = %+v", c)
	}
}

func TestAPackThatIsRefusedLeavesNothing(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "1"})
	r := open(t, dir)
	from := t.TempDir()
	var changes []FileChange
	for i := range 2 * unpackLimit {
		name := fmt.Sprint("f", i)
		gittest.Write(t, from, map[string]string{name: name})
		changes = append(changes, FileChange{Path: name, Mode: ModeFile, From: filepath.Join(from, name)})
	}
	changes[len(changes)-1].ID = strings.Repeat("1", 40)
	_, err := r.Candidate(t.Context(), Draft{Base: base(t, r).Commit, When: when, Changes: changes})
	if err == nil || !strings.Contains(err.Error(), "changed while") {
		t.Errorf("candidate = %v, want an error that says what changed", err)
	}
	wantNoTrace(t, dir, "refs/heads/main")
}

func TestCandidateOfThreeThousandFiles(t *testing.T) {
	dir := gittest.Repo(t, nil)
	files := map[string]string{}
	for i := range 3000 {
		files[fmt.Sprintf("d%d/e%d/f%d", i%7, i%31, i)] = fmt.Sprint(i)
	}
	gittest.Write(t, dir, files)
	r := open(t, dir)
	start := time.Now()
	c, err := r.Candidate(t.Context(), Draft{Base: base(t, r).Commit, Changes: whole(t, dir), When: when})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("candidate of 3,000 files: %v", time.Since(start))
	start = time.Now()
	entries := list(t, r, c.Tree)
	if len(entries) != 3000 {
		t.Fatalf("list = %d entries, %v, want 3000", len(entries), err)
	}
	t.Logf("list of 3,000 files: %v", time.Since(start))
	sameContents(t, r, entries, files)
	gittest.Run(t, dir, "add", "-A")
	if want := gittest.Run(t, dir, "write-tree"); c.Tree != want {
		t.Errorf("tree = %s, want %s", c.Tree, want)
	}
}

func TestAnyPathSurvivesTheStream(t *testing.T) {
	dir := gittest.Repo(t, nil)
	r := open(t, dir)
	b := base(t, r)
	content := filepath.Join(t.TempDir(), "content")
	gittest.Write(t, filepath.Dir(content), map[string]string{"content": "x"})
	part := rapid.StringMatching(`[^/\x00]{1,12}`).Filter(func(s string) bool { return s != "." && s != ".." && !IsDotGit(s) })
	sample.Checks(t, 30)
	rapid.Check(t, func(rt *rapid.T) {
		path := strings.Join(rapid.SliceOfN(part, 1, 3).Draw(rt, "parts"), "/")
		c, err := r.Candidate(t.Context(), Draft{Base: b.Commit, When: when, Changes: []FileChange{{Path: path, Mode: ModeFile, From: content}}})
		if err != nil {
			rt.Fatal(err)
		}
		entries := list(t, r, c.Tree)
		if len(entries) != 1 || entries[0].Path != path {
			rt.Fatalf("list = %+v, %v, want the path %q", entries, err, path)
		}
	})
}

func sameContents(t *testing.T, r Store, entries []Entry, want map[string]string) {
	t.Helper()
	blobs, err := r.Blobs(t.Context())
	must(t, err)
	defer blobs.Close()
	err = blobs.Each(idsOf(entries), func(i int, _ int64, body io.Reader) error {
		got, err := io.ReadAll(body)
		if string(got) != want[entries[i].Path] {
			t.Errorf("%s = %q, want %q", entries[i].Path, got, want[entries[i].Path])
		}
		return err
	})
	must(t, err)
}

func TestACandidateThatGarbageCollectionTookBeforeItWasHeldIsWrittenAgain(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "1", "d/b": "2"})
	r := open(t, dir)
	from := filepath.Join(t.TempDir(), "new")
	gittest.Write(t, filepath.Dir(from), map[string]string{"new": "content"})
	hold := func(_ context.Context, commit string) error {
		gittest.Run(t, dir, "gc", "-q", "--prune=now")
		ref := filepath.Join(dir, ".git/refs/pawl/held")
		return errors.Join(os.MkdirAll(filepath.Dir(ref), 0o755), os.WriteFile(ref, []byte(commit+"\n"), 0o600))
	}
	c, err := r.Candidate(t.Context(), Draft{
		Base: base(t, r).Commit, When: when, Hold: hold, Changes: []FileChange{{Path: "d/new", Mode: ModeFile, From: from}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := gittest.Run(t, dir, "show", c.Commit+":d/new"); got != "content" {
		t.Errorf("d/new = %q", got)
	}
	gittest.Run(t, dir, "fsck", "--strict", "--no-dangling")
	failed := errors.New("no ref")
	refuse := func(context.Context, string) error { return failed }
	if _, err := r.Candidate(t.Context(), Draft{Base: base(t, r).Commit, When: when, Hold: refuse}); !errors.Is(err, failed) {
		t.Errorf("a candidate that cannot be held = %v", err)
	}
}
