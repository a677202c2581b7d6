// Package loops makes, checks, lists, pauses and forgets loops.
//
// It starts no run. What is read from a definition alone (Definitions, Check,
// Edit, Scaffold) needs no repository and no store.
package loops

import (
	"context"

	"github.com/pawl-run/pawl/internal/budgets"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/lookup"
	"github.com/pawl-run/pawl/internal/loop"
)

// Deps are what a Service needs besides its workspace.
type Deps struct {
	Engine  *engine.Engine // nil for a service that only reads, or sets the kill switch by its file
	Environ []string
	// Budgets says how the budgets stand that bound a loop.
	Budgets func(context.Context, lookup.Loop) ([]budgets.Row, error)
	// WaitEnded returns when a live run has ended.
	WaitEnded func(context.Context, loop.Run) error
}

// Service carries out the verbs for loops in one workspace.
type Service struct {
	Deps

	ws *lookup.Workspace
}

// New makes the service.
func New(ws *lookup.Workspace, d Deps) *Service { return &Service{Deps: d, ws: ws} }
