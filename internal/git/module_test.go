//go:build unix

package git

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestTheRepositoryOfASubmoduleIsFoundWhereItIsKept(t *testing.T) {
	lib := gittest.Repo(t, map[string]string{"f": "lib"})
	commit := gittest.Run(t, lib, "rev-parse", "HEAD")
	dir := gittest.Repo(t, map[string]string{"a": "1"})
	gittest.Run(t, dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "--name", "the/lib", lib, "vendor/lib")
	gittest.Run(t, dir, "commit", "-qm", "lib")
	gittest.Run(t, dir, "worktree", "add", "-q", dir+"-linked")
	find := func(dir, name, commit string) error {
		t.Helper()
		m, err := open(t, dir).Module(t.Context(), name, "vendor/lib", commit)
		if err == nil {
			wantBlob(t, m, commit)
		}
		return err
	}
	missing := func(err error) bool { return errors.Is(err, loop.ErrNotFound) }
	if err := find(dir, "the/lib", commit); err != nil {
		t.Error(err)
	}
	if err := find(dir, "", commit); err != nil {
		t.Errorf("by its checkout: %v", err)
	}
	if err := find(dir+"-linked", "the/lib", commit); err != nil {
		t.Errorf("from a linked worktree: %v", err)
	}
	for _, name := range []string{"", "other", "../modules/the/lib", "/the/lib"} {
		if err := find(dir+"-linked", name, commit); !missing(err) {
			t.Errorf("under the name %q: %v", name, err)
		}
	}
	if err := find(dir, "the/lib", gittest.Run(t, dir, "rev-parse", "HEAD")); !missing(err) {
		t.Errorf("a commit that it does not have: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, ".git/modules/the/lib/config"), []byte("[broken"), 0o600))
	if err := find(dir, "the/lib", commit); !missing(err) {
		t.Errorf("a repository that cannot be read: %v", err)
	}
}

func wantBlob(t *testing.T, r *Repo, commit string) {
	t.Helper()
	blobs, err := r.Blobs(t.Context())
	must(t, err)
	defer blobs.Close()
	_, entries, err := blobs.Tree(commit)
	if err != nil || len(entries) != 1 || entries[0].Path != "f" {
		t.Errorf("the submodule holds %v, %v", entries, err)
	}
}

func TestAttributesAreThoseOfTheFolderAndOfTheRepository(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{".gitattributes": "* filter=checkout\n"})
	gittest.Write(t, dir, map[string]string{".git/info/attributes": "*.info filter=info\n"})
	rules := t.TempDir()
	gittest.Write(t, rules, map[string]string{".gitattributes": "[attr]big filter=lfs\n*.dat big\nodd* filter\n", "sub/.gitattributes": "*.dat -filter\n"})
	got, err := open(t, dir).Attribute(t.Context(), rules, "filter", []string{"a.dat", "sub/a.dat", "x.info", "other", "odd\nname"})
	must(t, err)
	if want := []string{"lfs", "unset", "info", "unspecified", "set"}; !slices.Equal(got, want) {
		t.Errorf("filter = %q, want %q", got, want)
	}
	if _, err := open(t, dir).Attribute(t.Context(), filepath.Join(rules, "none"), "filter", []string{"a"}); err == nil {
		t.Error("attributes of a folder that is not there")
	}
}
