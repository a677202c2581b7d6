//go:build unix

package proc

import (
	"context"
	"os"
	"syscall"
)

// foregroundChild is a program in pawl's own process group.
type foregroundChild struct {
	*waitedProcess
}

func startForeground(_ context.Context, p program, stdio [3]*os.File) (child, error) {
	sealInherited()
	w, err := spawnProcess(p.path, p.argv, stdio[:], &syscall.ProcAttr{Dir: p.dir, Env: p.env})
	if err != nil {
		return nil, execError(p, err)
	}
	return foregroundChild{w}, nil
}

func (a foregroundChild) term() { _ = syscall.Kill(a.pid, syscall.SIGTERM) }

func (a foregroundChild) kill() { _ = syscall.Kill(a.pid, syscall.SIGKILL) }

func (a foregroundChild) reap() status { return exitStatus(a.reapStatus()) }
