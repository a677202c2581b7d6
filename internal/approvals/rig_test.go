package approvals_test

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

// onBoth runs a test on both databases.
func onBoth(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	verbtest.OnBoth(t, func(t *testing.T, r *verbtest.Rig) {
		t.Helper()
		test(t, &rig{r})
	})
}
