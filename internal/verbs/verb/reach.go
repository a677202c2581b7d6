package verb

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// reachable opens the workspace of a call for its caller. A person's verb that changes
// something registers the workspace on the way; nobody else registers one, and reaches only
// one that is registered.
func (i Info) reachable(c Call) func(context.Context) (Workspace, error) {
	return func(ctx context.Context) (Workspace, error) {
		if c.By.IsPerson() {
			return c.Open(ctx, i.Writes)
		}
		w, err := c.Open(ctx, false)
		if err != nil {
			return nil, err
		}
		if p := w.place(); !p.Lookup.Placed {
			return nil, unregisteredFault(c.By, p.Root)
		}
		if i.Writes { // The store learns only what this machine is like now.
			return c.Open(ctx, true)
		}
		return w, nil
	}
}

func unregisteredFault(by loop.Actor, root string) error {
	f := &loop.Fault{
		Exit: loop.ExitRefused, What: fmt.Sprintf("%s does not reach %s", by.Who, root), Why: "no person has registered this workspace here", Err: loop.ErrUnregistered,
	}
	return f.WithAdvice(loop.Advise("let a person register it: {1} there", loop.PawlCommand("init")))
}
