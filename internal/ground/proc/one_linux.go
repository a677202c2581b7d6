package proc

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc/stage"
)

// IdentityOf returns the identity of a process of this host, or the zero
// Identity if there is none with the pid.
func IdentityOf(pid int) Identity {
	p, ok := stage.ReadProcess(pid)
	if !ok || p.Dead {
		return Identity{}
	}
	id := Self()
	id.PID, id.Start = pid, p.Start
	return id
}

// Stopped reports whether exactly this process lives on this host and was stopped by
// a signal or a debugger, so that it does nothing until it is continued.
func Stopped(id Identity) bool {
	p, ok := readLiving(id)
	return ok && p.Stopped
}

// Kill kills exactly this process, stopped or not, and returns when it is dead. It
// does nothing if the process is on another host or already dead.
func Kill(ctx context.Context, id Identity) error {
	find := func() []stage.Process {
		if p, ok := readLiving(id); ok {
			return []stage.Process{p}
		}
		return nil
	}
	if _, clean := stage.KillAll(find, func() bool { return ctx.Err() != nil }); !clean {
		return fmt.Errorf("kill process %d: %w", id.PID, context.Cause(ctx))
	}
	if Alive(id) {
		return fmt.Errorf("kill process %d: it belongs to another user", id.PID)
	}
	// Its first thread may end before the others have closed its files, and with
	// them its locks.
	for {
		p, ok := stage.ReadProcess(id.PID)
		if !ok || p.Start != id.Start || p.Threads <= 1 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kill process %d: %w", id.PID, context.Cause(ctx))
		case <-time.After(time.Millisecond):
		}
	}
}

// readLiving reads the state of exactly this process, if it lives on this host.
func readLiving(id Identity) (stage.Process, bool) {
	p, ok := stage.ReadProcess(id.PID)
	return p, ok && !p.Dead && p.Start == id.Start && SameHost(id)
}
