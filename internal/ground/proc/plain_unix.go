//go:build unix

package proc

import (
	"context"
	"os"
	"syscall"
)

// groupChild is a program that leads a session and a process group.
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

// term also continues a stopped program, which would not act on the signal
// otherwise. Errors are ignored, here and in kill: the group is gone then.
func (g groupChild) term() {
	_ = syscall.Kill(-g.pid, syscall.SIGTERM)
	_ = syscall.Kill(-g.pid, syscall.SIGCONT)
}

func (g groupChild) kill() { _ = syscall.Kill(-g.pid, syscall.SIGKILL) }

func (g groupChild) reap() status {
	g.kill()
	return exitStatus(g.reapStatus())
}

// exitStatus converts the kernel's status.
func exitStatus(ws syscall.WaitStatus) status {
	if ws.Signaled() {
		return status{exit: 128 + int(ws.Signal()), signaled: true}
	}
	return status{exit: ws.ExitStatus()}
}
