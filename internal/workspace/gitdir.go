package workspace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/index"
	"github.com/pawl-run/pawl/internal/git/object"
)

// gitDir writes the throw-away git directories in which an agent's own git
// works. What happens in one means nothing to pawl, which never reads it.
type gitDir struct {
	repo   *git.Repo
	stores []string // object directories, as the agent sees them
	owner  owner
}

// quiet is the configuration of a throw-away git directory. The index was
// written by pawl, without the numbers that differ from one view to another.
const quiet = `[user]
	name = agent
	email = agent@localhost
[gc]
	auto = 0
[maintenance]
	auto = false
[commit]
	gpgSign = false
[tag]
	gpgSign = false
[advice]
	detachedHead = false
[protocol]
	allow = never
[core]
	bare = false
	fileMode = true
	hooksPath = /dev/null
	fsmonitor = false
	attributesFile = /dev/null
	checkStat = minimal
	trustCTime = false
`

func (g gitDir) config() string {
	if g.repo.Format == object.SHA256 {
		return quiet + "\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = sha256\n"
	}
	return quiet + "\trepositoryFormatVersion = 0\n"
}

// common writes everything but HEAD into the folder dir, which must not exist.
func (g gitDir) common(dir string, entries []index.Entry) error {
	for _, sub := range []string{"", "objects", "objects/info", "objects/pack", "refs", "refs/heads", "refs/tags", "info"} {
		if err := g.folder(filepath.Join(dir, filepath.FromSlash(sub))); err != nil {
			return err
		}
	}
	files := map[string][]byte{"config": []byte(g.config()), "objects/info/alternates": []byte(strings.Join(g.stores, "\n") + "\n")}
	shallow, err := g.repo.Shallow()
	if err != nil {
		return err
	}
	if shallow != nil {
		files["shallow"] = shallow
	}
	for name, text := range files {
		if err := g.file(filepath.Join(dir, filepath.FromSlash(name)), text); err != nil {
			return err
		}
	}
	return g.index(filepath.Join(dir, "index"), entries)
}

func (g gitDir) index(path string, entries []index.Entry) error {
	return g.stream(path, func(w io.Writer) error { return index.Write(w, g.repo.Format, entries) })
}

func (g gitDir) stream(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close(), g.owner.take(path))
}

// head writes HEAD: the commit, or a branch without one.
func (g gitDir) head(dir, commit string) error {
	text := "ref: refs/heads/agent\n"
	if commit != "" {
		text = commit + "\n"
	}
	return g.file(filepath.Join(dir, "HEAD"), []byte(text))
}

func (g gitDir) folder(path string) error {
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	return g.owner.take(path)
}

func (g gitDir) file(path string, text []byte) error {
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return err
	}
	return g.owner.take(path)
}

// stores names the object directories of a repository as an agent sees them,
// if they are bound at the path at, and else as they are.
func stores(repo *git.Repo, at string) ([]Store, error) {
	dirs, err := repo.ObjectDirs()
	if err != nil {
		return nil, err
	}
	list := make([]Store, len(dirs))
	for i, dir := range dirs {
		list[i] = Store{Host: dir, Inside: dir}
		switch {
		case at != "" && i == 0:
			list[i].Inside = at
		case at != "":
			list[i].Inside = fmt.Sprintf("%s-%d", at, i)
		}
	}
	return list, nil
}

// Store is one directory of git objects that the trees borrow from.
type Store struct {
	Host   string // absolute path
	Inside string // where it has to be seen, read-only, by programs in a tree
}
