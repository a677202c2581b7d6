//go:build unix

package proc

import (
	"context"
	"os"
	"syscall"
)

// groupChild is a program that leads a session, and so a process group.
type groupChild struct {
	*waitedProcess
}

func startPlain(_ context.Context, p program, stdio [3]*os.File) (child, error) {
	sealInherited()
	w, err := spawnProcess(p.path, p.argv, stdio[:], &syscall.ProcAttr{
		Dir: p.dir, Env: p.env, Sys: sessionLeader(),
	})
	if err != nil {
		return nil, execError(p, err)
	}
	return groupChild{w}, nil
}

// term also wakes a stopped program, which would not act on the signal. What
// cannot be signalled any more is gone, here as in kill.
func (g groupChild) term() {
	_ = syscall.Kill(-g.pid, syscall.SIGTERM)
	_ = syscall.Kill(-g.pid, syscall.SIGCONT)
}

func (g groupChild) kill() { _ = syscall.Kill(-g.pid, syscall.SIGKILL) }

func (g groupChild) reap() status {
	g.kill()
	return exitStatus(g.reapStatus())
}

// exitStatus turns the kernel's status into ours.
func exitStatus(ws syscall.WaitStatus) status {
	if ws.Signaled() {
		return status{exit: 128 + int(ws.Signal()), signaled: true}
	}
	return status{exit: ws.ExitStatus()}
}
