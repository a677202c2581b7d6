package lookup

import (
	"context"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// SpecStatus says where a spec is in its life. It follows from the rows of its loop and of
// its goal, so that no second record of it can differ.
func SpecStatus(row store.Spec) loop.SpecStatus {
	switch {
	case row.Step.State == loop.StepDone && row.Due.IsZero() && row.Listens == "":
		return loop.SpecDone
	case row.Step.State == loop.StepEscalated && (row.Step.Tried.GaveUp != "" || row.Outcome == loop.OutcomeGaveUp || row.Step.WaitsFor == ""):
		return loop.SpecGaveUp
	case row.Paused:
		return loop.SpecPaused
	case row.Step.State == loop.StepWaiting, row.Step.State == loop.StepEscalated:
		return loop.SpecWaitingHuman
	case row.Runs == 0:
		return loop.SpecDraft
	}
	return loop.SpecRunning
}

// SpecStatuses says where the specs among loops are in their lives, by the ids of their
// loops.
func SpecStatuses(ctx context.Context, r *store.Reader, list []Loop) (map[string]loop.SpecStatus, error) {
	var ids []string
	for _, l := range list {
		if l.Protocol == loop.ProtocolSpec {
			ids = append(ids, l.LoopID())
		}
	}
	rows, err := r.SpecsOfLoops(ctx, ids)
	of := make(map[string]loop.SpecStatus, len(rows))
	for _, row := range rows {
		of[row.LoopID] = SpecStatus(row)
	}
	return of, err
}
