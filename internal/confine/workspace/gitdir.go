package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/index"
	"github.com/pawl-run/pawl/internal/git/mirror"
	"github.com/pawl-run/pawl/internal/git/object"
)

// gitDir writes the temporary git directories of the agent's own git. Pawl never reads
// them.
type gitDir struct {
	repo   *git.Repo
	stores []string       // object directories, as the agent sees them
	mirror *mirror.Mirror // nil: the agent sees all objects of the repository
	owner  owner
}

// quiet is the configuration of a temporary git directory. Pawl wrote its index, without
// the file numbers that differ from one mount to another.
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

func (g gitDir) configText() string {
	if g.repo.Format == object.SHA256 {
		return quiet + "\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = sha256\n"
	}
	return quiet + "\trepositoryFormatVersion = 0\n"
}

// writeCommon writes the part that trees with the same files share into the folder dir,
// which must not exist.
func (g gitDir) writeCommon(dir string, entries []index.Entry) error {
	for _, sub := range []string{"", "objects", "objects/info", "objects/pack", "refs", "refs/heads", "refs/tags", "info"} {
		if err := g.makeFolder(filepath.Join(dir, filepath.FromSlash(sub))); err != nil {
			return err
		}
	}
	files := map[string][]byte{"config": []byte(g.configText()), "objects/info/alternates": []byte(strings.Join(g.stores, "\n") + "\n")}
	for name, text := range files {
		if err := g.writeFile(filepath.Join(dir, filepath.FromSlash(name)), text); err != nil {
			return err
		}
	}
	return g.writeIndex(filepath.Join(dir, "index"), entries)
}

func (g gitDir) writeIndex(path string, entries []index.Entry) error {
	return g.writeStream(path, func(w io.Writer) error { return index.Write(w, g.repo.Format, entries) })
}

func (g gitDir) writeStream(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close(), g.owner.giveFile(path))
}

// writeOwn writes the part of the tree t alone into the folder dir: HEAD, where its
// history ends, and the objects that the mirror lacks, some of which may be there.
func (g gitDir) writeOwn(ctx context.Context, dir string, t *Tree) error {
	head := "ref: refs/heads/agent\n"
	if t.Base != "" {
		head = t.Base + "\n"
	}
	var ends []byte
	var err error
	if g.mirror != nil {
		ends = g.mirror.Shallow
		err = g.writeLacking(ctx, dir, cmp.Or(t.Base, t.From))
	} else {
		ends, err = g.repo.Shallow()
	}
	if err == nil && ends != nil {
		err = g.writeFile(filepath.Join(dir, "shallow"), ends)
	}
	if err != nil {
		return err
	}
	return g.writeFile(filepath.Join(dir, "HEAD"), []byte(head))
}

// writeLacking writes the objects of rev that the mirror lacks into the temporary git
// directory: changes of an agent or a person since the base.
func (g gitDir) writeLacking(ctx context.Context, dir, rev string) error {
	if rev == g.mirror.Base {
		return nil
	}
	blobs, err := g.repo.Blobs(ctx)
	if err != nil {
		return err
	}
	defer blobs.Close()
	ids, ok, err := blobs.Added(rev, g.mirror.Base)
	if err != nil {
		return err
	}
	objects := filepath.Join(dir, "objects")
	for _, made := range []string{objects, filepath.Join(objects, "pack")} {
		if err := g.makeFolder(made); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if ok {
		return blobs.WriteLoose(ids, objects, g.owner.giveFile)
	}
	names, err := g.repo.PackReach(ctx, dir, git.Reach{Commit: rev, Without: g.mirror.Base})
	for _, name := range names {
		for _, suffix := range []string{".pack", ".idx"} {
			err = errors.Join(err, g.owner.giveFile(filepath.Join(objects, "pack", name+suffix)))
		}
	}
	return err
}

func (g gitDir) makeFolder(path string) error {
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	return g.owner.giveFile(path)
}

func (g gitDir) writeFile(path string, text []byte) error {
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return err
	}
	return g.owner.giveFile(path)
}

// storesAt returns where an agent sees object directories: the first at the path at, the
// others beside it, or all at their own paths if at is empty.
func storesAt(dirs []string, at string) []Store {
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
	return list
}

// Store is one directory of git objects that the trees borrow from.
type Store struct {
	Host   string // absolute path
	Inside string // where programs in a tree must see it, read-only
}
