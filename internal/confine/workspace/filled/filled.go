// Package filled keeps what trees of git only name: the files of submodules, and
// the files in whose place git LFS keeps pointers. All of it is taken from what is
// in the clone already, once, and kept in layers that nobody writes to.
//
// It never contacts another host, starts no filter and no program of git LFS, and
// never writes to a repository or a checkout.
package filled

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/confine/workspace"
	"github.com/pawl-run/pawl/internal/confine/workspace/toolset"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/durable"
	"github.com/pawl-run/pawl/internal/ground/safeopen"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Cache is a directory with layers, for all repositories of a home.
type Cache struct {
	toolset.Prepared
	Environ  []string     // of the user, for git's configuration
	UID, GID int          // of the user of the files; zero is pawl itself
	Say      func(string) // is called with a message when a layer is made
}

// Filling is what one tree is filled with. The zero Filling is for a tree that is
// complete.
type Filling struct {
	Dir string // absolute path of a directory that nobody writes to; empty: nothing
	LFS bool   // attributes of the tree give files to git LFS
}

// FillingOf returns what a tree of the repository must be filled with, and makes the
// layer if it is missing. No program may have seen the tree yet. If the clone lacks
// content, the error is a *MissingError.
func (s Cache) FillingOf(ctx context.Context, repo *git.Repo, tree *workspace.Tree) (Filling, error) {
	partial, err := tree.MayLackContent()
	if err != nil {
		return Filling{}, err
	}
	if !partial && !workspace.NamesLFS(ownAttributes(repo)) {
		return Filling{}, nil
	}
	entries, err := tree.Entries()
	if err != nil {
		return Filling{}, err
	}
	l := finder{cache: s, digest: sha256.New()}
	fmt.Fprintf(l.digest, "1\x00%d\x00%d\x00", s.UID, s.GID)
	if err := errors.Join(os.MkdirAll(s.Dir, 0o700), l.findInRepository(ctx, repo, "", entries, 0)); err != nil {
		return Filling{}, fmt.Errorf("fill tree %s: %w", tree.Name, err)
	}
	if l.missing.isAny() {
		return Filling{}, &l.missing
	}
	f := Filling{LFS: l.lfs}
	if len(l.modules)+len(l.objects) > 0 {
		f.Dir, err = s.openLayer(ctx, &l)
	}
	return f, err
}

const treeName = "tree"

// openLayer returns the directory of the layer with what was found, and makes it if it is
// missing.
func (s Cache) openLayer(ctx context.Context, l *finder) (string, error) {
	key := hex.EncodeToString(l.digest.Sum(nil)[:16])
	if dir, ok := s.Layer(key); ok {
		return filepath.Join(dir, treeName), nil
	}
	unlock, err := s.Lock(ctx, key)
	if err != nil {
		return "", err
	}
	defer unlock()
	if dir, ok := s.Layer(key); ok {
		return filepath.Join(dir, treeName), nil // Another process was faster.
	}
	s.Say(l.summarize())
	made := filepath.Join(s.Dir, "."+key+".new")
	err = errors.Join(os.RemoveAll(made), os.Mkdir(made, 0o700))
	if err == nil {
		err = s.writeLayer(ctx, filepath.Join(made, treeName), l)
	}
	if err == nil {
		err = durable.SyncTree(made)
	}
	dir := filepath.Join(s.Dir, key)
	if err == nil {
		err = errors.Join(os.Rename(made, dir), durable.SyncFolder(s.Dir))
	}
	if err != nil {
		return "", fmt.Errorf("fill from the clone: %w", errors.Join(err, os.RemoveAll(made)))
	}
	return filepath.Join(dir, treeName), nil
}

// summarize says in words what is written.
func (l *finder) summarize() string {
	var parts []string
	for _, p := range []struct {
		n         int
		one, many string
	}{{len(l.modules), "submodule", "submodules"}, {len(l.objects), "file of git LFS", "files of git LFS"}} {
		switch {
		case p.n == 1:
			parts = append(parts, "1 "+p.one)
		case p.n > 1:
			parts = append(parts, fmt.Sprint(p.n, " ", p.many))
		}
	}
	return "filled from this clone: " + strings.Join(parts, " and ") + " (once for these versions)"
}

// writeLayer writes what was found into dir, which must not exist: first submodules, outer
// ones before inner ones, and then files in place of pointers.
func (s Cache) writeLayer(ctx context.Context, dir string, l *finder) error {
	if err := errors.Join(os.Mkdir(dir, 0o755), s.giveToUser(dir)); err != nil {
		return err
	}
	for _, m := range l.modules {
		to, err := s.makeFolders(dir, m.path)
		if err == nil {
			err = workspace.New("", m.repo, workspace.Options{UID: s.UID, GID: s.GID}).Write(ctx, to, m.commit)
		}
		if errors.Is(err, loop.ErrNotFound) {
			l.missing.addSubmodule(m) // A clone that has the commit may lack its files.
			return &l.missing
		}
		if err != nil {
			return fmt.Errorf("submodule %q: %w", m.path, err)
		}
	}
	for _, o := range l.objects {
		if err := s.writeObject(ctx, dir, o); err != nil {
			return err
		}
	}
	return backdate(dir)
}

// giveToUser gives a file or folder to its user.
func (s Cache) giveToUser(name string) error {
	if s.UID == 0 || s.UID == os.Geteuid() {
		return nil
	}
	return os.Lchown(name, s.UID, s.GID)
}

// makeFolders makes the folders of a path below dir. It follows no link, because what was
// written there may contain links.
func (s Cache) makeFolders(dir, name string) (string, error) {
	at := dir
	for part := range strings.SplitSeq(name, "/") {
		if part == "." {
			break // The file is at the top.
		}
		at = filepath.Join(at, part)
		err := os.Mkdir(at, 0o755)
		if err == nil {
			err = s.giveToUser(at)
		} else if info, statErr := os.Lstat(at); statErr == nil && info.IsDir() {
			err = nil
		}
		if err != nil {
			return "", err
		}
	}
	return at, nil
}

// writeObject writes a file from the store of git LFS, if its content is the one that the
// pointer names.
func (s Cache) writeObject(ctx context.Context, dir string, o lfsObject) error {
	folder, err := s.makeFolders(dir, path.Dir(o.path))
	if err != nil {
		return err
	}
	from, _, err := safeopen.Open(o.from)
	if err != nil {
		return err
	}
	defer from.Close()
	to := filepath.Join(folder, filepath.Base(filepath.FromSlash(o.path)))
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, o.perm)
	if err != nil {
		return err
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(file, h), untilDone{ctx, from})
	if err = errors.Join(err, file.Close(), s.giveToUser(to)); err != nil {
		return err
	}
	if n != o.size || hex.EncodeToString(h.Sum(nil)) != o.oid {
		var damaged MissingError
		damaged.addDamaged(o)
		return &damaged
	}
	return nil
}

// untilDone is a reader that fails when its context ends.
type untilDone struct {
	ctx context.Context //nolint:containedctx // It exists for one copy.
	io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.Reader.Read(p)
}

// backdated is how much older than the layer its files are made to look, so that git need
// not read a file that is as old as its index.
const backdated = 10 * time.Second

// backdate gives all files of a layer the same time, so that no build takes one for newer
// than another.
func backdate(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	when := info.ModTime().Add(-backdated)
	return filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		return os.Chtimes(name, when, when)
	})
}
