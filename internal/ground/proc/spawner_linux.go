package proc

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/ground/proc/spawner"
)

const (
	// fewStarts is how many processes this process forks by itself before it starts a
	// spawner: one that starts a few does not earn what that costs.
	fewStarts = 4
	// spawnPatience is how long a spawner may take to answer. It may have been stopped.
	spawnPatience = 2 * time.Second
)

// stageSpawner is the spawner of this process, which lives until this process ends.
var stageSpawner struct {
	mu      sync.Mutex
	starts  int
	process *spawnerProcess // nil: there is none
}

// errNoSpawner means that the caller has to fork by itself.
var errNoSpawner = errors.New("no spawner")

// spawnInUserNamespace starts this binary once more, in namespaces that sys asks for, a
// user namespace among them. The process is a child of this one, whoever forked it.
func spawnInUserNamespace(argv []string, files []*os.File, attr *syscall.ProcAttr) (*waitedProcess, error) {
	pid, err := askSpawner(spawner.Request{Argv: argv, Env: attr.Env, Sys: attr.Sys}, files)
	if err != nil { // If the host refuses it, it refuses it once more, and says so.
		return spawnProcess("/proc/self/exe", argv, files, attr)
	}
	w := &waitedProcess{pid: pid, dead: make(chan struct{})}
	go func() {
		defer close(w.dead)
		awaitZombie(pid)
	}()
	return w, nil
}

// PrepareSpawner starts the spawner in the background, for a caller that is about to start
// several programs in user namespaces: it starts them from the first on.
func PrepareSpawner() {
	s := &stageSpawner
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.starts >= fewStarts {
		return
	}
	s.starts = fewStarts
	go func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.process == nil {
			s.process, _ = startSpawner() // The next request tries it again, and says what is wrong.
		}
	}()
}

// askSpawner has the spawner start a process. The first requests, and those that a
// spawner does not answer, are errNoSpawner.
func askSpawner(r spawner.Request, files []*os.File) (pid int, err error) {
	s := &stageSpawner
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.starts++; s.starts <= fewStarts || len(files) > spawner.MaxFiles {
		return 0, errNoSpawner
	}
	if s.process == nil {
		if s.process, err = startSpawner(); err != nil {
			return 0, err
		}
	}
	reply, err := s.process.request(r, files)
	if err != nil {
		// A spawner that was stopped cannot see the end of its link. What it may have
		// started hears nothing over its own link, and ends.
		s.process.end()
		s.process = nil
		return 0, err
	}
	if reply.Errno != 0 {
		return 0, reply.Errno
	}
	return reply.PID, nil
}

// spawnerProcess is a spawner that runs, or has died since.
type spawnerProcess struct {
	pid   int
	link  *os.File
	ended chan struct{} // closed by end
}

// end kills the spawner. What it has started lives on.
func (p *spawnerProcess) end() {
	_ = syscall.Kill(p.pid, syscall.SIGKILL) // It is not reaped yet.
	p.link.Close()
	close(p.ended)
}

// request sends one request and waits for its reply.
func (p *spawnerProcess) request(r spawner.Request, files []*os.File) (spawner.Reply, error) {
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	defer runtime.KeepAlive(files)
	if err := p.link.SetDeadline(time.Now().Add(spawnPatience)); err != nil {
		return spawner.Reply{}, err
	}
	raw, err := p.link.SyscallConn()
	if err != nil {
		return spawner.Reply{}, err
	}
	packet := r.Encode()
	var sent error
	err = raw.Write(func(fd uintptr) bool {
		sent = unix.Sendmsg(int(fd), packet, unix.UnixRights(fds...), nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		return sent != unix.EAGAIN && sent != unix.EINTR
	})
	if err := errors.Join(err, sent); err != nil {
		return spawner.Reply{}, err
	}
	var b [spawner.ReplySize]byte
	n, err := p.link.Read(b[:])
	if err != nil {
		return spawner.Reply{}, err
	}
	reply, ok := spawner.ParseReply(b[:n])
	if !ok {
		return spawner.Reply{}, errNoSpawner
	}
	return reply, nil
}

// startSpawner starts a spawner, in a session of its own, which the signals of a terminal
// do not reach.
func startSpawner() (*spawnerProcess, error) {
	// The thread that forks the spawner is the parent of what the spawner starts, which is
	// told of the end of that thread as of pawl's. So it never ends.
	ended := make(chan struct{})
	keepThread := func(pid int) {
		<-ended
		_, _ = syscall.Wait4(pid, nil, 0, nil)
		select {}
	}
	w, link, err := startSibling(keepThread, spawner.Arg, sessionLeader())
	if err != nil {
		return nil, err
	}
	return &spawnerProcess{pid: w.pid, link: link, ended: ended}, nil
}
