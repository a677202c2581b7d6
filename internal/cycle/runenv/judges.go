package runenv

import (
	"context"
	"errors"
	"io/fs"

	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Judges returns the files that decide what the gates say, as they are on the base: an
// agent's own tree could name anything. They are read once per base.
func (s Env) Judges(ctx context.Context) (gate.Judges, error) {
	if s.Tools == nil || s.Base == "" {
		return gate.JudgesOf(s.Definition, nil)
	}
	s.Tools.mu.Lock()
	found, ok := s.Tools.judges[s.Base]
	s.Tools.mu.Unlock()
	if ok {
		return found, nil
	}
	found, err := gate.JudgesOf(s.Definition, treeAt(ctx, s.Repo, s.Base))
	if err == nil {
		err = context.Cause(ctx) // It may have been read only in part.
	}
	if err != nil {
		return gate.Judges{}, err
	}
	s.Tools.mu.Lock()
	defer s.Tools.mu.Unlock()
	if s.Tools.judges == nil {
		s.Tools.judges = map[string]gate.Judges{}
	}
	s.Tools.judges[s.Base] = found
	return found, nil
}

// treeOf is a tree of two functions.
type treeOf struct {
	read  func(name string) ([]byte, error)
	names func() ([]string, error)
}

// Read returns the content of a file of the tree.
func (t treeOf) Read(name string) ([]byte, error) { return t.read(name) }

// Names lists the files of the tree.
func (t treeOf) Names() ([]string, error) { return t.names() }

// treeAt reads the files of a commit or tree.
func treeAt(ctx context.Context, repo *git.Repo, rev string) treeOf {
	return treeOf{
		read: func(name string) ([]byte, error) {
			text, err := repo.Show(ctx, rev, name)
			if errors.Is(err, loop.ErrNotFound) {
				return nil, fs.ErrNotExist
			}
			return text, err
		},
		names: func() (names []string, err error) {
			blobs, err := repo.Blobs(ctx)
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, blobs.Close()) }()
			_, entries, err := blobs.Tree(rev)
			for _, e := range entries {
				names = append(names, e.Path)
			}
			return names, err
		},
	}
}
