package proc

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/ground/proc/guard"
	"github.com/pawl-run/pawl/internal/ground/proc/stage"
)

// Guard kills programs that outlive the time for which this process answers for them,
// also while this process is stopped or gets no processor time. The first tree with
// Spec.Guard starts a small process that does so; one that dies is started again. The zero
// Guard is ready and has no process. A nil *Guard guards nothing. Close it.
//
// Programs are known by their Spec.Tag. Those whose tag is not held are never killed, and
// neither are those of Plain and of [Group]. In a PID namespace they cannot reach the
// guard's process; elsewhere a program of the same user can kill it.
type Guard struct {
	mu      sync.Mutex
	held    map[string]*guarded // by tag
	process *guardProcess       // nil: there is none
	ready   chan struct{}       // closed when the first process was forked; nil: nobody needed one yet
	closing chan struct{}       // closed by Close
	closed  chan struct{}       // closed when the last process has ended
}

// guarded is what the guard is told of one tag.
type guarded struct {
	onKill func()
	killed bool
	word   *guard.Message // the last extension; nil: none yet
	roots  map[guard.Root]bool
}

// Hold says that this process answers for the programs with the tag, from the first
// Extend on until Release. If they are killed, onKill is called before the Run of one of
// them returns, whose Result is then [Canceled].
func (g *Guard) Hold(tag string, onKill func()) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held == nil {
		g.held = map[string]*guarded{}
	}
	g.held[tag] = &guarded{onKill: onKill, roots: map[guard.Root]bool{}}
}

// Extend says that the programs with the tag may live until then, counted from now, and
// are to be killed a little before, so that none is left then.
func (g *Guard) Extend(tag string, until, before time.Duration) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.held[tag]
	if h == nil {
		return
	}
	end := guard.BootTime() + int64(until)
	h.word = &guard.Message{Event: guard.Extended, Tag: tag, KillAt: end - int64(before), Until: end}
	g.process.tell(*h.word)
}

// Overdue reports whether the programs with the tag ought to be dead, because this process
// or the machine stood still: it has to extend their time now, or lose them.
func (g *Guard) Overdue(tag string) bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.held[tag]
	return h != nil && h.word != nil && guard.BootTime() >= h.word.KillAt
}

// Release ends Hold. The programs with the tag must have ended.
func (g *Guard) Release(tag string) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held[tag] != nil {
		delete(g.held, tag)
		g.process.tell(guard.Message{Event: guard.Released, Tag: tag})
	}
}

// Prepare starts the guard's process in the background, if a tag is held that it has to
// guard. Run does so itself; who calls it earlier does not wait for it then.
func (g *Guard) Prepare(tag string) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held[tag] == nil || g.ready != nil {
		return
	}
	g.ready, g.closing, g.closed = make(chan struct{}), make(chan struct{}), make(chan struct{})
	go g.keepProcess(g.closing, g.closed)
}

// Close ends the guard's process and returns when it is gone.
func (g *Guard) Close() {
	if g == nil {
		return
	}
	g.mu.Lock()
	closing, closed := g.closing, g.closed
	g.closing = nil
	g.mu.Unlock()
	if closing != nil {
		close(closing)
		<-closed
	}
}

// watch tells the guard of the root of a tree that was just started. The caller calls the
// function that it returns when the root is dead, before it is reaped.
func (g *Guard) watch(tag string, kind stage.Kind, pid int) (ended func()) {
	if g == nil {
		return func() {}
	}
	p, _ := stage.ReadProcess(pid) // It is not reaped yet.
	root := guard.Root{ID: p.ID, Kind: kind}
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.held[tag]
	if h == nil {
		return func() {}
	}
	h.roots[root] = true
	g.process.tell(guard.Message{Event: guard.Started, Tag: tag, Root: root})
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(h.roots, root)
		g.process.tell(guard.Message{Event: guard.Ended, Tag: tag, Root: root})
	}
}

// waitReady waits until there was a process that could be told what to watch.
func (g *Guard) waitReady(tag string) {
	if g == nil {
		return
	}
	g.Prepare(tag)
	g.mu.Lock()
	ready := g.ready
	g.mu.Unlock()
	if ready != nil {
		<-ready
	}
}

// hasKilled reports whether the guard has killed the programs with the tag.
func (g *Guard) hasKilled(tag string) bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	g.listen()
	h := g.held[tag]
	killed := h != nil && h.killed
	g.mu.Unlock()
	if killed {
		h.onKill()
	}
	return killed
}

// listen notes what the process has said so far.
func (g *Guard) listen() {
	for g.process != nil {
		var packet [guard.MaxMessage]byte
		n, _, err := unix.Recvfrom(int(g.process.link.Fd()), packet[:], unix.MSG_DONTWAIT)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		if m, ok := guard.ParseMessage(packet[:n]); ok && m.Event == guard.Killed && g.held[m.Tag] != nil {
			g.held[m.Tag].killed = true
		}
	}
}

// keepProcess starts a process, and another one whenever it has ended, until Close.
func (g *Guard) keepProcess(closing <-chan struct{}, closed chan<- struct{}) {
	defer close(closed)
	const first, last = 10 * time.Millisecond, time.Second
	forked := sync.OnceFunc(func() { close(g.ready) })
	for pause := first; ; pause = min(2*pause, last) {
		began := time.Now()
		p, err := startGuardProcess()
		if err == nil {
			g.mu.Lock()
			g.process = p
			g.tellAll()
			g.mu.Unlock()
		}
		forked()
		if err == nil {
			g.attend(p, closing)
			if time.Since(began) > last {
				pause = first
			}
		}
		select {
		case <-closing:
			return
		case <-time.After(pause):
		}
	}
}

// tellAll tells a new process everything.
func (g *Guard) tellAll() {
	for tag, h := range g.held {
		if h.word != nil {
			g.process.tell(*h.word)
		}
		for root := range h.roots {
			g.process.tell(guard.Message{Event: guard.Started, Tag: tag, Root: root})
		}
	}
}

// attend sends what the process could not take at once, and returns when it has ended,
// which it does at once after Close.
func (g *Guard) attend(p *guardProcess, closing <-chan struct{}) {
	const retry = 5 * time.Millisecond
	for {
		select {
		case <-p.dead:
			g.mu.Lock()
			g.listen()
			g.process = nil
			g.mu.Unlock()
			p.link.Close()
			p.reapStatus()
			return
		case <-closing:
			_ = syscall.Kill(p.pid, syscall.SIGKILL) // It is not reaped yet.
			closing = nil
		case <-p.full:
			time.Sleep(retry)
			g.mu.Lock()
			p.flush()
			g.mu.Unlock()
		}
	}
}

// guardProcess is a running guard. All but its end is under the mutex of Guard.
type guardProcess struct {
	*waitedProcess

	link    *os.File
	pending []guard.Message // the socket was full
	full    chan struct{}   // says that there is something pending
}

// startGuardProcess starts a guard in a session of its own, which the signals of a
// terminal do not reach. It outlives this process for a moment, in which it kills what is
// left; should somebody have stopped it, it is continued for that.
func startGuardProcess() (*guardProcess, error) {
	w, link, err := startSibling(awaitZombieAndRevive, guard.Arg, &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGCONT})
	if err != nil {
		return nil, err
	}
	return &guardProcess{waitedProcess: w, link: link, full: make(chan struct{}, 1)}, nil
}

// tell sends a message without waiting, after those that could not be sent yet. What a
// dead process was not told, the next one is.
func (p *guardProcess) tell(m guard.Message) {
	if p == nil {
		return
	}
	p.pending = append(p.pending, m)
	if len(p.pending) == 1 {
		p.flush()
	}
}

// flush sends what is pending, as far as the socket takes it.
func (p *guardProcess) flush() {
	for len(p.pending) > 0 {
		if errors.Is(p.send(p.pending[0]), unix.EAGAIN) {
			select {
			case p.full <- struct{}{}:
			default:
			}
			return
		}
		p.pending = p.pending[1:]
	}
	p.pending = nil
}

func (p *guardProcess) send(m guard.Message) error {
	var rights []byte
	if m.Event == guard.Started {
		if fd, err := unix.PidfdOpen(m.Root.PID, 0); err == nil {
			defer unix.Close(fd)
			// If the message had to wait, the root may have been reaped.
			if now, ok := stage.ReadProcess(m.Root.PID); ok && now.Start == m.Root.Start {
				rights = unix.UnixRights(fd)
			}
		}
	}
	for {
		err := unix.Sendmsg(int(p.link.Fd()), m.Encode(), rights, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if err != unix.EINTR {
			return err
		}
	}
}
