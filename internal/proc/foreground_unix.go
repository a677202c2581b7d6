//go:build unix

package proc

import (
	"context"
	"os"
	"syscall"
)

// alone is a program in pawl's own group.
type alone struct {
	*waited
}

func startForeground(_ context.Context, p program, stdio [3]*os.File) (child, error) {
	seal()
	w, err := spawn(p.path, p.argv, stdio[:], &syscall.ProcAttr{Dir: p.dir, Env: p.env})
	if err != nil {
		return nil, explain(p, err)
	}
	return alone{w}, nil
}

func (a alone) term() { _ = syscall.Kill(a.pid, syscall.SIGTERM) }

func (a alone) kill() { _ = syscall.Kill(a.pid, syscall.SIGKILL) }

func (a alone) reap() status { return decode(a.collect()) }
