package nodes

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/record/accepted"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Asked is something that rows of the store ask this machine to do, and that nobody has
// accepted here.
type Asked struct {
	ID   string        `json:"id"`
	Kind accepted.Kind `json:"kind"`
	Name string        `json:"name"`
	Does []string      `json:"does"`

	item accepted.Item
}

// mostQueued is how many queued runs are looked at.
const mostQueued = 1000

// Asks lists what rows ask this machine to do that nobody has accepted here. With a store
// that no other machine shares it is empty.
func (s *Service) Asks(ctx context.Context) ([]Asked, error) {
	list := []Asked{}
	if s.Store == nil || s.Accepted == nil {
		return list, nil
	}
	var items []accepted.Item
	err := s.Store.View(ctx, func(r *store.Reader) (err error) {
		items, err = s.itemsOf(ctx, r)
		return err
	})
	if err != nil {
		return list, err
	}
	for _, i := range items {
		known, err := s.Accepted.Has(i)
		if err != nil {
			return list, err
		}
		a := Asked{i.ID(), i.Kind, i.Name, i.Does, i}
		if !known && !slices.ContainsFunc(list, func(b Asked) bool { return b.ID == a.ID }) {
			list = append(list, a)
		}
	}
	slices.SortFunc(list, func(a, b Asked) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

// itemsOf are all that the rows ask this machine to do.
func (s *Service) itemsOf(ctx context.Context, r *store.Reader) (items []accepted.Item, err error) {
	add := func(i accepted.Item, asks bool) {
		if asks {
			items = append(items, i)
		}
	}
	channels, err := r.Channels(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range channels {
		if c.Node == "" || c.Node == s.Here {
			add(accepted.Channel(c))
		}
	}
	agents, err := r.Agents(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range agents {
		add(accepted.Agent(a))
	}
	places, err := r.AllPlacements(ctx)
	if err != nil {
		return nil, err
	}
	queued, err := r.QueuedRuns(ctx, s.Here, mostQueued)
	if err != nil {
		return nil, err
	}
	for _, p := range places {
		if p.NodeID != s.Here {
			continue
		}
		add(accepted.Place(p), true)
		of, err := s.definitionsAt(ctx, r, p, queued)
		if err != nil {
			return nil, err
		}
		items = append(items, of...)
	}
	return items, nil
}

// definitionsAt are those by which the loops of a place may be executed: of their rows, and of
// their queued runs. What a file of the checkout says needs nobody.
func (s *Service) definitionsAt(ctx context.Context, r *store.Reader, at loop.Placement, queued []loop.Run) (items []accepted.Item, err error) {
	loops, err := r.Loops(ctx, at.WorkspaceID)
	if err != nil {
		return nil, err
	}
	of := map[string]loop.Loop{} // by the digest of a definition of it
	for _, l := range loops {
		of[cmp.Or(l.Registered.Good, l.Definition)] = l
		for _, run := range queued {
			if run.LoopID == l.ID {
				of[run.Definition] = l
			}
		}
	}
	delete(of, "")
	stored, err := r.Definitions(ctx, slices.Collect(maps.Keys(of))...)
	for digest, d := range stored {
		item, asks := accepted.Definition(d)
		if !asks {
			continue
		}
		own, ok := s.OfFile(at.Path, of[digest].Name, of[digest].Protocol)
		if !ok || own.WithDefaults().Digest() != d.Digest() {
			items = append(items, item)
		}
	}
	return items, err
}

// Accept keeps on this machine that a person has accepted what rows ask it to do, by the ids of
// Asks or the beginnings of them.
func (s *Service) Accept(ctx context.Context, by loop.Actor, ids []string) ([]Asked, error) {
	if by.Role != loop.RoleHuman {
		return nil, loop.ErrRole
	}
	asked, err := s.Asks(ctx)
	if err != nil {
		return nil, err
	}
	chosen := []Asked{}
	for _, id := range ids {
		found := slices.DeleteFunc(slices.Clone(asked), func(a Asked) bool { return id == "" || !strings.HasPrefix(a.ID, id) })
		if len(found) != 1 {
			return nil, &loop.Fault{
				Exit: loop.ExitNotFound, What: fmt.Sprintf("%q names %d of the things that wait to be accepted on this machine", id, len(found)), Err: loop.ErrNotFound,
				Why: "it may be accepted already, or its row may be another one now", Fix: "{1} lists them", Actions: []loop.Command{loop.PawlCommand("nodes accept")},
			}
		}
		chosen = append(chosen, found[0])
	}
	for _, a := range chosen {
		if err := s.Accepted.Accept(a.item); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}
