package heartbeat

import (
	"context"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// The optional interfaces that the format implements.
var (
	_ engine.MemoryNotes = (*session)(nil)
	_ engine.StepRemarks = (*session)(nil)
	_ engine.SharedSteps = (*session)(nil)
	_ engine.CommandLog  = (*session)(nil)
)

// Format is that of the agents of boards.
func Format() format.Format {
	return format.Format{
		Name: loop.ProtocolBoard, Protocol: Protocol{},
		HasStep: func(ctx context.Context, r *store.Reader, workspaceID, key string) error {
			_, err := r.Row(ctx, workspaceID, board.SetTasks, key)
			return err
		},
	}
}
