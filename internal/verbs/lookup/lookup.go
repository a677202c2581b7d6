// Package lookup finds what people name in one workspace: loops, runs, who acts
// in them, and the approvals that are open. All of the operator's verbs begin
// with it.
//
// It never writes, not even to bring the store up to date.
package lookup

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/record/accepted"
	"github.com/pawl-run/pawl/internal/record/node"
	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Deps are what a Workspace is made of. Only Store and Accepted may be nil:
// without a Store nothing has been stored yet.
type Deps struct {
	Store       *store.Store
	Formats     format.List
	Drivers     map[string]turn.Driver
	Node        loop.Node // this one; the zero Node: it is not registered yet
	Now         func() time.Time
	HolderState func(loop.Holder) loop.HolderState // looks at the process behind a holder
	Accepted    *accepted.Folder                   // what a person has accepted on this machine; nil: all
}

// Workspace is a workspace with what its files and the store say of it.
type Workspace struct {
	loop.Workspace
	Deps

	Repo   *git.Repo
	Loops  *catalog.Catalog
	Placed bool // the store knows that it lies on this node, in this folder: a person has registered it
}

// Open returns the workspace of the repository that contains dir.
func Open(ctx context.Context, d Deps, dir string) (*Workspace, error) {
	repo, err := git.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	return OpenRepo(ctx, d, repo)
}

// OpenRepo returns the workspace of a repository. A clone that is a copy of another
// one is refused with a *loop.Fault.
func OpenRepo(ctx context.Context, d Deps, repo *git.Repo) (*Workspace, error) {
	ws, placed, err := node.Find(ctx, d.Store, d.Node, repo.Dirs, Origin(repo))
	if err != nil {
		return nil, err
	}
	return &Workspace{Workspace: ws, Deps: d, Repo: repo, Loops: catalog.New(ws, d.Formats, d.Store, d.Now, d.Node.Version), Placed: placed}, nil
}

// Origin is the address of origin without a password. It is empty if there is none or it
// cannot be read: nothing fails because of it.
func Origin(repo *git.Repo) string {
	address, err := repo.RemoteURL("origin")
	if err != nil {
		return ""
	}
	return git.SafeURL(address)
}

// View reads from the store. Without a store there is nothing to find, and the
// error is loop.ErrNotFound.
func (w *Workspace) View(ctx context.Context, fn func(*store.Reader) error) error {
	if w.Store == nil {
		return loop.ErrNotFound
	}
	return w.Store.View(ctx, fn)
}

// Absent reports whether an error says that something does not exist.
func Absent(err error) bool { return errors.Is(err, loop.ErrNotFound) }

// Definition returns the definition that a run of the loop would have, with what
// a person should know about it. A definition that cannot be run is an error; of
// a loop that is paused the error says so, because it need not be in order.
func (w *Workspace) Definition(ctx context.Context, name string) (def loop.Definition, warnings []string, err error) {
	e, err := w.RunnableLoop(ctx, name)
	return e.Definition, e.Warnings, err
}

// RunnableLoop returns the loop whose definition is that of Definition.
func (w *Workspace) RunnableLoop(ctx context.Context, name string) (catalog.Entry, error) {
	e, err := w.Loops.Lookup(ctx, name)
	if err != nil {
		return catalog.Entry{}, err
	}
	if readable := w.Formats.Of(e.Protocol).Readable; e.Problem != nil {
		err = e.Problem
	} else if readable != nil && e.File != "" {
		err = readable(projection.Memory{Root: w.Root}, e.Name)
	}
	if err != nil {
		if sw := engine.Switch(w.Root, e.Name, e.Definition.SwitchPaths()...); !sw.IsZero() {
			err = engine.PausedFault(e.Name, sw)
		}
	}
	return e, err
}

// Target is what a run of a definition works on. Its protocol is nil if this
// version does not have it.
func (w *Workspace) Target(def loop.Definition) engine.Target {
	protocol := def.WithDefaults().Protocol
	return engine.Target{
		Workspace: w.Workspace, Repo: w.Repo, Definition: def, Protocol: w.Formats.Protocol(protocol),
		OfFile: func() (loop.Definition, bool) { return w.Formats.LoadAs(w.Root, def.Name, protocol) },
		Loop:   loop.Loop{ID: catalog.LoopID(w.ID, protocol, def.Name), WorkspaceID: w.ID, Name: def.Name, Protocol: protocol},
	}
}

// Actor finds out who acts for a definition. The error is a *loop.Fault that
// names the fix.
func (w *Workspace) Actor(ctx context.Context, d loop.Definition) (turn.Actor, error) {
	return turn.ResolveActor(ctx, d, w.Drivers, func(ctx context.Context, handle string) (a loop.Agent, err error) {
		err = w.View(ctx, func(r *store.Reader) error {
			a, err = r.Agent(ctx, handle)
			return err
		})
		if item, asks := accepted.Agent(a); asks && err == nil {
			err = w.Accepted.Check(item)
		}
		return a, err
	})
}
