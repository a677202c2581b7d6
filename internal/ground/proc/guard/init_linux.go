package guard

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/ground/proc/stage"
)

func init() {
	if len(os.Args) == 2 && os.Args[1] == Arg {
		serve()
	}
}

// serve guards until the link ends, and never returns. Init runs on the main thread and
// keeps it, whose priority is raised where that is allowed: it must have its turn on a
// machine on which pawl does not get any.
func serve() {
	stage.IgnoreSignals(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM)
	stage.SealDescriptors()
	stage.RaisePriority()
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // Programs of the same user cannot trace it or open its link.
	timer, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		syscall.Exit(1) // pawl starts another one.
	}
	var w watch
	l := link{packet: make([]byte, MaxMessage), rights: make([]byte, unix.CmsgSpace(4))}
	for {
		ready := []unix.PollFd{{Fd: LinkFD, Events: unix.POLLIN}, {Fd: int32(timer), Events: unix.POLLIN}}
		_, _ = unix.Poll(ready, -1)
		// What pawl has said counts before the time: both may have come while this process
		// was stopped.
		if !l.receive(&w) {
			kill(w.runs)
			syscall.Exit(0)
		}
		over, next := w.due(BootTime())
		if len(over) > 0 {
			killOver(over)
		}
		setTimer(timer, next)
	}
}

// setTimer makes the timer ready at a time, never if it is 0.
func setTimer(timer int, at int64) {
	_ = unix.TimerfdSettime(timer, unix.TFD_TIMER_ABSTIME, &unix.ItimerSpec{Value: unix.NsecToTimespec(at)}, nil)
}

// link reads packets without allocating for each.
type link struct{ packet, rights []byte }

// receive applies all packets that have come. It reports false if the link has ended.
func (l *link) receive(w *watch) bool {
	for {
		n, oobn, _, _, err := unix.Recvmsg(LinkFD, l.packet, l.rights, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return true
		case err != nil || n == 0:
			return false
		}
		if m, ok := ParseMessage(l.packet[:n]); ok {
			for _, fd := range w.apply(m, pidfdOf(l.rights[:oobn])) {
				unix.Close(fd)
			}
		}
	}
}

// pidfdOf returns the descriptor that came along with a packet.
func pidfdOf(rights []byte) int {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return noFD
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return noFD
	}
	return fds[0]
}

// killOver kills the programs of runs whose time is over, and says so before: when pawl
// goes on and finds them dead, it has been told why. A run whose programs have all ended
// loses nothing, and pawl is told nothing.
func killOver(over []*watched) {
	living := over[:0]
	for _, r := range over {
		if !r.isAlive() {
			continue
		}
		living = append(living, r)
		_ = unix.Send(LinkFD, Message{Event: Killed, Tag: r.tag}.Encode(), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	}
	kill(living)
}

// kill kills the trees of the runs, and then what has their tags and is in no tree. What
// the kernel kills as a whole goes first, because that takes no time.
func kill(runs []*watched) {
	for _, r := range runs {
		for _, root := range r.roots {
			if root.inNamespace() {
				root.signal(unix.SIGKILL)
			}
		}
	}
	for _, r := range runs {
		for _, root := range r.roots {
			if !root.inNamespace() && root.isAlive() {
				stage.KillDescendants(root.PID)
				root.signal(unix.SIGKILL)
			}
		}
		const patience = 4000 // rounds of at least a millisecond
		rounds := 0
		stage.KillAll(
			func() []stage.Process { return stage.FindTagged(r.tag) },
			func() bool { rounds++; return rounds > patience },
		)
	}
}

// isAlive reports whether a program of the run may live. A tree that is no namespace may
// have killed its root.
func (r *watched) isAlive() bool {
	outside := false
	for _, root := range r.roots {
		if root.isAlive() {
			return true
		}
		outside = outside || !root.inNamespace()
	}
	return outside && len(stage.FindTagged(r.tag)) > 0
}

// isAlive reports whether the process lives. A zombie does not.
func (o openRoot) isAlive() bool {
	if o.fd == noFD {
		now, ok := stage.ReadProcess(o.PID)
		return ok && !now.Dead && now.Start == o.Start
	}
	ended := []unix.PollFd{{Fd: int32(o.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(ended, 0)
	return n == 0 && err == nil
}

// signal sends a signal to exactly this process.
func (o openRoot) signal(sig syscall.Signal) {
	if o.fd == noFD {
		_, _ = o.Signal(sig)
		return
	}
	_ = unix.PidfdSendSignal(o.fd, sig, nil, 0)
}
