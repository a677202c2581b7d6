package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/git/object"
)

func TestAWideOrDeepUpperDirectoryIsBounded(t *testing.T) {
	_, repo, base := newRepo(t, map[string]string{"a": "1"})
	tree, err := layeredTrees(t, repo, Limits{Files: 50}).Make(t.Context(), "x", base.Commit)
	must(t, err)
	for i := range 500 {
		must(t, os.WriteFile(filepath.Join(layersOf(tree).upper, fmt.Sprint("f", i)), nil, 0o644))
	}
	must(t, os.MkdirAll(filepath.Join(layersOf(tree).upper, strings.Repeat("d/", 200)), 0o755))
	deep := layersOf(tree).upper
	for range 30 { // Deeper than a path can say.
		deep = filepath.Join(deep, strings.Repeat("x", 250))
		fd, err := unix.Open(filepath.Dir(deep), unix.O_DIRECTORY, 0)
		if err != nil {
			break
		}
		_ = unix.Mkdirat(fd, filepath.Base(deep), 0o755)
		_ = unix.Close(fd)
	}
	got, problems := changes(t, tree)
	if len(got) != 50 || !slices.ContainsFunc(problems, func(p Problem) bool { return p.Rule == RuleTooMuch }) {
		t.Errorf("%d changes, problems %v", len(got), problems)
	}
	if _, err := tree.Snapshot(t.Context(), "refs/pawl/snapshots/x", "m", when); !errors.Is(err, ErrIncomplete) {
		t.Errorf("Snapshot = %v, want it incomplete", err)
	}
	must(t, tree.Remove(t.Context()))
}

func TestAttack007AHardLinkInLayersIsRefused(t *testing.T) {
	tree, _ := newLayers(t, fixture)
	outside := filepath.Join(filepath.Dir(layersOf(tree).upper), "outside")
	must(t, os.WriteFile(outside, []byte("x"), 0o644))
	must(t, os.Mkdir(filepath.Join(layersOf(tree).upper, "src"), 0o755))
	must(t, os.Link(outside, filepath.Join(layersOf(tree).upper, "src/a")))
	if c, p := changes(t, tree); len(c) > 0 || !slices.Equal(p, []Problem{{"src/a", RuleHardLink}}) {
		t.Errorf("changes %s, problems %v", short(c), p)
	}
}

func TestAttack020AttributesInLayersAreNotImported(t *testing.T) {
	tree, repo := newLayers(t, fixture)
	write(t, layersOf(tree).upper, map[string]string{"src/a": "2\n"})
	plain, _ := landed(t, repo, tree)
	path := filepath.Join(layersOf(tree).upper, "src/a")
	must(t, os.Chmod(path, 0o644|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
	attributed(t, path)
	special, _ := landed(t, repo, tree)
	if special.Tree != plain.Tree {
		t.Errorf("the tree is %s, want %s", special.Tree, plain.Tree)
	}
}

func TestAttack023DevicesInLayersAreNamed(t *testing.T) {
	tree, _ := newLayers(t, map[string]string{"a": "1"})
	up := layersOf(tree).upper
	want := []Problem{{"f", RuleSpecial}}
	must(t, unix.Mkfifo(filepath.Join(up, "f"), 0o644))
	if unix.Mknod(filepath.Join(up, "null"), unix.S_IFCHR, int(unix.Mkdev(1, 3))) == nil { // Root alone can.
		want = append(want, Problem{"null", RuleSpecial})
	}
	if c, p := changes(t, tree); len(c) > 0 || !slices.Equal(p, want) {
		t.Errorf("changes %s, problems %v", short(c), p)
	}
}

func FuzzListing(f *testing.F) {
	dir := f.TempDir()
	path := filepath.Join(dir, "seed")
	id := strings.Repeat("12", 20)
	must(f, writeListing(path, []object.Entry{{Path: "a", Mode: object.ModeFile, ID: id}, {Path: "d/b", Mode: 0, ID: id}}, 20))
	seed, err := os.ReadFile(path)
	must(f, err)
	f.Add(seed, "a")
	f.Add(seed[:len(seed)-3], "d/b")
	f.Add(bytes.Repeat([]byte{0xff}, 60), "")
	f.Fuzz(func(t *testing.T, data []byte, want string) {
		at := filepath.Join(t.TempDir(), "l")
		must(t, os.WriteFile(at, data, 0o600))
		l, err := readListing(at)
		if err != nil {
			return
		}
		if e, ok := l.findEntry(want); ok && e.Path != want {
			t.Errorf("find %q = %q", want, e.Path)
		}
		n := 0
		stack{l}.eachBelow("", func(object.Entry) bool { n++; return true })
		if n > l.n {
			t.Errorf("%d of %d entries", n, l.n)
		}
	})
}
