// Package setup finds out what a machine and a repository offer, what a loop
// needs of them, and registers the repository as a workspace.
//
// The Doctor writes nothing to a store or a checkout. No agent is started here.
package setup

import (
	"context"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// Service has the verbs that set up one workspace.
type Service struct {
	ws     *lookup.Workspace
	engine *engine.Engine // nil if the service only reads
	// budgets returns the budgets of a target with what they have used.
	budgets func(context.Context, budgets.Target) ([]budgets.Row, error)
}

// New returns a service. The engine is nil if it only reads; then it cannot try gates.
func New(ws *lookup.Workspace, e *engine.Engine, b func(context.Context, budgets.Target) ([]budgets.Row, error)) *Service {
	return &Service{ws: ws, engine: e, budgets: b}
}
