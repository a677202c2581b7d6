package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/mirror"
)

// Kind is how trees are made. All kinds have the same guarantees.
type Kind int

// The kinds.
const (
	Plain   Kind = iota // each a complete copy
	Layered             // layers that the sandbox mounts as an overlay; Linux only
	Pooled              // a copy that Remove parks, and Make resets and uses again
)

// Options say how trees are made. The zero Options make plain copies.
type Options struct {
	Kind   Kind
	Limits Limits

	// Cache is the absolute path of a folder for layers and parked copies, which
	// outlive a tree. All kinds but Plain need it. It is on the file system of the
	// root and not below it, and processes that share the root may share it.
	Cache string

	// Mirror has the objects that git in a tree can read, beside those of the tree
	// itself. Nil means all objects of the repository.
	Mirror *mirror.Mirror

	// Objects is the path where programs in the trees see the object directory of the
	// mirror or the repository. Others are beside it (Trees.Stores). Empty means its own
	// path.
	Objects string

	// UID and GID own the files for programs in a tree. Zero is pawl's own user.
	UID, GID int
}

// New returns the trees of repo below root, an absolute path that need not exist.
func New(root string, repo *git.Repo, o Options) *Trees {
	o.Limits = o.Limits.withDefaults()
	return &Trees{root: root, repo: repo, options: o}
}

// Stores returns the object directories that programs in the trees need.
func (t *Trees) Stores() ([]Store, error) {
	dirs, err := t.repo.ObjectDirs()
	if err != nil {
		return nil, err
	}
	if t.options.Mirror != nil {
		dirs = []string{t.options.Mirror.Objects}
	}
	return storesAt(dirs, t.options.Objects), nil
}

func (t *Trees) gitDir() (gitDir, error) {
	list, err := t.Stores()
	if err != nil {
		return gitDir{}, err
	}
	g := gitDir{repo: t.repo, owner: t.programOwner(), mirror: t.options.Mirror}
	for _, s := range list {
		g.stores = append(g.stores, s.Inside)
	}
	return g, nil
}

func (t *Trees) programOwner() owner { return owner{t.options.UID, t.options.GID} }

// checkCache returns an error if the options have no cache.
func (t *Trees) checkCache() error {
	if !filepath.IsAbs(t.options.Cache) {
		return fmt.Errorf("the cache %q is not an absolute path", t.options.Cache)
	}
	return nil
}

// layerCache returns the folder of the repository in the cache.
func (t *Trees) layerCache() *layerCache {
	return &layerCache{dir: filepath.Join(t.options.Cache, RepositoryKey(t.repo)), trees: t}
}

// RepositoryKey returns the name of a repository in folders that several repositories
// share. All checkouts of a repository have the same.
func RepositoryKey(repo *git.Repo) string {
	key := sha256.Sum256([]byte(repo.CommonDir))
	return hex.EncodeToString(key[:8])
}
