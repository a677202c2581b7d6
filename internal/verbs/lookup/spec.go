package lookup

import (
	"context"
	"time"

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

// SpecStatuses says where the specs among loops of a workspace are in their lives, by the
// ids of their loops.
func SpecStatuses(ctx context.Context, r *store.Reader, workspaceID string, list []Loop) (map[string]loop.SpecStatus, error) {
	of := map[string]loop.SpecStatus{}
	for _, l := range list {
		if l.Protocol == loop.ProtocolSpec {
			of[l.LoopID()] = ""
		}
	}
	if len(of) == 0 {
		return of, nil
	}
	all, err := r.Specs(ctx, workspaceID, time.Time{}, "", 1<<30)
	for _, row := range all {
		if _, asked := of[row.LoopID]; asked {
			of[row.LoopID] = SpecStatus(row)
		}
	}
	return of, err
}
