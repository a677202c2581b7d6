//go:build !linux && !darwin

package sandbox

import (
	"context"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

// Run starts s without confinement if the tier asks for none. For any other tier the
// error is a *SetupError and the result proc.NotStarted: the program did not run.
func (b Box) Run(ctx context.Context, s proc.Spec) (proc.Result, error) {
	switch b.Tier {
	case "", None, External:
		return proc.Tree{}.Run(ctx, s)
	case Full, Landlock, Seatbelt:
	}
	return notStarted(s, b.unsupportedTierError())
}
