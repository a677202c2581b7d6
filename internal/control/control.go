// Package control holds the operator's verbs, once for every surface: run,
// list, show, trace, explain, pause, resume, stop. Each takes plain values and
// returns a data type that prints as JSON.
//
// It never prints, never prompts, and knows nothing about terminals or HTTP.
// Verbs that read never write, not even to bring the store up to date.
package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path/filepath"
	"time"

	"github.com/pawl-run/pawl/internal/catalog"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/proc"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/turn"
)

// Deps are what a Service is made of. All are required, but Store may be nil
// for verbs that read when nothing has been stored yet.
type Deps struct {
	Store     *store.Store
	Engine    *engine.Engine // nil for a service that only reads
	Protocols map[string]engine.Protocol
	Drivers   map[string]turn.Driver
	Now       func() time.Time
	NewID     func(prefix string) string
	Environ   []string
	Home      string // pawl's own folder
	// HolderState looks at the process behind a holder, and EndHolder kills it
	// and waits for its end; nil where nothing is stopped.
	HolderState func(loop.Holder) loop.HolderState
	EndHolder   func(context.Context, loop.Holder) error
	// StopWait is how long Kill and Stop wait for a run to end; 0: 10 s.
	StopWait time.Duration
	// Plain runs small trusted programs.
	Plain interface {
		Run(ctx context.Context, s proc.Spec) (proc.Result, error)
	}
}

// Service carries out verbs in one workspace.
type Service struct {
	Deps
	repo  *git.Repo
	ws    loop.Workspace
	loops *catalog.Catalog
}

// New makes the service for the repository that contains dir.
func New(ctx context.Context, d Deps, dir string) (*Service, error) {
	repo, err := git.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	ws := loop.Workspace{ID: workspaceID(repo.Root), Root: repo.Root}
	return &Service{Deps: d, repo: repo, ws: ws, loops: catalog.New(ws, d.Store, d.Now)}, nil
}

// Root is the top of the checkout.
func (s *Service) Root() string { return s.ws.Root }

// Repo is the workspace's repository.
func (s *Service) Repo() *git.Repo { return s.repo }

// workspaceID is derived from the place, so that two clones are two workspaces.
func workspaceID(root string) string {
	sum := sha256.Sum256([]byte(filepath.Clean(root)))
	return "ws_" + hex.EncodeToString(sum[:8])
}

// view reads from the store. Without a store there is nothing to find.
func (s *Service) view(ctx context.Context, fn func(*store.Reader) error) error {
	if s.Store == nil {
		return loop.ErrNotFound
	}
	return s.Store.View(ctx, fn)
}

func absent(err error) bool { return errors.Is(err, loop.ErrNotFound) }
