package node

import (
	"context"

	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Self is this process as a holder of runs on the node with that id.
func Self(id string) loop.Holder {
	p := proc.Self()
	return loop.Holder{PID: p.PID, Start: p.Start, Boot: p.Boot, Host: p.Host, Node: id}
}

func processOf(h loop.Holder) proc.Identity {
	return proc.Identity{PID: h.PID, Start: h.Start, Boot: h.Boot, Host: h.Host}
}

// HolderState looks at the process behind a holder. Of another host nothing is
// known here: its lease decides.
func HolderState(h loop.Holder) loop.HolderState {
	id := processOf(h)
	switch {
	case !proc.SameHost(id):
		return loop.HolderElsewhere
	case !proc.Alive(id):
		return loop.HolderDead
	case proc.Stopped(id):
		return loop.HolderStopped
	}
	return loop.HolderRunning
}

// EndHolder kills the process behind a holder and waits for its end.
func EndHolder(ctx context.Context, h loop.Holder) error { return proc.Kill(ctx, processOf(h)) }
