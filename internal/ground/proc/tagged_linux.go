package proc

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/ground/proc/stage"
)

// KillTagged kills every process whose environment has exactly the entry tag,
// NAME=VALUE, and all their descendants, and returns how many it killed. It repeats
// that until it has found nothing twice. It never kills this process and its
// ancestors.
//
// It finds only processes whose environment this user may read: for root all, and
// otherwise the user's own. A process that overwrote its environment is found only
// as a descendant of one that did not. The error is that of a malformed tag or the
// cause of ctx.
func KillTagged(ctx context.Context, tag string) (killed int, err error) {
	if !isTag(tag) {
		return 0, fmt.Errorf("kill tagged processes: tag %q is not NAME=VALUE", tag)
	}
	killed, clean := stage.KillAll(
		func() []stage.Process { return stage.FindTagged(tag) },
		func() bool { return ctx.Err() != nil },
	)
	if !clean {
		return killed, fmt.Errorf("kill processes tagged %s: %w", tag, context.Cause(ctx))
	}
	return killed, nil
}
