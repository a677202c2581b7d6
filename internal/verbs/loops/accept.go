package loops

import (
	"context"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// Seen is a definition as a person has seen it.
type Seen struct {
	Loop   string `json:"loop"`
	Digest string `json:"digest"` // of the definition with its defaults
}

// Accepted is what Accept recorded.
type Accepted struct {
	Loops []string `json:"loops"` // names
}

// Unaccepted returns those definitions that the workspace has like this and that nobody has
// accepted yet.
func (s *Service) Unaccepted(ctx context.Context, seen []Seen) (list []Seen, err error) {
	for _, one := range seen {
		e, err := s.ws.Loops.Lookup(ctx, one.Loop)
		if lookup.Absent(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if e.Problem != nil || e.Definition.WithDefaults().Digest() != one.Digest {
			continue
		}
		accepted := false
		err = s.ws.View(ctx, func(r *store.Reader) (err error) {
			accepted, err = r.IsAccepted(ctx, e.LoopID(), one.Digest)
			return err
		})
		if err != nil && !lookup.Absent(err) {
			return nil, err
		}
		if !accepted {
			list = append(list, one)
		}
	}
	return list, nil
}

// Accept records that a person has accepted definitions as they have seen them: an agent may
// fire them. One that has changed since is left as it is; a loop that the workspace does not have is
// an error.
func (s *Service) Accept(ctx context.Context, by loop.Actor, seen []Seen) (a Accepted, err error) {
	for _, one := range seen {
		if _, err := s.ws.Loops.Resolve(ctx, one.Loop); err != nil {
			return a, err
		}
	}
	if seen, err = s.Unaccepted(ctx, seen); err != nil {
		return a, err
	}
	var list []loop.Acceptance
	for _, one := range seen {
		e, err := s.ws.Loops.Resolve(ctx, one.Loop)
		if err != nil {
			return a, err
		}
		a.Loops = append(a.Loops, e.Name)
		list = append(list, loop.Acceptance{LoopID: e.LoopID(), Digest: one.Digest, How: loop.AcceptedCheck, By: by})
	}
	return a, s.ws.Store.Update(ctx, func(tx *store.Tx) error { return tx.Accept(ctx, list...) })
}

// AcceptRegistered records that a person has accepted what the files of all loops say, as it
// is registered.
func (s *Service) AcceptRegistered(ctx context.Context, by loop.Actor) error {
	return s.ws.Store.Update(ctx, func(tx *store.Tx) error {
		rows, err := tx.Loops(ctx, s.ws.ID)
		if err != nil {
			return err
		}
		var list []loop.Acceptance
		for _, l := range rows {
			if reg := l.Registered; s.ws.Formats.ByFile(l.Protocol) && reg.Broken == "" && reg.Good != "" {
				list = append(list, loop.Acceptance{LoopID: l.ID, Digest: reg.Good, How: loop.AcceptedRegister, By: by})
			}
		}
		return tx.Accept(ctx, list...)
	})
}
