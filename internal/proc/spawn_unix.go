//go:build unix && !linux

package proc

import (
	"os"
	"runtime"
	"syscall"
)

// seal does nothing: only Linux can mark all inherited descriptors at once.
func seal() {}

// leader makes a program the leader of a session. It does not die with pawl.
func leader() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// waited is a process that a goroutine waits for. It is reaped before done is
// closed, so in theory a signal to its group can meet a stranger when the
// system hands out every pid within that moment.
type waited struct {
	pid    int
	dead   chan struct{}
	status syscall.WaitStatus
}

func spawn(path string, argv []string, files []*os.File, attr *syscall.ProcAttr) (*waited, error) {
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	pid, err := syscall.ForkExec(path, argv, attr)
	runtime.KeepAlive(files)
	if err != nil {
		return nil, err
	}
	w := &waited{pid: pid, dead: make(chan struct{})}
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

func (w *waited) done() <-chan struct{} { return w.dead }

func (w *waited) collect() syscall.WaitStatus { return w.status }
