// Package audit proves what runs did: it verifies the audit chains of a
// workspace, copies them, and makes run logs from them.
//
// Only RewriteLog writes. Nothing here starts a program.
package audit

import (
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// All names every chain of the workspace.
const All = ""

// Service carries out the verbs of the audit in one workspace.
type Service struct {
	ws   *lookup.Workspace
	held func(loopName string, run loop.Run) error
}

// New makes the service. Held makes the error for a loop that has a live run.
func New(ws *lookup.Workspace, held func(loopName string, run loop.Run) error) *Service {
	return &Service{ws: ws, held: held}
}
