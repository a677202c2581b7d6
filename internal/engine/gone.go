package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/loop"
)

// leaveGone is how a run ends whose store is gone: nobody can conclude it any more,
// so its work is kept where no row is needed, and the error says where. Any other
// error stays as it is.
func (c *cycle) leaveGone(ctx context.Context, err error) error {
	if !errors.Is(err, loop.ErrStoreGone) {
		return err
	}
	gone := &loop.Fault{Exit: loop.ExitError, What: fmt.Sprintf("run %s#%d", c.t.Loop.Name, c.run.N), Why: err.Error(), Err: err}
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		gone.Advised(f.Advice())
	}
	if c.run.Commit == "" && c.run.Snapshot == "" && c.tree != nil {
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), keepTime, errKeepTime)
		defer cancel()
		if kept := c.keep(ctx); kept != nil {
			gone.Why += fmt.Sprintf("; its work stays in %s (it cannot be kept as a snapshot: %s)", c.tree.Where(), kept)
			return gone
		}
	}
	if c.run.Snapshot != "" {
		gone.Why += "; its work is kept in " + c.run.Snapshot
	}
	return gone
}
