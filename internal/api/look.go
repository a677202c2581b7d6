package api

import (
	"context"

	"github.com/pawl-run/pawl/internal/budgets"
	"github.com/pawl-run/pawl/internal/loops"
	"github.com/pawl-run/pawl/internal/setup"
)

// LoopChoice selects loops that files define.
type LoopChoice struct {
	Loop string `json:"loop,omitempty" jsonschema:"name of a loop of a file; left out: all"`
}

// The verbs that say of loops whether they are good before they run.
var (
	CheckLoops = read("loops.check", "score the definition of a loop, or of all", func(ctx context.Context, ws *Workspace, _ Call, r LoopChoice) (loops.Report, error) {
		checked, unread, err := ws.checkDefinitions(ctx, r.Loop)
		return loops.NewReport(checked, unread, loops.LeastScore, false), err
	})
	DiagnoseLoops = read("loops.doctor", "say whether a loop, or all, will run, as far as the definition tells", func(ctx context.Context, ws *Workspace, _ Call, r LoopChoice) (setup.Diagnosis, error) {
		checked, unread, err := ws.checkDefinitions(ctx, r.Loop)
		var rows []setup.DoctorRow
		for _, c := range checked {
			rows = append(rows, setup.OfflineRows(c)...)
		}
		return setup.Diagnose(rows, checked, unread, false), err
	})
	EstimateLoop = read("loops.estimate", "say what a loop will cost, and what its runs used", func(ctx context.Context, ws *Workspace, _ Call, r LoopRef) (e budgets.Estimate, err error) {
		checked, _, err := ws.checkDefinitions(ctx, r.Loop)
		if err != nil {
			return e, err
		}
		table, err := budgets.Prices(ws.Doctor.Home, "")
		if err != nil {
			return e, err
		}
		ask := budgets.NewEstimateRequest()
		ask.Loop = ws.Doctor.EstimatedLoop(ctx, checked[0])
		if ask.Loop.Past, err = ws.Runs.TokensUsed(ctx, checked[0].Name); err != nil {
			return e, err
		}
		return budgets.NewEstimate(table, ask)
	})
)

// checkDefinitions reads the definition of a loop, or those of all. If the only one cannot be
// read, that is the error; among several it is counted.
func (w *Workspace) checkDefinitions(ctx context.Context, name string) (checked []loops.Checked, unread int, err error) {
	found, err := loops.FindDefinitions(w.Root, name)
	if err != nil {
		return nil, 0, err
	}
	for _, f := range found {
		c, err := loops.Check(f)
		switch {
		case err != nil && len(found) == 1:
			return nil, 0, err
		case err != nil:
			unread++
			continue
		}
		c.CheckSwitches(ctx)
		if len(c.Definition.NodeLabels) > 0 {
			if err := c.CheckLabels(ctx, w.Loops); err != nil {
				return nil, 0, err
			}
		}
		checked = append(checked, c)
	}
	return checked, unread, nil
}
