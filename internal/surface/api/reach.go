package api

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// reachable opens the workspace of a call for its caller. A person's verb that changes
// something registers the workspace on the way; nobody else registers one, and reaches only
// one that is registered.
func (i Info) reachable(c Call) func(context.Context) (Opened, error) {
	return func(ctx context.Context) (Opened, error) {
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

// checkFolder refuses a request over HTTP that does not say which folder it is about: that in
// which the daemon was started has nothing to do with it.
func checkFolder(dir string) error {
	if filepath.IsAbs(dir) {
		return nil
	}
	f := &loop.Fault{Exit: loop.ExitUsage, What: "which workspace?", Fix: "pass workspace=DIR, the absolute path of a folder in its repository on the host of the daemon"}
	if dir != "" {
		f.Why = fmt.Sprintf("%q is not an absolute path", dir)
	}
	return f
}
