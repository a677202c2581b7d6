package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// leaveGone is how a run ends whose store is gone: nobody can conclude it any more,
// so its work is kept where no row is needed, and the error says where. Any other
// error stays as it is.
func (wt *workTree) leaveGone(ctx context.Context, err error) error {
	if !errors.Is(err, loop.ErrStoreGone) {
		return err
	}
	gone := &loop.Fault{Exit: loop.ExitError, What: fmt.Sprintf("run %s#%d", wt.target.Loop.Name, wt.run.N), Why: err.Error(), Err: err}
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		gone = gone.WithAdvice(f.Advice())
	}
	if wt.run.Commit == "" && wt.run.Snapshot == "" && wt.copy != nil {
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), keepTime, errKeepTime)
		defer cancel()
		if kept := wt.keepSnapshot(ctx); kept != nil {
			gone.Why += fmt.Sprintf("; its work stays in %s (it cannot be kept as a snapshot: %s)", wt.copy.Where(), kept)
			return gone
		}
	}
	if wt.run.Snapshot != "" {
		gone.Why += "; its work is kept in " + wt.run.Snapshot
	}
	return gone
}
