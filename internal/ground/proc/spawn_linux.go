package proc

import (
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/ground/proc/stage"
)

// sealInherited keeps descriptors that pawl inherited from the programs it starts.
// Exec closes pawl's own anyway.
var sealInherited = sync.OnceFunc(stage.SealDescriptors)

// sessionLeader returns the attributes of a program that leads a session and dies with
// pawl.
func sessionLeader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// waitedProcess is a process that a goroutine started and waits for.
type waitedProcess struct {
	pid  int
	dead chan struct{}
}

// spawnProcess starts a process, whose end closes done. The caller reaps it.
func spawnProcess(path string, argv []string, files []*os.File, attr *syscall.ProcAttr) (*waitedProcess, error) {
	return spawnAndAwait(awaitZombie, path, argv, files, attr)
}

// spawnAndAwait starts a process and calls wait on the thread that forked it, because
// the parent-death signal is sent when that thread ends, and not the process.
func spawnAndAwait(wait func(pid int), path string, argv []string, files []*os.File, attr *syscall.ProcAttr) (*waitedProcess, error) {
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	w := &waitedProcess{dead: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		pid, err := syscall.ForkExec(path, argv, attr)
		w.pid = pid
		started <- err
		if err == nil {
			wait(pid)
			close(w.dead)
		}
	}()
	err := <-started
	runtime.KeepAlive(files)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// startSibling starts this binary once more as a small process beside this one, which arg
// names and which serves the other end of the link, a socket of packets with deadlines.
// The caller closes the link.
func startSibling(wait func(pid int), arg string, sys *syscall.SysProcAttr) (w *waitedProcess, link *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	_ = unix.SetNonblock(fds[0], true) // The file then has deadlines.
	link, far := os.NewFile(uintptr(fds[0]), arg), os.NewFile(uintptr(fds[1]), arg)
	defer far.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err == nil {
		defer null.Close()
		// One thread does everything.
		w, err = spawnAndAwait(wait, "/proc/self/exe", []string{"pawl", arg}, []*os.File{null, null, null, far}, &syscall.ProcAttr{Env: []string{"GOMAXPROCS=1"}, Sys: sys})
	}
	if err != nil {
		link.Close()
		return nil, nil, err
	}
	return w, link, nil
}

// awaitZombie waits for the end of the process without reaping it, so that no other
// process gets its pid and process group before reapStatus is called.
func awaitZombie(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

// awaitZombieAndRevive is awaitZombie, and also continues the process whenever it was
// stopped: its own descendants may do that.
func awaitZombieAndRevive(pid int) {
	const stopped = 5 // CLD_STOPPED
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		switch {
		case err == unix.EINTR:
		case err == nil && info.Code == stopped:
			// Waiting only for this event takes it and reaps nothing.
			_ = unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOHANG, nil)
			_ = unix.Kill(pid, unix.SIGCONT)
		default:
			return
		}
	}
}

func (w *waitedProcess) done() <-chan struct{} { return w.dead }

// reapStatus reaps the process and returns its status. It is called after done.
func (w *waitedProcess) reapStatus() syscall.WaitStatus {
	var ws syscall.WaitStatus
	for {
		_, err := syscall.Wait4(w.pid, &ws, 0, nil)
		if err != syscall.EINTR {
			return ws
		}
	}
}
