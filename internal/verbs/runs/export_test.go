package runs

import (
	"context"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// UntilName is for tests.
var UntilName = untilName

// Runnable is for tests: it refuses a definition that cannot be run here.
func (s *Service) Runnable(ctx context.Context, d loop.Definition) error {
	return s.checkRunnable(ctx, d)
}
