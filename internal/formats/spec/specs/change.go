package specs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// EditRequest is a new revision of a spec.
type EditRequest struct {
	Spec     string `json:"spec"`
	Document string `json:"document"`
	File     string `json:"file"`               // how messages call the document
	Revision int64  `json:"revision,omitempty"` // that the document was made from; 0: the newest
}

// Edit replaces the document of a spec. Its id, its relatives and its trace stay. A spec
// that gave up or was handed over goes on, within the budget that it has now.
func (s *Service) Edit(ctx context.Context, by loop.Actor, r EditRequest) (View, error) {
	row, before, err := s.find(ctx, r.Spec)
	if err != nil {
		return View{}, err
	}
	made := CreateRequest{Document: r.Document, File: r.File}
	spec, doc, _, err := s.draft(ctx, made)
	if err != nil {
		return View{}, err
	}
	spec.ID, spec.ParentID, spec.ChildIDs, spec.CreatedAt, spec.UpdatedAt = before.ID, before.ParentID, before.ChildIDs, before.CreatedAt, before.UpdatedAt
	findings, err := s.validate(ctx, spec)
	if err != nil {
		return View{}, err
	}
	if err := refusal(made, doc, findings); err != nil {
		return View{}, err
	}
	if r.Revision != 0 {
		row.Revision = r.Revision
	}
	err = s.ws.Store.Update(ctx, func(tx *store.Tx) error {
		if err := revise(ctx, tx, by, row, spec); err != nil {
			return err
		}
		if err := voidApprovals(ctx, tx, row, fmt.Sprintf("the spec has revision %d", row.Revision+1)); err != nil {
			return err
		}
		if row.Step.State != loop.StepEscalated {
			return nil
		}
		row.Step.Tried = loop.Tried{}
		_, err := tx.ReopenStep(ctx, row.Step)
		return err
	})
	if errors.Is(err, loop.ErrAnswered) {
		return View{}, &loop.Fault{
			Exit: loop.ExitHeld, What: "change " + r.Spec, Why: fmt.Sprintf("its revision %d is not the newest any more: somebody else was first", row.Revision), Err: err,
			Fix: "look at the newest and change that: {1}", Actions: []loop.Command{loop.PawlCommand("spec get", r.Spec)},
		}
	}
	if err != nil {
		return View{}, err
	}
	v, err := s.Get(ctx, r.Spec)
	v.Notes = onlyNotes(findings)
	return v, err
}

// revise stores a new revision of a spec and makes its loop run and fire by it.
func revise(ctx context.Context, tx *store.Tx, by loop.Actor, row store.Spec, spec loopspec.Spec) error {
	spec.UpdatedAt = tx.Now().UnixMilli()
	row.Goal, row.Agent, row.Entry, row.Body = spec.Goal, spec.AgentID, spec.BoardEntry, string(loopspec.Encode(spec))
	if err := tx.ReviseSpec(ctx, row, by.Who); err != nil {
		return err
	}
	var flagged *judged
	if row.Rubric != "" {
		var err error
		if flagged, err = rubricOf(row, spec); err != nil {
			return err
		}
	}
	row.Revision++
	return register(ctx, tx, by, row, definitionOf(spec, flagged), verbEdit)
}

// Flag adds what a human says was missed to what reviewers judge by. What an agent says is
// told to them as such. A spec that is done is opened again, and told so.
func (s *Service) Flag(ctx context.Context, by loop.Actor, id, text string) (View, error) {
	if strings.TrimSpace(text) == "" {
		return View{}, &loop.Fault{Exit: loop.ExitUsage, What: "flag " + id, Why: "the text says what was missed, and it is empty", Fix: "say what was missed"}
	}
	row, spec, err := s.find(ctx, id)
	if err != nil {
		return View{}, err
	}
	err = s.ws.Store.Update(ctx, func(tx *store.Tx) error {
		if row, spec, err = s.lock(ctx, tx, id); err != nil {
			return err
		}
		rubric := judged{Rubric: seedRubric(row, spec)}
		if row.Rubric != "" {
			if err := json.Unmarshal([]byte(row.Rubric), &rubric); err != nil {
				return err
			}
		}
		rubric = rubric.flag(text, by.Role, tx.Now())
		body, err := json.Marshal(rubric)
		if err != nil {
			return err
		}
		if err := tx.SaveRubric(ctx, id, string(body)); err != nil {
			return err
		}
		if err := register(ctx, tx, by, row, definitionOf(spec, &rubric), verbFlag); err != nil {
			return err
		}
		if row.Step.State != loop.StepDone {
			return nil
		}
		again := row.Step.AsNew()
		again.Feedback = "a person says that this was missed: " + text
		if by.Role != loop.RoleHuman {
			again.Feedback = "an agent says that this was missed: " + text
		}
		_, err = tx.ReopenStep(ctx, again)
		return err
	})
	if err != nil {
		return View{}, err
	}
	return s.Get(ctx, id)
}

// Deleted is what Delete removed, schema pawl.spec_deleted/v1.
type Deleted struct {
	Schema string   `json:"schema"`
	IDs    []string `json:"ids"` // the spec and its children
}

// Delete removes a spec and its children. Their runs and their audit chains stay, and what
// they have not used of their budget goes back to the parent. A spec that runs is not
// removed: the error is a *loop.HeldError.
func (s *Service) Delete(ctx context.Context, by loop.Actor, id string) (Deleted, error) {
	gone := Deleted{Schema: "pawl.spec_deleted/v1"}
	if _, _, err := s.find(ctx, id); err != nil {
		return gone, err
	}
	err := s.ws.Store.Update(ctx, func(tx *store.Tx) error {
		gone.IDs = nil
		row, spec, err := s.read(ctx, &tx.Reader, id)
		if err != nil {
			return err
		}
		if err := s.giveBack(ctx, tx, by, row, spec); err != nil {
			return err
		}
		for left := []string{id}; len(left) > 0; left = left[1:] {
			row, spec, err := s.read(ctx, &tx.Reader, left[0])
			if errors.Is(err, loop.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			left = append(left, spec.ChildIDs...)
			if err := s.remove(ctx, tx, by, row); err != nil {
				return err
			}
			gone.IDs = append(gone.IDs, row.ID)
		}
		return nil
	})
	return gone, err
}

// remove removes one spec and forgets its loop.
func (s *Service) remove(ctx context.Context, tx *store.Tx, by loop.Actor, row store.Spec) error {
	l, err := tx.LockLoop(ctx, row.LoopID)
	if err != nil {
		return err
	}
	if err := returnLife(ctx, tx, l, row); err != nil {
		return err
	}
	live, err := tx.Live(ctx, row.LoopID)
	switch {
	case err == nil:
		return &loop.HeldError{Run: fmt.Sprintf("%s#%d", row.ID, live.N), Holder: live.Holder}
	case !errors.Is(err, loop.ErrNotFound):
		return err
	}
	if err := tx.Forget(ctx, by, row.LoopID); err != nil {
		return err
	}
	if err := voidApprovals(ctx, tx, row, "the spec was deleted"); err != nil {
		return err
	}
	return tx.DeleteSpec(ctx, row.ID)
}

// voidApprovals makes what is asked about a spec void: it was asked for what the spec was
// before. The goal is open again, from the work that was proposed.
func voidApprovals(ctx context.Context, tx *store.Tx, row store.Spec, why string) error {
	open, err := tx.Approvals(ctx, row.LoopID, loop.PendingStates()...)
	if err != nil {
		return err
	}
	for _, a := range open {
		if _, err := tx.VoidApproval(ctx, a.ID, why); err != nil {
			return err
		}
	}
	return nil
}

// Export returns the document of a spec.
func (s *Service) Export(ctx context.Context, id string) (string, error) {
	row, _, err := s.find(ctx, id)
	return row.Body, err
}

// CheckStep refuses to step a spec that waits for a human, is done or gave up.
func (s *Service) CheckStep(ctx context.Context, id string) (loopspec.Status, error) {
	row, _, err := s.find(ctx, id)
	if err != nil {
		return "", err
	}
	status := lookup.SpecStatus(row)
	if _, refused := loopspec.After(status, loopspec.EventStep); refused != "" {
		f := &loop.Fault{Exit: loop.ExitRefused, What: "step " + id, Why: refused, Fix: "{1} shows it", Actions: []loop.Command{loop.PawlCommand("spec get", id)}}
		if status == loopspec.StatusWaitingHuman {
			f.Exit = loop.ExitWaiting
		}
		if ap := approvalOf(row); ap != "" {
			f.Fix, f.Actions = "{1}; or {2}", []loop.Command{loop.PawlCommand("approve", ap), loop.PawlCommand("reject", ap).WithFlag("note", "TEXT").WithBlanks("TEXT")}
		}
		return status, f
	}
	return status, nil
}
