package tasks_test

import (
	"testing"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/protocol/tasks"
)

func openSession(t *testing.T, w *world, name string) (engine.Session, error) {
	t.Helper()
	return tasks.Protocol{}.Open(t.Context(), w.view(name))
}
