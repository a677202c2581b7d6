// Package budgets shows and sets what may be spent, and keeps the prices that
// money is counted with.
//
// It reserves and settles nothing: a run does that.
package budgets

import "github.com/pawl-run/pawl/internal/verbs/lookup"

// Service shows and sets the budgets of one workspace.
type Service struct{ ws *lookup.Workspace }

// New makes the service.
func New(ws *lookup.Workspace) *Service { return &Service{ws: ws} }
