// Package runs prepares, starts, explains and stops runs of loops, concludes
// those whose process died, and keeps the work that they left on no branch.
//
// It never prints, never prompts, and knows nothing about terminals or HTTP.
// Verbs that read never write, not even to bring the store up to date.
package runs

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// Deps are what a Service needs besides its workspace.
type Deps struct {
	Engine  *engine.Engine // nil for a service that only reads
	Environ []string
	Home    string // pawl's own folder
	// EndHolder kills the process behind a holder and waits for its end; nil for a
	// service that stops nothing.
	EndHolder func(context.Context, loop.Holder) error
	// StopWait is how long Stop and WaitEnded wait for a run to end; 0: 10 s.
	StopWait time.Duration
	// KeepWait is how long WaitHalted waits for all runs of a workspace to keep their work,
	// once no program of them is left; 0: 1 s.
	KeepWait time.Duration
	// Hint tells other nodes of runs that the transaction has queued; nil: nobody.
	Hint func(ctx context.Context, tx *store.Tx, runs []loop.Run) error
	// Plain runs small trusted programs.
	Plain proc.Runner
}

// Service carries out the verbs for runs in one workspace.
type Service struct {
	Deps

	ws *lookup.Workspace
}

// New makes the service.
func New(ws *lookup.Workspace, d Deps) *Service { return &Service{Deps: d, ws: ws} }
