package setup_test

import (
	"testing"

	"github.com/pawl-run/pawl/internal/test/verbtest"
)

// rig is the verbs in one workspace.
type rig struct{ *verbtest.Rig }

func newRig(t *testing.T) *rig {
	t.Helper()
	return &rig{verbtest.New(t)}
}
