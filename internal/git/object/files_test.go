//go:build unix

package object

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/test/gittest"
)

// manyVersions is a repository in which one file has many versions, and its path.
func manyVersions(t *testing.T, format string) string {
	t.Helper()
	dir := gittest.Repo(t, map[string]string{"d/other": "other\n", "empty": ""}, "--object-format="+format)
	text := make([]string, 400)
	for i := range text {
		text[i] = fmt.Sprintf("line %d of a file with some more words", i)
	}
	draw := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // The same versions each time.
	var in strings.Builder
	for v := range 30 {
		text[draw.IntN(len(text))] = fmt.Sprintf("changed by version %d", v)
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter t <t@t> %d +0000\ndata 3\nnew\n", 1_500_000_000+v)
		if v == 0 {
			in.WriteString("from refs/heads/main^0\n")
		}
		for name, content := range map[string]string{"d/file": strings.Join(text, "\n"), "large": strings.Repeat("x", 70_000+v)} {
			fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", name, len(content), content)
		}
	}
	cmd := exec.CommandContext(t.Context(), "git", "-C", dir, "-c", "fastimport.unpackLimit=1000", "fast-import", "--quiet")
	cmd.Stdin = strings.NewReader(in.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git fast-import: %v\n%s", err, out)
	}
	gittest.Run(t, dir, "tag", "-a", "-m", "a tag", "tagged")
	return dir
}

// everyObject is the name and the kind of each object, as git has them.
func everyObject(t *testing.T, dir string) (names []string, kinds map[string]string) {
	t.Helper()
	kinds = map[string]string{}
	for line := range strings.Lines(gittest.Run(t, dir, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")) {
		id, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		names, kinds[id] = append(names, id), kind
	}
	return names, kinds
}

func TestObjectsInFilesAreThoseThatGitHas(t *testing.T) {
	for _, format := range []string{SHA1, SHA256} {
		for name, pack := range map[string][]string{
			"files":                      nil,
			"deltas by place":            {"repack", "-adfq", "--depth=50"},
			"deltas by name":             {"-c", "repack.useDeltaBaseOffset=false", "repack", "-adfq", "--depth=50"},
			"two packs and some files":   {"repack", "-dq"},
			"an index of the packs":      {"repack", "-adq", "--write-midx"},
			"what is packed, and a copy": {"repack", "-aq"},
		} {
			t.Run(format+"/"+name, func(t *testing.T) {
				t.Parallel()
				dir := manyVersions(t, format)
				if pack != nil {
					gittest.Run(t, dir, pack...)
					gittest.Write(t, dir, map[string]string{"new": "in a file of its own"})
					gittest.Run(t, dir, "add", "-A")
				}
				names, want := everyObject(t, dir)
				count := &gittest.Counting{}
				s := openWith(t, count, dir)
				count.Verbs = nil
				blobs, err := s.Blobs(t.Context())
				must(t, err)
				got := map[string]string{}
				for ids := range slices.Chunk(names, 50) {
					must(t, blobs.eachObject(ids, func(i int, kind string, size int64, r io.Reader) error {
						text, err := io.ReadAll(r)
						if size != int64(len(text)) {
							t.Errorf("%s has %d bytes, and its size is %d", ids[i], len(text), size)
						}
						if id := s.Format.ID(kind, text); id != ids[i] {
							t.Errorf("%s has the content of %s", ids[i], id)
						}
						got[ids[i]] = kind
						return err
					}))
					found, err := blobs.Resolve(ids...)
					must(t, err)
					for i, o := range found {
						if o != (Object{ids[i], want[ids[i]]}) {
							t.Errorf("%s resolves to %+v, want a %s", ids[i], o, want[ids[i]])
						}
					}
				}
				must(t, blobs.Close())
				if d := cmp.Diff(want, got); d != "" {
					t.Error(d)
				}
				if len(count.Verbs) > 0 || len(names) < 90 {
					t.Errorf("git was started for %v to read %d objects", count.Verbs, len(names))
				}
			})
		}
	}
}

// What is damaged, large or missing is not answered from files: git says what it is.
func TestWhatIsNotAsUsualInFilesIsLeftToGit(t *testing.T) {
	const text = "some content"
	damage := map[string]func(t *testing.T, dir, path string){
		"another object": func(t *testing.T, dir, path string) {
			t.Helper()
			gittest.WriteFile(t, dir+"/o", "else")
			other := gittest.Run(t, dir, "hash-object", "-w", "o")
			must(t, os.Remove(path))
			must(t, os.Link(loosePath(dir+"/.git/objects", other), path))
		},
		"a link": func(t *testing.T, _, path string) {
			t.Helper()
			must(t, os.Rename(path, path+"x"))
			must(t, os.Symlink(filepath.Base(path)+"x", path))
		},
		"a pipe": func(t *testing.T, _, path string) { t.Helper(); must(t, os.Remove(path)); mkfifo(t, path) },
		"a file that is cut": func(t *testing.T, _, path string) {
			t.Helper()
			must(t, os.Chmod(path, 0o600))
			must(t, os.Truncate(path, 9))
		},
		"an empty file": func(t *testing.T, _, path string) {
			t.Helper()
			must(t, os.Chmod(path, 0o600))
			must(t, os.Truncate(path, 0))
		},
		"a file that is longer": func(t *testing.T, _, path string) {
			t.Helper()
			must(t, os.Chmod(path, 0o600))
			must(t, os.Truncate(path, 2*maxSmall))
		},
		"no file": func(t *testing.T, _, path string) { t.Helper(); must(t, os.Remove(path)) },
	}
	for name, strike := range damage {
		t.Run(name, func(t *testing.T) {
			dir := gittest.Repo(t, map[string]string{"a": text})
			s := open(t, dir)
			id := s.Format.HashBytes([]byte(text))
			f := &files{format: s.Format, dirs: []string{filepath.Join(dir, ".git", "objects")}}
			if kind, body, err := f.read(id); kind != "blob" || string(body) != text || err != nil {
				t.Fatalf("read = %s %q, %v", kind, body, err)
			}
			strike(t, dir, loosePath(f.dirs[0], id))
			if kind, body, err := f.read(id); err == nil {
				t.Errorf("read = %s %q", kind, body)
			}
			f.close()
		})
	}
}

// A pack may be anything: reading it ends, with the object or an error.
func TestADamagedPackGivesNoWrongObject(t *testing.T) {
	t.Parallel()
	dir := manyVersions(t, SHA1)
	gittest.Run(t, dir, "repack", "-adfq")
	names, _ := everyObject(t, dir)
	objects := filepath.Join(dir, ".git", "objects")
	draw := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // The same damages each time.
	for _, ending := range []string{"idx", "pack"} {
		paths, err := filepath.Glob(filepath.Join(objects, "pack", "*."+ending))
		must(t, err)
		whole, err := os.ReadFile(paths[0])
		must(t, err)
		must(t, os.Chmod(paths[0], 0o600))
		for range 40 {
			text := bytes.Clone(whole)
			for range 1 + draw.IntN(30) {
				text[draw.IntN(len(text))] ^= byte(1 << draw.IntN(8))
			}
			if draw.IntN(5) == 0 {
				text = text[:draw.IntN(len(text))]
			}
			must(t, os.WriteFile(paths[0], text, 0o600))
			f := &files{format: SHA1, dirs: []string{objects}}
			for _, id := range names {
				if kind, body, err := f.read(id); err == nil && f.format.ID(kind, body) != id {
					t.Fatalf("%s is read as a %s of %d bytes", id, kind, len(body))
				}
			}
			f.close()
		}
		must(t, os.WriteFile(paths[0], whole, 0o600))
	}
}

func TestAFewSmallObjectsAreWrittenWithoutGit(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "1"})
	count := &gittest.Counting{}
	s := openWith(t, count, dir)
	from := filepath.Join(t.TempDir(), "new")
	gittest.WriteFile(t, from, "content")
	head := base(t, s).Commit
	count.Verbs = nil
	for range 2 { // The second time they are there.
		c, err := s.Candidate(t.Context(), Draft{Base: head, When: when, Changes: []FileChange{{Path: "d/new", Mode: ModeFile, From: from}}})
		must(t, err)
		if got := gittest.Run(t, dir, "show", c.Commit+":d/new"); got != "content" {
			t.Errorf("d/new = %q", got)
		}
		again, err := s.Commit(t.Context(), c.Tree, []string{head}, "next", when)
		must(t, err)
		if got := gittest.Run(t, dir, "log", "--format=%an <%ae> %at %B", again, "-1"); got != "pawl <pawl@localhost> 1700000000 next" {
			t.Errorf("the commit is %q", got)
		}
	}
	if len(count.Verbs) > 0 {
		t.Errorf("git was started for %v", count.Verbs)
	}
	gittest.Run(t, dir, "fsck", "--strict", "--no-dangling")
	left, err := filepath.Glob(filepath.Join(dir, ".git/objects/*/tmp_*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// Two contents with one name would let a tree hold what no gate saw.
func TestAnObjectThatIsThereWithAnotherContentIsNotWritten(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "1"})
	s := open(t, dir)
	f := &files{format: s.Format, dirs: []string{filepath.Join(dir, ".git", "objects")}}
	id := s.Format.HashBytes([]byte("1"))
	if err := f.writeLoose(f.dirs[0], packed{kind: "blob", id: id}, []byte("2")); err == nil || errors.Is(err, errForGit) {
		t.Errorf("written over another content: %v", err)
	}
	if got := gittest.Run(t, dir, "cat-file", "blob", id); got != "1" {
		t.Errorf("the object is %q now", got)
	}
}

// A group shares some repositories, for which git sets permissions. Large files are for
// git as well.
func TestWhatGitWritesByRulesOfItsOwnIsLeftToGit(t *testing.T) {
	for name, c := range map[string]struct {
		init []string
		size int
	}{"a shared repository": {[]string{"--shared"}, 10}, "a large file": {nil, maxSmall + 1}} {
		t.Run(name, func(t *testing.T) {
			dir := gittest.Repo(t, map[string]string{"a": "1"}, c.init...)
			count := &gittest.Counting{}
			s := openWith(t, count, dir)
			from := filepath.Join(t.TempDir(), "new")
			gittest.WriteFile(t, from, strings.Repeat("x", c.size))
			made, err := s.Candidate(t.Context(), Draft{Base: base(t, s).Commit, When: when, Changes: []FileChange{{Path: "new", Mode: ModeFile, From: from}}})
			must(t, err)
			if !slices.Contains(count.Verbs, "unpack-objects") {
				t.Errorf("git was started for %v", count.Verbs)
			}
			if got := gittest.Run(t, dir, "cat-file", "-s", made.Commit+":new"); got != fmt.Sprint(c.size) {
				t.Errorf("the file has %s bytes, want %d", got, c.size)
			}
		})
	}
}

// An object of a few kilobytes may say that it is small, and grow when it is read.
func TestAttack128AnObjectThatIsLargerThanItSaysIsNotRead(t *testing.T) {
	t.Parallel()
	const huge = 4 * maxSmall
	dir := t.TempDir()
	f := &files{dirs: []string{dir}}
	for name, said := range map[string]int64{"little": 10, "what is just small": maxSmall, "what it has": huge, "more than there is": 1 << 62, "less than nothing": -1} {
		var b bytes.Buffer
		deflate := zlib.NewWriter(&b)
		if _, err := fmt.Fprintf(deflate, "blob %d\x00", said); err != nil {
			t.Fatal(err)
		}
		if _, err := deflate.Write(make([]byte, huge)); err != nil {
			t.Fatal(err)
		}
		if err := deflate.Close(); err != nil {
			t.Fatal(err)
		}
		id := strings.Repeat("ab", 20)
		path := loosePath(dir, id)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		_, body, err := f.readLoose(id)
		if err == nil || body != nil {
			t.Errorf("an object that says it has %s (%d bytes) is read: %d bytes", name, said, len(body))
		}
	}
}
