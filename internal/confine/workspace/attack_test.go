//go:build unix

package workspace

import (
	"bytes"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

var fixture = map[string]string{"src/a": "1\n", "secret.txt": "the secret\n", ".loops/x/loop.config.yaml": "scope: [src/**]\n"}

// landed writes the candidate of what an agent did, and compares it with the
// tree that the agent was given.
func landed(t *testing.T, repo *git.Repo, tree *Tree) (object.Candidate, Comparison) {
	t.Helper()
	list, _ := changes(t, tree)
	candidate, err := repo.Candidate(t.Context(), object.Draft{Base: tree.Base, Changes: list, When: when})
	must(t, err)
	c, err := Compare(t.Context(), repo, tree.From, candidate.Tree)
	must(t, err)
	return candidate, c
}

func checked(t *testing.T, c Comparison, limits policy.Limits) []string {
	t.Helper()
	s, err := policy.NewScope([]string{"src/**"}, nil)
	must(t, err)
	var refused []string
	for _, v := range s.Check(c.Changes, c.Beside, limits) {
		refused = append(refused, string(v.Code)+" "+v.Path)
	}
	return refused
}

func TestAttack004ALinkToASecretIsRefusedAndNotRead(t *testing.T) {
	tree, repo := newTree(t, fixture)
	must(t, os.Symlink("../secret.txt", filepath.Join(tree.Dir, "src/l")))
	_, c := landed(t, repo, tree)
	if d := cmp.Diff([]string{"symlink src/l"}, checked(t, c, policy.Limits{})); d != "" {
		t.Error(d)
	}
	for _, change := range c.Changes {
		if strings.Contains(change.New.Text, "the secret") {
			t.Errorf("%s was followed", change.Path)
		}
	}
}

func TestAttack005WhatIsWrittenThroughALinkedFolderIsRefused(t *testing.T) {
	tree, repo := newTree(t, fixture)
	must(t, os.Symlink("../.loops", filepath.Join(tree.Dir, "src/d")))
	must(t, os.WriteFile(filepath.Join(tree.Dir, "src/d/x/loop.config.yaml"), []byte("scope: [x/**]\n"), 0o644))
	_, c := landed(t, repo, tree)
	if d := cmp.Diff([]string{"never .loops/x/loop.config.yaml", "symlink src/d"}, checked(t, c, policy.Limits{})); d != "" {
		t.Error(d)
	}
}

func TestAttack007AHardLinkOfTheCheckoutIsACopyInTheTree(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside.txt")
	plainGit(t, t, dir, "init", "-q")
	must(t, os.WriteFile(outside, []byte("mine\n"), 0o644))
	must(t, os.Mkdir(filepath.Join(dir, "src"), 0o755))
	must(t, os.Link(outside, filepath.Join(dir, "src/h")))
	_, repo, base := commitAll(t, dir)
	tree, err := New(t.TempDir(), repo, Options{}).Make(t.Context(), "act", base.Commit)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(tree.Dir, "src/h"), []byte("the agent's\n"), 0o644))
	if got, err := os.ReadFile(outside); err != nil || string(got) != "mine\n" {
		t.Errorf("the file outside holds %q, %v", got, err)
	}
	if c, p := changes(t, tree); short(c) != "M src/h" || len(p) > 0 {
		t.Errorf("changes %s, problems %v", short(c), p)
	}
	must(t, os.Remove(filepath.Join(tree.Dir, "src/h")))
	must(t, os.Link(outside, filepath.Join(tree.Dir, "src/h")))
	if _, p := changes(t, tree); !slices.Equal(p, []Problem{{"src/h", RuleHardLink}}) {
		t.Errorf("problems %v, want a hard link", p)
	}
}

// TestAttack010… writes the names by plumbing: not every file system holds them
// apart.
func TestAttack010PathsThatAreOneForOtherFileSystemsAreRefused(t *testing.T) {
	_, repo, base := newRepo(t, fixture)
	blob := repo.Format.HashBytes([]byte("1\n"))
	var list []object.FileChange
	for _, path := range []string{"src/A", "src/\u00e9", "src/e\u0301"} {
		list = append(list, object.FileChange{Path: path, Mode: object.ModeFile, ID: blob})
	}
	candidate, err := repo.Candidate(t.Context(), object.Draft{Base: base.Commit, Changes: list, When: when})
	must(t, err)
	c, err := Compare(t.Context(), repo, base.Tree, candidate.Tree)
	must(t, err)
	got := checked(t, c, policy.Limits{})
	slices.Sort(got)
	want := []string{"case_collision src/A", "normalisation src/e\u0301", "normalisation src/\u00e9"}
	if d := cmp.Diff(want, slices.Compact(got)); d != "" {
		t.Error(d)
	}
}

func TestAttack016AnExecutableBitIsRefusedUnlessAllowed(t *testing.T) {
	tree, repo := newTree(t, fixture)
	must(t, os.Chmod(filepath.Join(tree.Dir, "src/a"), 0o755))
	write(t, tree.Dir, map[string]string{"src/new": "#!/bin/sh\n"})
	must(t, os.Chmod(filepath.Join(tree.Dir, "src/new"), 0o755))
	_, c := landed(t, repo, tree)
	if d := cmp.Diff([]string{"exec_bit src/a", "exec_bit src/new"}, checked(t, c, policy.Limits{})); d != "" {
		t.Error(d)
	}
	if got := checked(t, c, policy.Limits{AllowExec: true}); len(got) > 0 {
		t.Errorf("allowed, yet refused %q", got)
	}
}

func TestAttack019OneHundredAndOneFilesAreRefused(t *testing.T) {
	tree, repo := newTree(t, fixture)
	for i := range policy.MaxFiles + 1 {
		write(t, tree.Dir, map[string]string{"src/f" + strings.Repeat("x", i): "1"})
	}
	_, c := landed(t, repo, tree)
	if got := checked(t, c, policy.Limits{}); len(got) != 1 || !strings.HasPrefix(got[0], "patch_size ") {
		t.Errorf("refused %q, want patch_size", got)
	}
}

func TestAttack020BitsThatGitDoesNotHaveAreStripped(t *testing.T) {
	tree, repo := newTree(t, fixture)
	write(t, tree.Dir, map[string]string{"src/a": "2\n"})
	plain, _ := landed(t, repo, tree)
	path := filepath.Join(tree.Dir, "src/a")
	must(t, os.Chmod(path, 0o644|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
	attributed(t, path)
	special, c := landed(t, repo, tree)
	if special.Tree != plain.Tree {
		t.Errorf("the tree is %s, want %s", special.Tree, plain.Tree)
	}
	if len(c.Changes) != 1 || c.Changes[0].New != (policy.File{Mode: object.ModeFile, Size: 2, Text: "2\n"}) {
		t.Errorf("changes %+v, want a plain file", c.Changes)
	}
	verify, err := New(t.TempDir(), repo, Options{}).Make(t.Context(), "verify", special.Commit)
	must(t, err)
	info, err := os.Lstat(filepath.Join(verify.Dir, "src/a"))
	must(t, err)
	if special := info.Mode() & (fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky); special != 0 {
		t.Errorf("the tree for the gates has %v", special)
	}
}

func TestAttack022ASparseFileOfATerabyteIsNotRead(t *testing.T) {
	tree, _ := newTree(t, fixture)
	path := filepath.Join(tree.Dir, "src/huge")
	must(t, os.WriteFile(path, nil, 0o644))
	size := int64(1) << 40
	for os.Truncate(path, size) != nil {
		size /= 2 // Some file systems end earlier.
	}
	c, p := changes(t, tree)
	if len(c) > 0 || !slices.Equal(p, []Problem{{"src/huge", RuleTooLarge}}) {
		t.Errorf("changes %s, problems %v, want it to be too large", short(c), p)
	}
}

func TestAttack023SpecialFilesAreNamedAndHoldNothingUp(t *testing.T) {
	tree, _ := newTree(t, fixture)
	must(t, syscall.Mkfifo(filepath.Join(tree.Dir, "src/fifo"), 0o644))
	// The path of a socket is short, and the tree's is not.
	t.Chdir(tree.Dir)
	listener, err := net.Listen("unix", "src/sock")
	must(t, err)
	defer listener.Close()
	want := []Problem{{"src/fifo", RuleSpecial}, {"src/sock", RuleSpecial}}
	_, problems := changes(t, tree)
	if d := cmp.Diff(want, problems); d != "" {
		t.Error(d)
	}
}

func TestCompareSaysWhatBothSidesHold(t *testing.T) {
	tree, repo := newTree(t, map[string]string{"a": "1\n", "d/b": "2\n", "kept": "x", "big": strings.Repeat("x", maxText+1)})
	write(t, tree.Dir, map[string]string{"a": "one\n", "new": "", "big": "small"})
	must(t, os.Remove(filepath.Join(tree.Dir, "d/b")))
	_, c := landed(t, repo, tree)
	want := Comparison{
		Changes: []policy.Change{
			{Path: "a", Old: policy.File{Mode: object.ModeFile, Size: 2, Text: "1\n"}, New: policy.File{Mode: object.ModeFile, Size: 4, Text: "one\n"}},
			{Path: "big", Old: policy.File{Mode: object.ModeFile, Size: maxText + 1}, New: policy.File{Mode: object.ModeFile, Size: 5, Text: "small"}},
			{Path: "d/b", Old: policy.File{Mode: object.ModeFile, Size: 2, Text: "2\n"}},
			{Path: "new", New: policy.File{Mode: object.ModeFile}},
		},
		Beside: []string{"a", "big", "kept"}, Files: 4,
		Before: map[string]object.Entry{
			"a":   {Path: "a", Mode: object.ModeFile, ID: repo.Format.HashBytes([]byte("1\n"))},
			"big": {Path: "big", Mode: object.ModeFile, ID: repo.Format.HashBytes(bytes.Repeat([]byte("x"), maxText+1))},
			"d/b": {Path: "d/b", Mode: object.ModeFile, ID: repo.Format.HashBytes([]byte("2\n"))},
		},
	}
	if d := cmp.Diff(want, c); d != "" {
		t.Error(d)
	}
	if _, err := Compare(t.Context(), repo, tree.From, strings.Repeat("1", 40)); err == nil {
		t.Error("a tree that is not there is compared")
	}
}

func TestCompareNamesASubmoduleThatIsAdded(t *testing.T) {
	dir, repo, base := newRepo(t, map[string]string{"a": "1"})
	plainGit(t, t, dir, "update-index", "--add", "--cacheinfo", "160000,"+base.Commit+",src/mod")
	c, err := Compare(t.Context(), repo, base.Commit, plainGit(t, t, dir, "write-tree"))
	must(t, err)
	if d := cmp.Diff([]string{"gitlink src/mod"}, checked(t, c, policy.Limits{AllowExec: true})); d != "" {
		t.Error(d)
	}
}
