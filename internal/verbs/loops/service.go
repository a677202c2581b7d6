// Package loops makes, checks, lists, pauses and forgets loops.
//
// It starts no run. FindDefinitions, Check, NewDraft and Scaffold need no repository
// and no store.
package loops

import (
	"context"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// Deps are the dependencies of a Service.
type Deps struct {
	Engine  *engine.Engine // nil if the service only reads, or only sets the kill switch
	Environ []string
	// Budgets returns the budgets of a loop with what they have used.
	Budgets func(context.Context, lookup.Loop) ([]budgets.Row, error)
	// WaitHalted blocks until the holders of all runs of loops, or of the workspace if no
	// id is given, have answered a kill switch.
	WaitHalted func(ctx context.Context, loopIDs ...string) (runs.Halted, error)
}

// Service has the verbs for the loops of one workspace.
type Service struct {
	Deps

	ws *lookup.Workspace
}

// New makes the service.
func New(ws *lookup.Workspace, d Deps) *Service { return &Service{Deps: d, ws: ws} }
