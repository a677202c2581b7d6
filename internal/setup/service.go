// Package setup finds out what a machine and a repository offer, what a loop
// needs of them, and registers the repository as a workspace.
//
// The Doctor writes nothing to a store or a checkout. No agent is started here.
package setup

import (
	"context"

	"github.com/pawl-run/pawl/internal/budgets"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/lookup"
)

// Service carries out the verbs that set up one workspace.
type Service struct {
	ws     *lookup.Workspace
	engine *engine.Engine // nil for a service that only reads
	// budgets says how the budgets stand that bound a target.
	budgets func(context.Context, budgets.Target) ([]budgets.Row, error)
}

// New makes the service. The engine is nil if it only reads; then gates cannot
// be tried.
func New(ws *lookup.Workspace, e *engine.Engine, b func(context.Context, budgets.Target) ([]budgets.Row, error)) *Service {
	return &Service{ws: ws, engine: e, budgets: b}
}
