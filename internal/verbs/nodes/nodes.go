// Package nodes carries out the verbs for the machines that share a store: which there
// are, what lies on them, how this one is called, what a person accepts on it, and which is
// gone for good.
//
// It never touches a file of a checkout. What a node owes is only given up by Forget.
package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/accepted"
	"github.com/pawl-run/pawl/internal/record/node"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// Service carries out the verbs.
type Service struct {
	Store    *store.Store   // nil: nothing has been stored yet
	Registry *node.Registry // of this node; nil: the verbs only read
	Engine   *engine.Engine // nil: the verbs only read
	Here     string         // id of this node; empty: it is not registered
	Home     string         // pawl's own folder

	Accepted *accepted.Folder // what a person has accepted on this machine; nil: no other machine shares the store
	// OfFile reads the definition that a file of a checkout has for a loop.
	OfFile func(root, name, protocol string) (loop.Definition, bool)
}

// States of a node.
const (
	Idle    = "idle"    // it has no live run
	Away    = "away"    // so, and it was not seen lately: nobody fires or executes anything there
	Working = "working" // it extends the leases of its runs
	Lost    = "lost"    // the lease of a live run of it is over
	Differs = "differs" // its pawl does not know these tables: it takes no work
)

// View is a node as people see it.
type View struct {
	loop.Node
	Here  bool        `json:"here"`
	State string      `json:"state"`
	Runs  []Run       `json:"runs"` // that are live or owed
	Lies  []Placement `json:"workspaces"`
}

// Run is a run that a node has not finished.
type Run struct {
	Run   string    `json:"run"` // LOOP#N
	ID    string    `json:"id"`
	Phase string    `json:"phase"`
	Owed  bool      `json:"owed"` // it has ended, and the node has still to keep its work and write its files
	Until time.Time `json:"lease_until,omitzero"`

	row loop.Run
}

// Placement is a workspace on a node.
type Placement struct {
	Workspace string `json:"workspace"`
	Path      string `json:"path"`
	Remote    string `json:"remote,omitempty"`
}

// List returns all nodes of the store by name.
func (s *Service) List(ctx context.Context) (list []View, err error) {
	if s.Store == nil {
		return []View{}, nil
	}
	err = s.Store.View(ctx, func(r *store.Reader) error {
		nodes, err := r.Nodes(ctx)
		if err != nil {
			return err
		}
		places, err := r.AllPlacements(ctx)
		if err != nil {
			return err
		}
		list = make([]View, len(nodes))
		for i, n := range nodes {
			list[i] = View{Node: n, Here: n.ID == s.Here, State: Idle, Runs: []Run{}, Lies: []Placement{}}
			if err := list[i].addRuns(ctx, r, s.Store.Schema(), s.Store.Now()); err != nil {
				return err
			}
			for _, p := range places {
				if p.NodeID == n.ID {
					list[i].Lies = append(list[i].Lies, Placement{p.WorkspaceID, p.Path, p.Remote})
				}
			}
		}
		return nil
	})
	return shape.List(list), err
}

// addRuns adds the runs that the node has not finished, and its state.
func (v *View) addRuns(ctx context.Context, r *store.Reader, schema int64, now time.Time) error {
	switch {
	case v.Schema != schema:
		v.State = Differs
	case !v.Here && now.Sub(v.Seen) > loop.SeenLately:
		v.State = Away
	}
	open, err := r.OpenRuns(ctx, v.ID)
	for _, run := range open {
		l, err := r.Loop(ctx, run.LoopID)
		if err != nil {
			return err
		}
		v.Runs = append(v.Runs, Run{fmt.Sprintf("%s#%d", l.Name, run.N), run.ID, string(run.Phase), run.Owed, run.LeaseUntil, run})
		switch {
		case run.Owed || v.State == Lost:
		case now.After(run.LeaseUntil):
			v.State = Lost
		default:
			v.State = Working
		}
	}
	return err
}

// find returns the node with that name or id.
func (s *Service) find(ctx context.Context, name string) (View, error) {
	list, err := s.List(ctx)
	if err != nil {
		return View{}, err
	}
	i := slices.IndexFunc(list, func(v View) bool { return v.Name == name || v.ID == name })
	if i < 0 {
		return View{}, &loop.Fault{
			Exit: loop.ExitNotFound, What: "there is no node " + name, Err: loop.ErrNotFound,
			Fix: "{1} lists them", Actions: []loop.Command{loop.PawlCommand("nodes")},
		}
	}
	return list[i], nil
}

// Set changes what this node is called, and its labels. Nil leaves either as it is.
func (s *Service) Set(ctx context.Context, name *string, labels *[]string) (loop.Node, error) {
	n := s.Registry.Node
	if name != nil {
		n.Name = *name
	}
	if labels != nil {
		n.Labels = *labels
	}
	if err := checkWords(n); err != nil {
		return n, err
	}
	err := s.Store.Update(ctx, func(tx *store.Tx) (err error) {
		g := *s.Registry
		g.Node = n
		n, err = g.SaveNode(ctx, tx)
		return err
	})
	if err != nil {
		return n, err
	}
	s.Registry.Node.Labels = n.Labels // What this process registers from now on has them too.
	kept := n
	if name == nil {
		kept.Name = s.Registry.Node.Name // One that nobody chose is not kept: the host may get another.
	}
	return n, node.Keep(s.Home, kept)
}

// checkWords refuses names and labels that would have to be quoted or cannot be told
// apart.
func checkWords(n loop.Node) error {
	for what, words := range map[string][]string{"name": {n.Name}, "label": n.Labels} {
		for _, w := range words {
			if (w != "" || what == "label") && !loop.IsNodeName(w) {
				return &loop.Fault{
					Exit: loop.ExitUsage, What: fmt.Sprintf("%q is not a %s of a node", w, what),
					Fix: loop.NodeNameForm,
				}
			}
		}
	}
	return nil
}

// Forgotten is what was given up with a node.
type Forgotten struct {
	Node       loop.Node   `json:"node"`
	Runs       []Run       `json:"runs"` // whose work and files are given up
	Workspaces []Placement `json:"workspaces"`
}

// Plan says what Forget would give up. A node that works is refused.
func (s *Service) Plan(ctx context.Context, name string) (Forgotten, error) {
	v, err := s.find(ctx, name)
	f := Forgotten{v.Node, v.Runs, v.Lies}
	switch {
	case err != nil:
		return f, err
	case v.Here:
		return f, &loop.Fault{
			Exit: loop.ExitUsage, What: name + " is this node", Why: "what it owes can be finished here",
			Fix: "finish it: {1}", Actions: []loop.Command{loop.PawlCommand("recover")},
		}
	case v.State == Working:
		return f, &loop.Fault{
			Exit: loop.ExitHeld, What: "forget node " + name, Why: "it extends the lease of " + v.Runs[0].Run,
			Fix: "stop its runs first: {1}", Actions: []loop.Command{loop.PawlCommand("stop", v.Runs[0].Run)},
		}
	}
	return f, nil
}

// Forget removes a node that is gone for good: its live runs are ended, what it owes
// is given up, and its clones are no places of their workspaces any more. Each of these
// workspaces says so in its audit chain.
func (s *Service) Forget(ctx context.Context, by loop.Actor, name string) (Forgotten, error) {
	f, err := s.Plan(ctx, name)
	if err != nil {
		return f, err
	}
	for _, run := range f.Runs {
		if run.Owed {
			continue
		}
		if _, err := s.Engine.FreeLost(ctx, run.row); err != nil {
			return f, err
		}
	}
	return f, s.Store.Update(ctx, func(tx *store.Tx) error {
		open, err := tx.OpenRuns(ctx, f.Node.ID)
		for _, run := range open {
			if !run.Owed && run.State != loop.RunQueued {
				return &loop.HeldError{What: "node " + name, Holder: run.Holder}
			}
		}
		if err != nil {
			return err
		}
		var lost []string
		for _, run := range f.Runs {
			lost = append(lost, run.ID)
		}
		for _, p := range f.Workspaces {
			err = errors.Join(err, tx.LinkBy(ctx, by, p.Workspace, loop.LinkNode, "", map[string]any{
				"verb": "forget", "node": f.Node.ID, "name": f.Node.Name, "path": p.Path, "runs": lost,
			}))
		}
		return errors.Join(err, tx.GiveUpOwed(ctx, f.Node.ID), tx.ForgetNode(ctx, f.Node.ID))
	})
}
