package specs

import (
	"context"
	"errors"

	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// SpawnRequest asks for a worker of a monitor or a coordinator.
type SpawnRequest struct {
	Parent      string               `json:"parent"`
	Goal        string               `json:"goal,omitempty"` // empty: the parent's
	Concurrency loopspec.Concurrency `json:"concurrency,omitempty"`
	Budget      loopspec.Budget      `json:"budget,omitzero"` // taken out of the parent's

	Claim store.Claim `json:"-"` // of the call that creates it
}

// Spawn creates a worker of a spec. Its budget is taken out of what the parent has left, in
// one transaction: however many are spawned at once, nothing is spent twice.
func (s *Service) Spawn(ctx context.Context, by loop.Actor, r SpawnRequest) (View, error) {
	if _, _, err := s.find(ctx, r.Parent); err != nil {
		return View{}, err
	}
	for {
		random, err := randomBytes()
		if err != nil {
			return View{}, err
		}
		var v View
		added := false
		err = s.ws.Store.Update(ctx, func(tx *store.Tx) (err error) {
			id := loopspec.NewID(random)
			if added, err = s.spawn(ctx, tx, by, r, id); err != nil || !added {
				return err
			}
			if v, err = s.viewIn(ctx, &tx.Reader, id); err != nil {
				return err
			}
			return tx.AnswerCall(ctx, r.Claim, v)
		})
		if err != nil || added {
			return v, err
		}
	}
}

func (s *Service) spawn(ctx context.Context, tx *store.Tx, by loop.Actor, r SpawnRequest, id string) (added bool, err error) {
	row, parent, err := s.lock(ctx, tx, r.Parent)
	if err != nil {
		return false, orNoSpec(err, r.Parent)
	}
	if r.Concurrency == "" {
		r.Concurrency = loopspec.Sequential
	}
	others, err := s.boardMates(ctx, tx, parent)
	if err != nil {
		return false, err
	}
	child, changed, refused := loopspec.Spawn(parent, id, r.Concurrency, others, tx.Now())
	if refused == "" {
		child.Budget, changed.Budget, refused = loopspec.Carve(parent.Budget, loopspec.Used(row.Step.Attempts, row.Step.Tokens), r.Budget)
	}
	if refused != "" {
		return false, &loop.Fault{Exit: loop.ExitRefused, What: "spawn a worker of " + r.Parent, Why: refused, Fix: "see what it has left: {1}", Actions: []loop.Command{loop.PawlCommand("spec get", r.Parent)}}
	}
	if r.Goal != "" {
		child.Goal = r.Goal
	}
	if findings := loopspec.Validate(child, s.machine(ctx)); loopspec.Refused(findings) {
		return false, loopspec.AsFault(findings)
	}
	if err := revise(ctx, tx, by, row, changed); err != nil {
		return false, err
	}
	return s.add(ctx, tx, by, child, loop.Loop{})
}

// boardMates are the specs that share the board entry of a spec.
func (s *Service) boardMates(ctx context.Context, tx *store.Tx, of loopspec.Spec) (mates []loopspec.Run, err error) {
	if of.BoardEntry == "" {
		return nil, nil
	}
	rows, err := tx.SpecsOfEntry(ctx, s.ws.ID, of.BoardEntry)
	for _, row := range rows {
		mates = append(mates, loopspec.Run{Spec: loopspec.Spec{ID: row.ID, BoardEntry: of.BoardEntry}, Status: lookup.SpecStatus(row)})
	}
	return mates, err
}

// giveBack returns to the parent of a spec that is removed what it has not used.
func (s *Service) giveBack(ctx context.Context, tx *store.Tx, by loop.Actor, row store.Spec, spec loopspec.Spec) error {
	if spec.ParentID == "" {
		return nil
	}
	parentRow, parent, err := s.lock(ctx, tx, spec.ParentID)
	if errors.Is(err, loop.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	left, _ := loopspec.Discard([]loopspec.Spec{parent, spec}, spec.ID)
	parent = left[0]
	parent.Budget = loopspec.GiveBack(parent.Budget, spec.Budget, loopspec.Used(row.Step.Attempts, row.Step.Tokens))
	return revise(ctx, tx, by, parentRow, parent)
}
