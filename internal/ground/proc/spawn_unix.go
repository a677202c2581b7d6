//go:build unix && !linux

package proc

import (
	"os"
	"runtime"
	"syscall"
)

// sealInherited does nothing: only Linux can mark all inherited descriptors at once.
func sealInherited() {}

// sessionLeader returns the attributes of a program that leads a session. It does not
// die with pawl.
func sessionLeader() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// waitedProcess is a process that a goroutine waits for. It is reaped before done is
// closed, so in theory a signal can reach another group with the same number, if the
// system reuses the pid within that moment.
type waitedProcess struct {
	pid    int
	dead   chan struct{}
	status syscall.WaitStatus
}

func spawnProcess(path string, argv []string, files []*os.File, attr *syscall.ProcAttr) (*waitedProcess, error) {
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	pid, err := syscall.ForkExec(path, argv, attr)
	runtime.KeepAlive(files)
	if err != nil {
		return nil, err
	}
	w := &waitedProcess{pid: pid, dead: make(chan struct{})}
	go func() {
		defer close(w.dead)
		for {
			if _, err := syscall.Wait4(pid, &w.status, 0, nil); err != syscall.EINTR {
				return
			}
		}
	}()
	return w, nil
}

func (w *waitedProcess) done() <-chan struct{} { return w.dead }

func (w *waitedProcess) reapStatus() syscall.WaitStatus { return w.status }
