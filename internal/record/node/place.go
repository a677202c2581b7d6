package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/git/gitdir"
	"github.com/pawl-run/pawl/internal/record/accepted"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// idName is the file of a git directory that holds the id of the workspace. That of
// the git directory which linked worktrees share is also the id of the repository.
const idName = "pawl-workspace"

// readID returns the id that a git directory holds, or "" if it holds none.
func readID(gitDir string) (string, error) {
	path := filepath.Join(gitDir, idName)
	text, err := gitdir.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	id := strings.TrimSpace(string(text))
	if err == nil && !isID(id) {
		err = fmt.Errorf("%q is not the id of a workspace", id)
	}
	if err != nil {
		return "", &loop.Fault{
			Exit: loop.ExitUnreadable, What: "read which workspace this is from " + path, Why: err.Error(), Err: err,
			Fix: "restore the file, or give the clone an id of its own: {1}", Actions: []loop.Command{loop.PawlCommand("init").WithFlag("new-id")},
		}
	}
	return id, nil
}

// isID reports whether a text can be the id of a workspace.
func isID(id string) bool {
	rest, ok := strings.CutPrefix(id, "ws_")
	return ok && rest != "" && len(rest) <= 64 && strings.Trim(rest, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// Find says which workspace a checkout is, for whoever only reads. It has no ID if it
// is not registered. Placed reports whether the store knows that the workspace lies on this
// node, at this path: what a git directory says of itself is not enough. Without a store,
// the git directory alone is asked. Remote is the address of origin without a password. A
// copy of another clone is refused with a *loop.Fault.
func Find(ctx context.Context, s *store.Store, n loop.Node, dirs gitdir.Dirs, remote string) (ws loop.Workspace, placed bool, err error) {
	ws, err = ofClone(dirs)
	if err != nil || s == nil {
		return ws, false, err
	}
	err = s.View(ctx, func(r *store.Reader) error {
		at, err := recognize(ctx, r, n, &ws, remote)
		placed = at.placed
		return err
	})
	return ws, placed, err
}

// ofClone returns what the git directory says.
func ofClone(dirs gitdir.Dirs) (ws loop.Workspace, err error) {
	ws.Root = dirs.Root
	if ws.ID, err = readID(dirs.GitDir); err != nil {
		return ws, err
	}
	ws.Repository = ws.ID
	if dirs.CommonDir != dirs.GitDir {
		ws.Repository, err = readID(dirs.CommonDir)
	}
	return ws, err
}

// standing is what the store knows of a clone.
type standing struct {
	stored bool // it has the workspace
	placed bool // on this node, at this path
	before bool // it was registered when the path was the id
}

// recognize compares a clone with what the store knows of its workspace. It fills in
// the repository that the store has, and the id of a clone that has lost its own: what lay
// at its path, unless it came from elsewhere, or was registered there before workspaces
// had ids of their own.
func recognize(ctx context.Context, r *store.Reader, n loop.Node, ws *loop.Workspace, remote string) (at standing, err error) {
	if ws.ID == "" {
		lay, err := r.PlacementAt(ctx, n.ID, ws.Root)
		if err != nil || lay.WorkspaceID != "" && lay.Remote == remote {
			ws.ID, at.stored = lay.WorkspaceID, true
			return at, err
		}
		id, err := r.WorkspaceAt(ctx, ws.Root)
		if errors.Is(err, loop.ErrNotFound) {
			return at, nil
		}
		ws.ID, at.stored, at.before = id, err == nil, true
		return at, err
	}
	repository, err := r.Repository(ctx, ws.ID)
	if errors.Is(err, loop.ErrNotFound) {
		return at, nil
	}
	places, err := r.Placements(ctx, ws.ID)
	if err != nil || len(places) == 0 {
		at.stored, at.before = err == nil, true
		return at, err
	}
	at.stored, ws.Repository = true, repository
	here := slices.IndexFunc(places, func(p loop.Placement) bool { return p.NodeID == n.ID })
	switch {
	case here < 0 && n.ID == "" && slices.ContainsFunc(places, func(p loop.Placement) bool { return p.Path == ws.Root }):
		return at, nil // A home that has not written yet reads what lies here.
	case here < 0:
		name := places[0].NodeID
		if other, err := r.Node(ctx, name); err == nil {
			name = other.Name
		}
		return at, copiedFault(*ws, fmt.Sprintf("it has the id of the workspace %s at %s on node %s", ws.ID, places[0].Path, name), "it is a second place of that workspace")
	case places[here].Path == ws.Root:
		at.placed = true
	case Lies(places[here]):
		return at, copiedFault(*ws, fmt.Sprintf("it has the id of the workspace %s at %s, which is there too", ws.ID, places[here].Path), "it takes the place of that clone")
	}
	return at, nil
}

// Lies reports whether the clone of a placement is still where it was. A clone whose git directory nobody can find out
// is.
func Lies(p loop.Placement) bool {
	dir, err := gitdir.Of(p.Path)
	if err != nil {
		return true // Nobody can tell; two clones with one id are worse.
	}
	id, err := readID(dir)
	return dir != "" && err == nil && id == p.WorkspaceID
}

// copiedFault refuses a clone with the id of another one. Joins says when it is to join
// that workspace.
func copiedFault(ws loop.Workspace, why, joins string) error {
	return &loop.Fault{
		Exit: loop.ExitHeld, What: ws.Root + " is a copy of another clone", Why: why,
		Fix:     "if it is a workspace of its own: {1}; if " + joins + ": {2}",
		Actions: []loop.Command{loop.PawlCommand("init").WithFlag("new-id"), loop.PawlCommand("init").WithFlag("join", ws.ID)},
	}
}

// Registry registers what this node is and where workspaces lie on it.
type Registry struct {
	Store *store.Store
	Node  loop.Node // with all that is known of it; its name may be empty
	Host  string    // name of the host, for a node that nobody named
	NewID func(prefix string) string

	Accepted *accepted.Folder // where it is kept that a workspace lies here; nil: the store is enough
}

// Registered is what Register found.
type Registered struct {
	loop.Workspace
	Node   loop.Node
	Before string // id of another workspace that lay here before; empty: none
}

// Register makes sure that the store knows this node, and that the checkout lies on
// it. A clone without an id gets one. It writes only what has changed. A copy of
// another clone is refused with a *loop.Fault.
func (g *Registry) Register(ctx context.Context, dirs gitdir.Dirs, remote string) (Registered, error) {
	reg := Registered{Node: g.Node}
	ws, err := ofClone(dirs)
	if err != nil {
		return reg, err
	}
	var at standing
	var known loop.Node
	err = g.Store.View(ctx, func(r *store.Reader) (err error) {
		if known, err = r.Node(ctx, g.Node.ID); err != nil && !errors.Is(err, loop.ErrNotFound) {
			return err
		}
		at, err = recognize(ctx, r, g.Node, &ws, remote)
		return err
	})
	if err != nil {
		return reg, err
	}
	reg.Workspace, reg.Node.Name = ws, known.Name
	if at.placed && !g.changed(known) {
		return reg, g.acceptPlace(ws)
	}
	if reg.Workspace, err = g.giveIDs(ws, dirs); err != nil {
		return reg, err
	}
	if err := g.acceptPlace(reg.Workspace); err != nil {
		return reg, err
	}
	err = g.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if reg.Node, err = g.save(ctx, tx, known); err != nil {
			return err
		}
		before, err := tx.PlacementAt(ctx, g.Node.ID, dirs.Root)
		if err != nil {
			return err
		}
		if before.WorkspaceID != reg.ID {
			reg.Before = before.WorkspaceID
		}
		if err := tx.AddWorkspace(ctx, reg.Workspace); err != nil {
			return err
		}
		if at.before {
			if err := tx.SaveRepository(ctx, reg.ID, reg.Repository); err != nil {
				return err
			}
		}
		return g.place(ctx, tx, reg.Workspace, remote)
	})
	return reg, err
}

// seenGap is how old what the store knows of a node may be when a command begins, and
// skewGap by how much its clock may have moved since then.
const (
	seenGap = 60_000
	skewGap = time.Second
)

// changed reports whether the store does not know this node as it is now.
func (g *Registry) changed(known loop.Node) bool {
	n := g.Node
	return known.ID == "" || known.Boot != n.Boot || known.Version != n.Version || known.Schema != n.Schema || n.Name != "" && known.Name != n.Name ||
		!slices.Equal(known.Labels, n.Labels) && len(known.Labels)+len(n.Labels) > 0 || g.Store.Now().Sub(known.Seen).Milliseconds() > seenGap ||
		(g.Store.Skew()-time.Duration(known.Skew)*time.Millisecond).Abs() > skewGap
}

// SaveNode saves what is known of this node.
func (g *Registry) SaveNode(ctx context.Context, tx *store.Tx) (loop.Node, error) {
	known, err := tx.Node(ctx, g.Node.ID)
	if err != nil && !errors.Is(err, loop.ErrNotFound) {
		return known, err
	}
	return g.save(ctx, tx, known)
}

// save is SaveNode if what the store knows was read before. Without a name of its own it is called like its host, with a
// number if another node is.
func (g *Registry) save(ctx context.Context, tx *store.Tx, known loop.Node) (loop.Node, error) {
	n := g.Node
	n.Skew = g.Store.Skew().Milliseconds()
	if n.Name != "" {
		err := tx.SaveNode(ctx, n)
		if errors.Is(err, loop.ErrNameTaken) {
			err = &loop.Fault{
				Exit: loop.ExitHeld, What: "register this node as " + n.Name, Why: "another node of the store has this name", Err: err,
				Fix: "choose another: {1}", Actions: []loop.Command{loop.PawlCommand("nodes set").WithFlag("name", "NAME").WithBlanks("NAME")},
			}
		}
		return n, err
	}
	name := g.Host
	if known.Name != "" {
		name = known.Name
	}
	for i := 2; ; i++ {
		n.Name = name
		err := tx.SaveNode(ctx, n)
		if !errors.Is(err, loop.ErrNameTaken) {
			return n, err
		}
		name = fmt.Sprintf("%s-%d", g.Host, i)
	}
}

// giveIDs gives ids to a clone and to its repository if they have none.
func (g *Registry) giveIDs(ws loop.Workspace, dirs gitdir.Dirs) (_ loop.Workspace, err error) {
	give := func(dir, id string) (string, error) {
		if err := writeID(dir, id, false); err != nil {
			return "", err
		}
		return readID(dir)
	}
	if ws.ID == "" {
		ws.ID = g.NewID("ws")
	}
	if ws.ID, err = give(dirs.GitDir, ws.ID); err != nil {
		return ws, err
	}
	if ws.Repository == "" {
		ws.Repository = ws.ID
	}
	if dirs.CommonDir != dirs.GitDir && ws.Repository == ws.ID {
		ws.Repository, err = give(dirs.CommonDir, g.NewID("ws"))
	}
	return ws, err
}

// writeID writes the id of a clone, in place of another one if asked.
func writeID(dir, id string, over bool) error {
	name := func(made string) error { return linkNew(made, filepath.Join(dir, idName)) }
	if over {
		name = func(made string) error { return os.Rename(made, filepath.Join(dir, idName)) }
	}
	if err := writeFile(filepath.Join(dir, idName), []byte(id+"\n"), name); err != nil {
		return &loop.Fault{
			Exit: loop.ExitError, What: "write the id of the workspace into " + dir, Why: err.Error(), Err: err,
			Fix: "make the git directory writable for the user that runs pawl",
		}
	}
	return nil
}

// Join makes a clone a place of a workspace that the store knows. On a node that has
// that workspace at another path, this clone takes the other's place. What the clone
// was before stays in the store and lies nowhere. It returns that workspace's id, or ""
// if the clone had none.
func (g *Registry) Join(ctx context.Context, dirs gitdir.Dirs, id, remote string) (before string, err error) {
	before, err = readID(dirs.GitDir)
	if err != nil {
		return "", err
	}
	var repository string
	err = g.Store.View(ctx, func(r *store.Reader) (err error) {
		repository, err = r.Repository(ctx, id)
		if errors.Is(err, loop.ErrNotFound) {
			return &loop.Fault{
				Exit: loop.ExitNotFound, What: "the store has no workspace " + id, Err: err,
				Fix: "{1} lists them, with where they lie", Actions: []loop.Command{loop.PawlCommand("nodes")},
			}
		}
		if err != nil {
			return err
		}
		open, err := r.OpenRuns(ctx, g.Node.ID)
		for _, run := range open {
			l, err := r.Loop(ctx, run.LoopID)
			if err != nil {
				return err
			}
			if l.WorkspaceID == id || l.WorkspaceID == before && before != id {
				return &loop.Fault{
					Exit: loop.ExitHeld, What: "join workspace " + id, Why: fmt.Sprintf("run %s#%d of this node is not finished", l.Name, run.N),
					Fix: "wait for its end, or conclude it in the clone that it works on: {1}", Actions: []loop.Command{loop.PawlCommand("recover")},
				}
			}
		}
		return err
	})
	if err != nil {
		return "", err
	}
	if before != id {
		if err := writeID(dirs.GitDir, id, true); err != nil {
			return "", err
		}
	}
	ws := loop.Workspace{ID: id, Root: dirs.Root, Repository: repository}
	if err := g.acceptPlace(ws); err != nil {
		return "", err
	}
	return before, g.Store.Update(ctx, func(tx *store.Tx) error {
		if _, err := g.SaveNode(ctx, tx); err != nil {
			return err
		}
		if before != "" && before != id {
			if err := tx.Unplace(ctx, before, g.Node.ID); err != nil {
				return err
			}
		}
		return g.place(ctx, tx, ws, remote)
	})
}

// Separate gives a clone an id of its own: it is another workspace from then on.
func (g *Registry) Separate(ctx context.Context, dirs gitdir.Dirs, remote string) (Registered, error) {
	if err := writeID(dirs.GitDir, g.NewID("ws"), true); err != nil {
		return Registered{}, err
	}
	return g.Register(ctx, dirs, remote)
}

// acceptPlace keeps on this machine that a workspace lies at its root here: whoever
// registers it stands in its checkout, or was shown the path.
func (g *Registry) acceptPlace(ws loop.Workspace) error {
	return g.Accepted.Accept(accepted.Place(loop.Placement{WorkspaceID: ws.ID, NodeID: g.Node.ID, Path: ws.Root}))
}

// place says that a workspace lies at its root on this node.
func (g *Registry) place(ctx context.Context, tx *store.Tx, ws loop.Workspace, remote string) error {
	return tx.Place(ctx, loop.Placement{WorkspaceID: ws.ID, NodeID: g.Node.ID, Path: ws.Root, Remote: remote})
}
