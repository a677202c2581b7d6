package daemon

import (
	"context"
	"fmt"
	"sync"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/listen"
	"github.com/pawl-run/pawl/internal/record/accepted"
	"github.com/pawl-run/pawl/internal/record/node"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// fleet is the workspaces that lie on this node. Each is opened when it is first needed.
type fleet struct {
	store *store.Store
	node  string
	open  func(ctx context.Context, path string) (*Place, error)

	accepted *accepted.Folder

	mu     sync.Mutex
	places map[string]*Place // by id of the workspace
	found  Found
}

// Found is what the definitions of a fleet say.
type Found struct {
	Loops  int
	Broken int // of them cannot run
}

// scan reads the definitions of all workspaces on the node. By their path it returns what
// is wrong with each of them, nil for most.
func (f *fleet) scan(ctx context.Context) (wrong map[string]error, err error) {
	var list []loop.Placement
	err = f.store.View(ctx, func(r *store.Reader) (err error) {
		list, err = r.AllPlacements(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the workspaces of this node: %w", err)
	}
	wrong = map[string]error{}
	var found Found
	here := map[string]bool{}
	for _, at := range list {
		if at.NodeID != f.node {
			continue
		}
		here[at.WorkspaceID] = true
		p, err := f.placeAt(ctx, at)
		var synced catalog.Synced
		if err == nil {
			synced, err = p.Loops.Sync(ctx)
		}
		if wrong[at.Path] = err; err != nil {
			continue
		}
		found.Loops += synced.Loops
		found.Broken += synced.Broken
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.found = found
	for id := range f.places {
		if !here[id] {
			delete(f.places, id)
		}
	}
	return wrong, ctx.Err()
}

// placeAt returns the workspace of a placement. It opens it again if another clone may be at its path.
func (f *fleet) placeAt(ctx context.Context, at loop.Placement) (*Place, error) {
	f.mu.Lock()
	p := f.places[at.WorkspaceID]
	f.mu.Unlock()
	if p != nil && p.Root == at.Path && node.Lies(at) {
		return p, nil
	}
	f.mu.Lock()
	delete(f.places, at.WorkspaceID) // Nobody listens or fires there until it is known what is there now.
	f.mu.Unlock()
	if err := f.accepted.Check(accepted.Place(at)); err != nil {
		return nil, err
	}
	p, err := f.open(ctx, at.Path)
	if err != nil {
		return nil, err
	}
	if p.ID != at.WorkspaceID {
		return nil, fmt.Errorf("%s is not workspace %s any more", at.Path, at.WorkspaceID)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.places[p.ID] = p
	return p, nil
}

// place returns a workspace of this node by its id.
func (f *fleet) place(ctx context.Context, id string) (*Place, error) {
	f.mu.Lock()
	p := f.places[id]
	f.mu.Unlock()
	if p != nil {
		return p, nil
	}
	var list []loop.Placement
	err := f.store.View(ctx, func(r *store.Reader) (err error) {
		list, err = r.Placements(ctx, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, at := range list {
		if at.NodeID == f.node {
			return f.placeAt(ctx, at)
		}
	}
	return nil, fmt.Errorf("workspace %s does not lie on this node", id)
}

func (f *fleet) all() []*Place {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]*Place, 0, len(f.places))
	for _, p := range f.places {
		list = append(list, p)
	}
	return list
}

// listenPlaces lists the workspaces as a listener sees them.
func (f *fleet) listenPlaces() (list []listen.Place) {
	for _, p := range f.all() {
		list = append(list, listen.Place{ID: p.ID, Root: p.Root, Repo: p.Repo})
	}
	return list
}

func (f *fleet) counts() (workspaces int, found Found) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.places), f.found
}

// target returns what a run of a loop works on, and the file of the kill switch that is
// set for it; empty if none is.
func (f *fleet) target(ctx context.Context, l loop.Loop, d loop.Definition) (t engine.Target, sw string, err error) {
	p, err := f.place(ctx, l.WorkspaceID)
	if err == nil { // Another clone may have been put there since the last scan.
		p, err = f.placeAt(ctx, loop.Placement{WorkspaceID: p.ID, NodeID: f.node, Path: p.Root})
	}
	if err != nil {
		return t, "", err
	}
	t = p.Target(d)
	t.Loop = l
	if t.Protocol = p.Formats.Protocol(l.Protocol); t.Protocol == nil {
		return t, "", fmt.Errorf("protocol %q is not part of this version", l.Protocol)
	}
	return t, engine.Switch(p.Root, l.Name, d.SwitchPaths()...).String(), nil
}

// loopOf returns the loop with that id, and where it lies on this node.
func (f *fleet) loopOf(ctx context.Context, id string) (l loop.Loop, p *Place, err error) {
	err = f.store.View(ctx, func(r *store.Reader) error {
		l, err = r.Loop(ctx, id)
		return err
	})
	if err == nil {
		p, err = f.place(ctx, l.WorkspaceID)
	}
	return l, p, err
}

// targetOf returns what a queued run works on.
func (f *fleet) targetOf(ctx context.Context, run loop.Run) (l loop.Loop, t engine.Target, err error) {
	var d loop.Definition
	err = f.store.View(ctx, func(r *store.Reader) error {
		if l, err = r.Loop(ctx, run.LoopID); err != nil {
			return err
		}
		d, err = r.Definition(ctx, run.Definition)
		return err
	})
	if err == nil {
		t, _, err = f.target(ctx, l, d)
	}
	return l, t, err
}
