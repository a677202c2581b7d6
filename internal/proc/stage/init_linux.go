package stage

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lost is the exit status of a stage that ended without its program's status.
const lost = 128 + int(unix.SIGKILL)

func init() {
	if len(os.Args) == 2 && os.Args[1] == Arg {
		Serve(nil)
	}
}

// Serve runs a stage and never returns. Another stage calls it from an init of
// its own, with what it does before the program starts: prepare looks up the
// program, and may change the calling thread, from which the program is forked,
// in every way that a fork passes on. When it does not return there is no
// program.
//
// It exits by the system call, because nothing that a library registered to run
// at exit belongs into a stage. Init runs on the main thread and keeps it, so
// signals that follow threads and capabilities, which are per thread, hold for
// the child that is forked here.
func Serve(prepare func(Order) Order) {
	seal(OrderFD)
	order, ok := readOrder()
	if !ok {
		refuse(StepOrder, unix.EBADMSG)
	}
	g := openGroups(order.Bounds)
	own(order.Kind, prepare != nil)
	if order.Path == "" {
		report(Report{Event: Started})
		syscall.Exit(0)
	}
	null, _ := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	limit(order.Bounds)
	if prepare != nil {
		order = prepare(order)
	}
	main := start(order, g)
	report(Report{Event: Started})
	letGo(order.Kind, null)
	go obey(order.Kind, g, main)
	finish(order.Kind, g, reap(main))
}

func readOrder() (Order, bool) {
	b, ok := ReadAll(OrderFD)
	if !ok {
		return Order{}, false
	}
	return decode(b)
}

// own makes this process the one whose end is the end of the tree. What is
// prepared may need the capabilities of a namespace, and gives them up itself.
func own(kind Kind, prepared bool) {
	switch kind {
	case KindPID:
		isolate()
	case KindUser:
		isolate()
		if !prepared {
			drop()
		}
	case KindCell:
		// Another stage mounts.
	case KindSubreaper:
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			refuse(StepSubreaper, err)
		}
	default:
		refuse(StepOrder, unix.EINVAL)
	}
}

// isolate gives the mount namespace a /proc of its own PID namespace. Mounts of
// the host still arrive and go, so that a long run pins no file system, but
// nothing propagates back.
func isolate() {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		refuse(StepPrivate, err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		refuse(StepProc, err)
	}
}

// drop gives up what was needed to mount, inheritable set included, because an
// exec as uid 0 would take that back.
func drop() {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		refuse(StepDrop, err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		refuse(StepDrop, err)
	}
}

// start executes the program in a session of its own and returns its pid.
func start(o Order, g *groups) int {
	if o.Dir != "" {
		if err := unix.Chdir(o.Dir); err != nil {
			refuse(StepDir, err)
		}
	}
	defaultSignals()
	sys := &syscall.SysProcAttr{Setsid: true}
	if o.Kind == KindSubreaper {
		sys.Pdeathsig = unix.SIGKILL
	}
	g.enter(sys)
	report(Report{Event: Starting})
	pid, err := g.fork(func() (int, error) {
		return syscall.ForkExec(o.Path, o.Argv, &syscall.ProcAttr{
			Env: o.Env, Files: []uintptr{0, 1, 2}, Sys: sys,
		})
	})
	if err != nil {
		refuse(StepExec, err)
	}
	// Whoever stops pawl may signal everything that it started. The link decides
	// when this process ends: the program has a grace period, and a subreaper
	// that is gone leaves orphans behind.
	ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM)
	return pid
}

// letGo replaces standard input and output, so that the program's own closing
// of them is seen at the other end. Standard error stays for a crash report.
// The program of a cell, which may run as the same user, is not to read or
// trace this.
func letGo(kind Kind, null int) {
	if kind == KindCell {
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	}
	if null < 0 {
		return
	}
	_ = unix.Dup3(null, 0, unix.O_CLOEXEC)
	_ = unix.Dup3(null, 1, unix.O_CLOEXEC)
	unix.Close(null)
}

// obey follows the link until it ends, which is how the death of pawl shows
// even where the parent-death signal does not reach.
func obey(kind Kind, g *groups, main int) {
	var command [1]byte
	for {
		n, err := unix.Read(LinkFD, command[:])
		switch {
		case err == unix.EINTR:
		case n != 1:
			end(kind, g, lost)
		case command[0] == Term:
			// A stopped process acts on TERM only after CONT.
			_ = unix.Kill(-main, unix.SIGTERM)
			_ = unix.Kill(-main, unix.SIGCONT)
		}
	}
}

// reap collects every child until the program itself has ended.
func reap(main int) syscall.WaitStatus {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WALL, nil)
		if pid == main {
			return status
		}
		if err != nil && err != syscall.EINTR {
			return syscall.WaitStatus(unix.SIGKILL)
		}
	}
}

// finish ends the tree and reports the program's status.
func finish(kind Kind, g *groups, status syscall.WaitStatus) {
	if kind == KindSubreaper && !childless() && !cleared(g) {
		Sweep(os.Getpid())
	}
	report(Report{Event: Ended, Status: status})
	code := status.ExitStatus()
	if status.Signaled() {
		code = 128 + int(status.Signal())
	}
	syscall.Exit(code)
}

// childless reaps the dead and reports whether nothing is left below a
// subreaper: a descendant without a living parent is its child by then.
func childless() bool {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG|syscall.WALL, nil)
		if err == syscall.ECHILD {
			return true
		}
		if pid == 0 {
			return false
		}
	}
}

// cleared kills what is left through the group, and reports whether that was
// all: a privileged program can have left its group.
func cleared(g *groups) bool {
	const rounds = 500 // of a millisecond
	for range rounds {
		if !g.clear() {
			return false
		}
		nap()
		if childless() {
			return true
		}
	}
	return false
}

// end ends the tree without a status. In a PID namespace the kernel kills all
// that is left when PID 1 exits.
func end(kind Kind, g *groups, code int) {
	if kind == KindSubreaper {
		g.clear()
		Sweep(os.Getpid())
	}
	syscall.Exit(code)
}

// report writes r to the link. Nobody is left to be told when that fails, and
// the reader of the link notices its end.
func report(r Report) {
	_, _ = unix.Write(LinkFD, r.encode())
}

// refuse reports why the program did not run, and exits.
func refuse(step Step, err error) {
	errno, ok := err.(syscall.Errno) //nolint:errorlint // The system call packages return it bare, and the imports are few on purpose.
	if !ok {
		errno = unix.EINVAL
	}
	report(Report{Event: Refused, Step: step, Errno: errno})
	syscall.Exit(lost)
}
