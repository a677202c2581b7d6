package probe

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// tree is a repository: the text of each file by its path.
type tree map[string]string

// onDisk writes the tree and opens it as a caller should.
func (files tree) onDisk(t *testing.T) fs.FS {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return opened(t, dir)
}

func opened(t *testing.T, dir string) fs.FS {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root.FS()
}

func (files tree) inMemory() fs.FS {
	all := fstest.MapFS{}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return all
}

// plus is the tree with other files.
func (files tree) plus(more tree) tree {
	all := maps.Clone(files)
	maps.Copy(all, more)
	return all
}

// surveyed looks at the tree on disk, and at the same tree in memory, which
// must look the same.
func surveyed(t *testing.T, files tree) Repo {
	t.Helper()
	repo := Repository(files.onDisk(t))
	if diff := cmp.Diff(repo, Repository(files.inMemory())); diff != "" {
		t.Errorf("the disk and memory disagree (-disk +memory)\n%s", diff)
	}
	return repo
}

// drawn is a stack as one line per fact.
func drawn(stacks []Stack) []string {
	var all []string
	for _, s := range stacks {
		all = append(all, strings.Join(strings.Fields(strings.Join([]string{s.Name, s.Dir, s.Manifest, s.Lockfile}, " ")), " "))
		for _, c := range []struct {
			name string
			*Command
		}{{"setup", s.Setup}, {"test", s.Test}, {"lint", s.Lint}, {"typecheck", s.Typecheck}, {"build", s.Build}} {
			if c.Command != nil {
				all = append(all, "  "+c.name+": "+c.Line)
			}
		}
	}
	return all
}
