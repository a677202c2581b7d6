//go:build !linux && !darwin

package sandbox

import (
	"context"

	"github.com/pawl-run/pawl/internal/proc"
)

// Run starts s without any confinement if the tier asks for none. Any other is
// a *SetupError beside a result that is proc.NotStarted: the program did not
// run.
func (b Box) Run(ctx context.Context, s proc.Spec) (proc.Result, error) {
	switch b.Tier {
	case "", None, External:
		return proc.Tree{}.Run(ctx, s)
	case Full, Landlock, Seatbelt:
	}
	return notStarted(s, b.unsupportedTierError())
}
