//go:build unix

package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestATreeIsWhatGitListsAndNothingElse(t *testing.T) {
	for _, format := range []string{object.SHA1, object.SHA256} {
		t.Run(format, func(t *testing.T) {
			dir := t.TempDir()
			plainGit(t, t, dir, "init", "-q", "--object-format="+format)
			write(t, dir, map[string]string{
				"a": "1", "dir/sub/b": "2", "crlf": "x\r\n", "lf": "x\n", "empty": "", "run": "#!/bin/sh\n", "big": strings.Repeat("0123456789", 300_000),
				"new\nline": "odd", "latin\xe9": "odd", ".gitattributes": "* text=auto eol=crlf ident filter=x\n", "ident": "$Id$",
			})
			must(t, os.Symlink("dir/sub", filepath.Join(dir, "link")))
			must(t, os.Chmod(filepath.Join(dir, "run"), 0o755))
			plainGit(t, t, dir, "-c", "core.autocrlf=false", "add", "-A")
			plainGit(t, t, dir, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", map[string]int{object.SHA1: 40, object.SHA256: 64}[format])+",mod")
			plainGit(t, t, dir, "commit", "-q", "-m", "first")
			repo, err := git.Open(t.Context(), dir)
			must(t, err)
			base, err := repo.Base(t.Context(), "")
			must(t, err)
			tree, err := New(filepath.Join(t.TempDir(), "new", "root"), repo, Options{}).Make(t.Context(), "run-1.act", base.Commit)
			must(t, err)
			if tree.Base != base.Commit || tree.From != base.Tree {
				t.Errorf("made from %s %s, want %+v", tree.Base, tree.From, base)
			}
			if c, p := changes(t, tree); len(c)+len(p) > 0 {
				t.Errorf("untouched tree has changes %s and problems %v", short(c), p)
			}
			wantListed(t, repo, tree)
		})
	}
}

// wantListed compares the directory with what git lists, file by file.
func wantListed(t *testing.T, repo *git.Repo, tree *Tree) {
	t.Helper()
	entries, err := repo.List(t.Context(), tree.From)
	must(t, err)
	want, got := map[string]string{}, map[string]string{}
	for _, e := range entries {
		if e.Mode != object.ModeGitlink {
			want[e.Path] = fmt.Sprintf("%o %s", e.Mode, e.ID)
		}
	}
	must(t, filepath.WalkDir(tree.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		must(t, err)
		id, _, err := repo.Format.HashFile(path, modeOf(info), 1<<30)
		must(t, err)
		rel, _ := filepath.Rel(tree.Dir, path)
		got[rel] = fmt.Sprintf("%o %s", modeOf(info), id)
		return nil
	}))
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestMakeRefusesTreesThatReachOutside(t *testing.T) {
	dir, repo, base := newRepo(t, map[string]string{"a": "1", "d/passwd": "mine"})
	blob := repo.Format.HashBytes([]byte("mine"))
	outside := t.TempDir()
	for name, entries := range map[string][]string{
		"a parent directory":               {"100644 blob " + blob + "\t.."},
		"a git directory":                  {"040000 tree " + base.Tree + "\t.git"},
		"a git directory in other letters": {"040000 tree " + base.Tree + "\t.GIT"},
		"an unknown kind of file":          {"010644 blob " + blob + "\tfifo"},
	} {
		t.Run(name, func(t *testing.T) {
			rev := rawTree(t, dir, entries...)
			trees := New(t.TempDir(), repo, Options{})
			if _, err := trees.Make(t.Context(), "x", rev); err == nil {
				t.Error("the tree was made")
			}
			if left, err := trees.TreeNames(); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
	t.Run("a link and a directory of the same name", func(t *testing.T) {
		must(t, os.WriteFile(filepath.Join(dir, "target"), []byte(outside), 0o644))
		target := plainGit(t, t, dir, "hash-object", "-w", "target")
		sub := rawTree(t, dir, "100644 blob "+blob+"\tpasswd")
		rev := rawTree(t, dir, "120000 blob "+target+"\tx", "040000 tree "+sub+"\tx")
		if _, err := New(t.TempDir(), repo, Options{}).Make(t.Context(), "x", rev); err == nil {
			t.Error("the tree was made")
		}
		if _, err := os.Lstat(filepath.Join(outside, "passwd")); err == nil {
			t.Error("a file was written outside")
		}
	})
}

// rawTree writes a tree object that no git command would make.
func rawTree(t *testing.T, dir string, entries ...string) string {
	t.Helper()
	var body []byte
	for _, e := range entries {
		meta, name, _ := strings.Cut(e, "\t")
		f := strings.Fields(meta)
		body = append(body, strings.TrimLeft(f[0], "0")+" "+name+"\x00"...)
		for i := 0; i < len(f[2]); i += 2 {
			var b byte
			_, err := fmt.Sscanf(f[2][i:i+2], "%02x", &b)
			must(t, err)
			body = append(body, b)
		}
	}
	file := filepath.Join(t.TempDir(), "tree")
	must(t, os.WriteFile(file, body, 0o644))
	return plainGit(t, t, dir, "hash-object", "-t", "tree", "-w", "--literally", file)
}

func TestMakeRefusesNamesAndPlacesThatAreTaken(t *testing.T) {
	_, repo, base := newRepo(t, nil)
	trees := New(t.TempDir(), repo, Options{})
	for _, name := range []string{"", ".", "..", "../x", "a/b", ".hidden", "a b", strings.Repeat("a", 101)} {
		if _, err := trees.Make(t.Context(), name, base.Commit); err == nil {
			t.Errorf("tree %q was made", name)
		}
		if err := trees.Remove(t.Context(), name); err == nil {
			t.Errorf("tree %q was removed", name)
		}
	}
	_, err := trees.Make(t.Context(), "x", base.Commit)
	must(t, err)
	if _, err := trees.Make(t.Context(), "x", base.Commit); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second Make = %v, want fs.ErrExist", err)
	}
	if _, err := trees.Make(t.Context(), "y", strings.Repeat("1", 40)); !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("Make of a missing tree = %v, want not found", err)
	}
}

func TestChangesNamesWhatAnAgentDid(t *testing.T) {
	for name, c := range map[string]struct {
		do       func(t *testing.T, dir string)
		changes  string
		problems []Problem
	}{
		"nothing":                  {func(*testing.T, string) {}, "", nil},
		"a new file":               {func(t *testing.T, d string) { write(t, d, map[string]string{"n/e/w": ""}) }, "M n/e/w", nil},
		"an edit of the same size": {func(t *testing.T, d string) { write(t, d, map[string]string{"a": "2"}) }, "M a", nil},
		"an edit with the time set back": {func(t *testing.T, d string) {
			info, err := os.Stat(filepath.Join(d, "a"))
			must(t, err)
			write(t, d, map[string]string{"a": "2"})
			must(t, os.Chtimes(filepath.Join(d, "a"), info.ModTime(), info.ModTime()))
		}, "M a", nil},
		"written again with the same content": {func(t *testing.T, d string) { write(t, d, map[string]string{"a": "1"}) }, "", nil},
		"a deletion":                          {func(t *testing.T, d string) { must(t, os.Remove(filepath.Join(d, "d/b"))) }, "D d/b", nil},
		"a deleted directory":                 {func(t *testing.T, d string) { must(t, os.RemoveAll(filepath.Join(d, "d"))) }, "D d/b", nil},
		"a rename": {func(t *testing.T, d string) {
			must(t, os.Rename(filepath.Join(d, "a"), filepath.Join(d, "z")))
		}, "D a, M z", nil},
		"an executable bit": {func(t *testing.T, d string) { must(t, os.Chmod(filepath.Join(d, "a"), 0o755)) }, "X a", nil},
		"a group's executable bit": {func(t *testing.T, d string) {
			must(t, os.Chmod(filepath.Join(d, "a"), 0o654))
		}, "", nil},
		"a set-user-id bit": {func(t *testing.T, d string) {
			must(t, os.Chmod(filepath.Join(d, "a"), 0o755|fs.ModeSetuid|fs.ModeSetgid))
		}, "X a", nil},
		"a file for a directory": {func(t *testing.T, d string) {
			must(t, os.RemoveAll(filepath.Join(d, "d")))
			write(t, d, map[string]string{"d": "file"})
		}, "M d, D d/b", nil},
		"a directory for a file": {func(t *testing.T, d string) {
			must(t, os.Remove(filepath.Join(d, "a")))
			write(t, d, map[string]string{"a/x": ""})
		}, "D a, M a/x", nil},
		"an empty directory": {func(t *testing.T, d string) { must(t, os.Mkdir(filepath.Join(d, "e"), 0o755)) }, "", nil},
		"a link inside":      {func(t *testing.T, d string) { must(t, os.Symlink("../a", filepath.Join(d, "d/l"))) }, "L d/l", nil},
		"a link outside": {func(t *testing.T, d string) {
			must(t, os.Symlink("../../a", filepath.Join(d, "d/l")))
		}, "", []Problem{{"d/l", RuleEscape}}},
		"an absolute link": {func(t *testing.T, d string) {
			must(t, os.Symlink("/etc/passwd", filepath.Join(d, "l")))
		}, "", []Problem{{"l", RuleEscape}}},
		"a link into .git": {func(t *testing.T, d string) {
			must(t, os.Symlink(".git/config", filepath.Join(d, "l")))
		}, "", []Problem{{"l", RuleEscape}}},
		"a link for a directory is not followed": {func(t *testing.T, d string) {
			must(t, os.RemoveAll(filepath.Join(d, "d")))
			must(t, os.Symlink("/", filepath.Join(d, "d")))
		}, "D d/b", []Problem{{"d", RuleEscape}}},
		"a FIFO": {func(t *testing.T, d string) { must(t, syscall.Mkfifo(filepath.Join(d, "f"), 0o644)) }, "", []Problem{{"f", RuleSpecial}}},
		"a FIFO for a file is not a deletion": {func(t *testing.T, d string) {
			must(t, os.Remove(filepath.Join(d, "a")))
			must(t, syscall.Mkfifo(filepath.Join(d, "a"), 0o644))
		}, "", []Problem{{"a", RuleSpecial}}},
		"a hard link": {func(t *testing.T, d string) {
			must(t, os.Link(filepath.Join(d, "a"), filepath.Join(d, "h")))
		}, "", []Problem{{"a", RuleHardLink}, {"h", RuleHardLink}}},
		"its own git directory": {func(t *testing.T, d string) { write(t, d, map[string]string{".git/config": "x"}) }, "", nil},
		"a nested git directory": {func(t *testing.T, d string) {
			write(t, d, map[string]string{"d/.git/config": "x", ".GIT/x": "", "git~1": ""})
		}, "", []Problem{{".GIT", RuleGitDir}, {"d/.git", RuleGitDir}, {"git~1", RuleGitDir}}},
		"control characters": {func(t *testing.T, d string) {
			write(t, d, map[string]string{"x\ny": "", "x\x1b/y": "", "a\u202eb": ""})
		}, "", []Problem{{"a\u202eb", RuleName}, {"x\ny", RuleName}, {"x\x1b", RuleName}}},
		"modes that keep everybody out": {func(t *testing.T, d string) {
			write(t, d, map[string]string{"new/x": "1"})
			must(t, os.Chmod(filepath.Join(d, "new/x"), 0))
			must(t, os.Chmod(filepath.Join(d, "new"), 0))
			must(t, os.Chmod(filepath.Join(d, "d"), 0))
		}, "M new/x", nil},
	} {
		t.Run(name, func(t *testing.T) {
			tree, _ := newTree(t, map[string]string{"a": "1", "d/b": "2"})
			c.do(t, tree.Dir)
			got, problems := changes(t, tree)
			if short(got) != c.changes {
				t.Errorf("changes = %q, want %q", short(got), c.changes)
			}
			if d := cmp.Diff(c.problems, problems); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestASubmoduleIsAnEmptyDirectoryOnly(t *testing.T) {
	dir, repo, base := newRepo(t, map[string]string{"a": "1"})
	plainGit(t, t, dir, "update-index", "--add", "--cacheinfo", "160000,"+base.Commit+",mod")
	trees := New(t.TempDir(), repo, Options{})
	tree, err := trees.Make(t.Context(), "x", plainGit(t, t, dir, "write-tree"))
	must(t, err)
	if c, p := changes(t, tree); len(c)+len(p) > 0 {
		t.Errorf("changes %s, problems %v, want none", short(c), p)
	}
	write(t, tree.Dir, map[string]string{"mod/x": ""})
	if c, p := changes(t, tree); len(c) > 0 || !slices.Equal(p, []Problem{{"mod", RuleSubmodule}}) {
		t.Errorf("changes %s, problems %v, want one about mod", short(c), p)
	}
	must(t, os.RemoveAll(filepath.Join(tree.Dir, "mod")))
	if c, _ := changes(t, tree); short(c) != "D mod" {
		t.Errorf("changes = %s, want D mod", short(c))
	}
}

func TestLimitsAreProblemsAndDeletionsStayExact(t *testing.T) {
	_, repo, base := newRepo(t, map[string]string{"a": "1", "b": "2", "z": "3"})
	tree, err := New(t.TempDir(), repo, Options{Limits: Limits{Files: 2, FileBytes: 10}}).Make(t.Context(), "x", base.Commit)
	must(t, err)
	write(t, tree.Dir, map[string]string{"a": "x", "big": strings.Repeat("x", 11), "c": "x", "d": "x", "e": "x", "z": "x"})
	must(t, os.Remove(filepath.Join(tree.Dir, "b")))
	got, problems := changes(t, tree)
	if want := "M a, D b, M c"; short(got) != want {
		t.Errorf("changes = %q, want %q", short(got), want)
	}
	if d := cmp.Diff([]Problem{{"big", RuleTooLarge}, {"d", RuleTooMuch}}, problems); d != "" {
		t.Error(d)
	}
}

func TestSkipNeverHidesATrackedFile(t *testing.T) {
	_, repo, base := newRepo(t, map[string]string{"build/kept": "1"})
	skip := func(paths []string) []bool {
		skipped := make([]bool, len(paths))
		for i, path := range paths {
			skipped[i] = strings.HasPrefix(path, "build") || path == "cache/"
		}
		return skipped
	}
	tree, err := New(t.TempDir(), repo, Options{Limits: Limits{Skip: skip}}).Make(t.Context(), "x", base.Commit)
	must(t, err)
	write(t, tree.Dir, map[string]string{"build/kept": "2", "build/out": "", "cache/x": ""})
	if c, _ := changes(t, tree); short(c) != "M build/kept" {
		t.Errorf("changes = %s, want the tracked file alone", short(c))
	}
}
