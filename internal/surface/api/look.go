package api

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/setup"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// LoopChoice selects loops that files define.
type LoopChoice struct {
	Loop string `json:"loop,omitempty" jsonschema:"name of a loop of a file; left out: all"`
}

func (c LoopChoice) subject() verb.Subject { return verb.Subject{Loop: c.Loop} }

// The verbs that say of loops whether they are good before they run.
var (
	CheckLoops = verb.Read("loops.check", "score the definition of a loop, or of all", func(ctx context.Context, ws *Workspace, c verb.Call, r LoopChoice) (loops.Report, error) {
		checked, unread, err := ws.checkDefinitions(ctx, c.By, r.Loop)
		return loops.NewReport(checked, unread, loops.LeastScore, false), err
	}).About(LoopChoice.subject).Seen().Tool(verb.Tool{Name: "loop_check", Group: verb.ToolsCore, Command: "check", Does: "Score the definition of a loop, or of all: 16 checks, each finding with its place."})
	DiagnoseLoops = verb.Read("loops.doctor", "say whether a loop, or all, will run, as far as the definition tells", func(ctx context.Context, ws *Workspace, c verb.Call, r LoopChoice) (setup.Diagnosis, error) {
		checked, unread, err := ws.checkDefinitions(ctx, c.By, r.Loop)
		var rows []setup.DoctorRow
		for _, one := range checked {
			rows = append(rows, setup.OfflineRows(one)...)
		}
		return setup.Diagnose(rows, checked, unread, false), err
	}).About(LoopChoice.subject).Tool(verb.Tool{Name: "loop_doctor", Group: verb.ToolsAll, Command: "doctor", Does: "Say whether a loop will run, as far as its definition tells, each row with its fix. It starts nothing."})
	EstimateLoop = verb.Read("loops.estimate", "say what a loop will cost, and what its runs used", func(ctx context.Context, ws *Workspace, c verb.Call, r LoopRef) (e budgets.Estimate, err error) {
		checked, _, err := ws.checkDefinitions(ctx, c.By, r.Loop)
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
	}).About(LoopRef.subject).Seen().Tool(verb.Tool{Name: "loop_estimate", Group: verb.ToolsAll, Command: "estimate", Does: "Say what a loop of a file will cost, and what its runs have used."})
)

// checkDefinitions reads the definition of a loop, or those of all. If the only one cannot be
// read, that is the error; among several it is counted. A person may name a file; messages about
// it hold parts of it, so that for others it has to be a loop.
func (w *Workspace) checkDefinitions(ctx context.Context, by loop.Actor, name string) (checked []loops.Checked, unread int, err error) {
	if (by.Role == loop.RoleAgent || by.Role == loop.RoleViewer) && (strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".")) {
		return nil, 0, &loop.Fault{Exit: loop.ExitRefused, What: fmt.Sprintf("%s may not read the file %q", by.Who, name), Why: "only a person names files", Err: loop.ErrRole, Fix: "name a loop"}
	}
	found, err := loops.FindDefinitions(w.Lookup.Formats, w.Root, name)
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
