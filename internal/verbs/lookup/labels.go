package lookup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// UnservedLabels says why no machine can execute runs that ask for labels; empty if one
// can. This node is one that is there, and every other one that was seen lately; the
// workspace has to lie on it.
func (w *Workspace) UnservedLabels(ctx context.Context, labels []string) (string, error) {
	if len(labels) == 0 {
		return "", nil
	}
	nodes := []loop.Node{w.Node}
	if w.Store != nil {
		err := w.View(ctx, func(r *store.Reader) (err error) {
			nodes, err = w.nodesHere(ctx, r)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	if slices.ContainsFunc(nodes, func(n loop.Node) bool { return n.HasLabels(labels) }) {
		return "", nil
	}
	return DescribeUnserved(labels, nodes), nil
}

// nodesHere lists the nodes that are there and on which the workspace lies.
func (w *Workspace) nodesHere(ctx context.Context, r *store.Reader) ([]loop.Node, error) {
	all, err := r.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	places, err := r.Placements(ctx, w.ID)
	if err != nil {
		return nil, err
	}
	there := []loop.Node{w.Node}
	for _, n := range all {
		lies := slices.ContainsFunc(places, func(p loop.Placement) bool { return p.NodeID == n.ID })
		if n.ID != w.Node.ID && lies && w.Now().Sub(n.Seen) <= loop.SeenLately {
			there = append(there, n)
		}
	}
	return there, nil
}

// DescribeUnserved names the labels that none of the nodes has, or all if each is there
// but on no node together.
func DescribeUnserved(labels []string, nodes []loop.Node) string {
	var missing []string
	for _, l := range labels {
		if !slices.ContainsFunc(nodes, func(n loop.Node) bool { return slices.Contains(n.Labels, l) }) {
			missing = append(missing, l)
		}
	}
	if len(missing) == 0 {
		return "no machine has all of the labels " + strings.Join(labels, ", ")
	}
	word := "label"
	if len(missing) > 1 {
		word = "labels"
	}
	return fmt.Sprintf("no machine that is there has the %s %s", word, strings.Join(missing, ", "))
}

// ServeLabels is what to do about labels that no machine has.
var ServeLabels = loop.Advise("give them to a machine with the clone ({1} there, or {2}), or correct node_labels",
	loop.PawlCommand("nodes set").WithFlag("label", "LABEL").WithBlanks("LABEL"), loop.PawlCommand("worker").WithFlag("labels", "LABEL").WithBlanks("LABEL"))
