//go:build unix

package proc

import (
	"context"
	"os"
	"syscall"
)

// group is a program that leads a session, and so a process group.
type group struct {
	*waited
}

func startPlain(_ context.Context, p program, stdio [3]*os.File) (child, error) {
	seal()
	w, err := spawn(p.path, p.argv, stdio[:], &syscall.ProcAttr{
		Dir: p.dir, Env: p.env, Sys: leader(),
	})
	if err != nil {
		return nil, explain(p, err)
	}
	return group{w}, nil
}

// term also wakes a stopped program, which would not act on the signal. What
// cannot be signalled any more is gone, here as in kill.
func (g group) term() {
	_ = syscall.Kill(-g.pid, syscall.SIGTERM)
	_ = syscall.Kill(-g.pid, syscall.SIGCONT)
}

func (g group) kill() { _ = syscall.Kill(-g.pid, syscall.SIGKILL) }

func (g group) reap() status {
	g.kill()
	return decode(g.collect())
}

// decode turns the kernel's status into ours.
func decode(ws syscall.WaitStatus) status {
	if ws.Signaled() {
		return status{exit: 128 + int(ws.Signal()), signaled: true}
	}
	return status{exit: ws.ExitStatus()}
}
