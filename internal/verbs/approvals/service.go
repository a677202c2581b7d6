// Package approvals lists what waits for a person, and carries out the answers:
// approve, reject, and land without having been asked.
//
// An answer counts once. What would not do exactly what was shown is refused.
package approvals

import (
	"context"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// runner carries out the run that an answer fires, and describes runs.
type runner interface {
	Start(context.Context, runs.Prepared) (runs.View, error)
	ViewOf(context.Context, loop.Run) (runs.View, error)
}

// Service carries out the verbs for approvals in one workspace.
type Service struct {
	ws     *lookup.Workspace
	engine *engine.Engine // nil for a service that only reads
	runs   runner
	newID  func(prefix string) string
}

// New makes the service. The engine is nil if it only reads.
func New(ws *lookup.Workspace, e *engine.Engine, r runner, newID func(prefix string) string) *Service {
	return &Service{ws: ws, engine: e, runs: r, newID: newID}
}
