package filled

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/confine/workspace"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/gitconfig"
	"github.com/pawl-run/pawl/internal/git/gitdir"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// maxDepth is how deep submodules may be nested.
const maxDepth = 32

// finder finds the content that a tree only names, in its repository and in those of its
// submodules.
type finder struct {
	cache   Cache
	digest  hash.Hash // of everything found
	modules []module  // outer ones first
	objects []lfsObject
	lfs     bool   // attributes of the outermost tree give files to git LFS
	outer   string // path of the current submodule of the outermost tree; empty: none
	missing MissingError
}

// module is a submodule whose commit is in the clone.
type module struct {
	path, commit string
	outer        string // path of the submodule of the outermost tree that it is or is in
	repo         *git.Repo
}

// lfsObject is a file whose content is in the store of git LFS.
type lfsObject struct {
	pointer
	path  string
	outer string // path of the submodule of the outermost tree that it is in; empty: none
	from  string // file of the store
	perm  fs.FileMode
}

// findInRepository searches the files of one repository, which are below prefix.
func (l *finder) findInRepository(ctx context.Context, repo *git.Repo, prefix string, entries []object.Entry, depth int) (err error) {
	blobs, err := repo.Blobs(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	if err := l.findPointers(ctx, repo, blobs, prefix, entries); err != nil {
		return err
	}
	var names map[string]string
	for _, e := range entries {
		if e.Mode != object.ModeGitlink {
			continue
		}
		if names == nil {
			if names, err = moduleNames(blobs, entries); err != nil {
				return err
			}
		}
		if err := l.findInModule(ctx, repo, names[e.Path], prefix, e, depth); err != nil {
			return err
		}
	}
	return nil
}

// findInModule searches a submodule and the submodules in it.
func (l *finder) findInModule(ctx context.Context, repo *git.Repo, name, prefix string, e object.Entry, depth int) error {
	if depth == 0 {
		l.outer = e.Path
		defer func() { l.outer = "" }()
	}
	m := module{path: prefix + e.Path, commit: e.ID, outer: l.outer}
	if depth == maxDepth {
		return fmt.Errorf("submodule %.80q: more than %d submodules are within each other", m.path, maxDepth)
	}
	var err error
	var entries []object.Entry
	if m.repo, err = repo.Module(ctx, name, e.Path, e.ID); err == nil {
		entries, err = listFiles(ctx, m.repo, e.ID)
	}
	if errors.Is(err, loop.ErrNotFound) {
		l.missing.addSubmodule(m)
		return nil
	}
	if err != nil {
		return fmt.Errorf("submodule %q: %w", m.path, err)
	}
	l.modules = append(l.modules, m)
	fmt.Fprintf(l.digest, "submodule\x00%s\x00%s\x00", m.path, m.commit)
	return l.findInRepository(ctx, m.repo, m.path+"/", entries, depth+1)
}

// listFiles lists the files of a commit.
func listFiles(ctx context.Context, repo *git.Repo, commit string) (entries []object.Entry, err error) {
	blobs, err := repo.Blobs(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	_, entries, err = blobs.Tree(commit)
	return entries, err
}

// moduleNames returns the names of submodules by path, from .gitmodules. A file that is
// invalid names none.
func moduleNames(blobs *object.Blobs, entries []object.Entry) (map[string]string, error) {
	names := map[string]string{}
	for _, e := range entries {
		if e.Path != ".gitmodules" || !isFile(e) {
			continue
		}
		text, err := blobs.Read(e.ID)
		if err != nil {
			return nil, fmt.Errorf("read .gitmodules: %w", err)
		}
		settings, _ := gitconfig.Parse(text)
		for _, s := range settings {
			if section, sub, name := s.Split(); section == "submodule" && name == "path" {
				names[s.Value] = sub
			}
		}
	}
	return names, nil
}

func isFile(e object.Entry) bool { return object.PlainMode(e.Mode)&^0o111 == object.ModeFile }

// findPointers searches for files that git LFS keeps.
func (l *finder) findPointers(ctx context.Context, repo *git.Repo, blobs *object.Blobs, prefix string, entries []object.Entry) error {
	var candidates []object.Entry
	var paths, ids []string
	for _, e := range entries {
		if isFile(e) {
			candidates, paths = append(candidates, e), append(paths, e.Path)
		}
	}
	kept, err := l.cache.keptByLFS(ctx, repo, blobs, entries, paths)
	if err != nil || kept == nil {
		return err
	}
	l.lfs = l.lfs || prefix == ""
	n := 0
	for i, e := range candidates {
		if kept[i] {
			candidates[n], ids = e, append(ids, e.ID)
			n++
		}
	}
	var stores []string
	return blobs.Each(ids, func(i int, size int64, r io.Reader) error {
		if size > maxPointer {
			return nil
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		p, ok := parsePointer(string(text))
		if !ok {
			return nil
		}
		if stores == nil {
			if stores, err = l.cache.lfsStores(repo); err != nil {
				return err
			}
		}
		e := candidates[i]
		o := lfsObject{pointer: p, path: prefix + e.Path, outer: l.outer, perm: 0o644}
		if e.Mode&0o100 != 0 {
			o.perm = 0o755
		}
		if o.from = p.findIn(stores); o.from == "" {
			l.missing.addObject(o)
			return nil
		}
		l.objects = append(l.objects, o)
		fmt.Fprintf(l.digest, "lfs\x00%s\x00%s\x00%o\x00", o.path, o.oid, o.perm)
		return nil
	})
}

// keptByLFS reports which paths the attributes of a tree and of the repository give to
// git LFS; nil: none.
func (s Cache) keptByLFS(ctx context.Context, repo *git.Repo, blobs *object.Blobs, entries []object.Entry, paths []string) (kept []bool, err error) {
	rules := map[string][]byte{}
	names := workspace.NamesLFS(ownAttributes(repo))
	for _, e := range entries {
		if path.Base(e.Path) != attributesName || !isFile(e) {
			continue
		}
		text, err := blobs.Read(e.ID)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", e.Path, err)
		}
		rules[e.Path] = text
		names = names || workspace.NamesLFS(string(text))
	}
	if !names || len(paths) == 0 {
		return nil, nil
	}
	dir, err := os.MkdirTemp(s.Dir, ".attributes-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for name, text := range rules {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := object.CheckPath(name); err != nil {
			return nil, err
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, text, 0o600)); err != nil {
			return nil, err
		}
	}
	values, err := repo.Attribute(ctx, dir, "filter", paths)
	for _, value := range values {
		kept = append(kept, value == "lfs")
	}
	return kept, err
}

const attributesName = ".gitattributes"

// ownAttributes returns the attributes in the git directory of the repository.
func ownAttributes(repo *git.Repo) string {
	text, err := gitdir.Read(filepath.Join(repo.CommonDir, "info", "attributes"))
	if err != nil {
		return ""
	}
	return string(text)
}

// KeptByLFS reports for each path whether the attributes of the tree that a copy was
// made from give it to git LFS.
func (s Cache) KeptByLFS(ctx context.Context, repo *git.Repo, tree *workspace.Tree, paths []string) (kept []bool, err error) {
	blobs, err := repo.Blobs(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	kept, err = s.keptByLFS(ctx, repo, blobs, tree.EntriesNamed(attributesName), paths)
	if err != nil {
		return nil, fmt.Errorf("ask which files git LFS keeps: %w", err)
	}
	if kept == nil {
		kept = make([]bool, len(paths))
	}
	return kept, nil
}

// lfsStores returns the directories with the objects of git LFS for a repository.
func (s Cache) lfsStores(repo *git.Repo) ([]string, error) {
	dirs, err := repo.ObjectDirs()
	if err != nil {
		return nil, err
	}
	stores := make([]string, len(dirs))
	for i, dir := range dirs {
		stores[i] = filepath.Join(filepath.Dir(dir), "lfs")
	}
	if own := s.lfsStorage(repo); own != "" {
		stores[0] = own
	}
	return stores, nil
}

// lfsStorage returns the setting lfs.storage of the repository or the user.
func (s Cache) lfsStorage(repo *git.Repo) (dir string) {
	home := proc.LookupVariable(s.Environ, "HOME")
	config := proc.LookupVariable(s.Environ, "XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(home, ".config")
	}
	for _, file := range []string{
		filepath.Join(config, "git", "config"), filepath.Join(home, ".gitconfig"),
		filepath.Join(repo.CommonDir, "config"), filepath.Join(repo.GitDir, "config.worktree"),
	} {
		text, err := gitdir.Read(file)
		if err != nil {
			continue
		}
		settings, err := gitconfig.Parse(text)
		if err != nil {
			continue
		}
		for _, one := range settings {
			if one.Key == "lfs.storage" {
				dir = one.Value
			}
		}
	}
	if below, ok := strings.CutPrefix(dir, "~/"); ok {
		return filepath.Join(home, below)
	}
	if dir == "" || filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(repo.CommonDir, dir)
}
