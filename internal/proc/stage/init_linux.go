package stage

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// exitLost is the exit status of a stage that ended without its program's status.
const exitLost = 128 + int(unix.SIGKILL)

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
	sealFrom(OrderFD)
	order, ok := readOrder()
	if !ok {
		refuseAndExit(StepOrder, unix.EBADMSG)
	}
	g := openGroups(order.Bounds)
	becomeTreeRoot(order.Kind, prepare != nil)
	if order.Path == "" {
		sendReport(Report{Event: Started})
		syscall.Exit(0)
	}
	null, _ := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	applyLimits(order.Bounds)
	if prepare != nil {
		order = prepare(order)
	}
	main := startProgram(order, g)
	sendReport(Report{Event: Started})
	releaseStreams(order.Kind, null)
	go obeyLink(order.Kind, g, main)
	endWithStatus(order.Kind, g, reapUntilExit(main))
}

func readOrder() (Order, bool) {
	b, ok := ReadAll(OrderFD)
	if !ok {
		return Order{}, false
	}
	return decodeOrder(b)
}

// becomeTreeRoot makes this process the one whose end is the end of the tree. What is
// prepared may need the capabilities of a namespace, and gives them up itself.
func becomeTreeRoot(kind Kind, prepared bool) {
	switch kind {
	case KindPID:
		mountOwnProc()
	case KindUser:
		mountOwnProc()
		if !prepared {
			dropCapabilities()
		}
	case KindCell:
		// Another stage mounts.
	case KindSubreaper:
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			refuseAndExit(StepSubreaper, err)
		}
	default:
		refuseAndExit(StepOrder, unix.EINVAL)
	}
}

// mountOwnProc gives the mount namespace a /proc of its own PID namespace. Mounts of
// the host still arrive and go, so that a long run pins no file system, but
// nothing propagates back.
func mountOwnProc() {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		refuseAndExit(StepPrivate, err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		refuseAndExit(StepProc, err)
	}
}

// dropCapabilities gives up what was needed to mount, inheritable set included, because an
// exec as uid 0 would take that back.
func dropCapabilities() {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		refuseAndExit(StepDrop, err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		refuseAndExit(StepDrop, err)
	}
}

// startProgram executes the program in a session of its own and returns its pid.
func startProgram(o Order, g *groupFDs) int {
	if o.Dir != "" {
		if err := unix.Chdir(o.Dir); err != nil {
			refuseAndExit(StepDir, err)
		}
	}
	defaultSignals()
	sys := &syscall.SysProcAttr{Setsid: true}
	if o.Kind == KindSubreaper {
		sys.Pdeathsig = unix.SIGKILL
	}
	g.startInGroup(sys)
	sendReport(Report{Event: Starting})
	pid, err := g.forkAsMember(func() (int, error) {
		return syscall.ForkExec(o.Path, o.Argv, &syscall.ProcAttr{
			Env: o.Env, Files: []uintptr{0, 1, 2}, Sys: sys,
		})
	})
	if err != nil {
		refuseAndExit(StepExec, err)
	}
	// Whoever stops pawl may signal everything that it started. The link decides
	// when this process ends: the program has a grace period, and a subreaper
	// that is gone leaves orphans behind.
	ignoreSignals(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM)
	return pid
}

// releaseStreams replaces standard input and output, so that the program's own closing
// of them is seen at the other end. Standard error stays for a crash report.
// The program of a cell, which may run as the same user, is not to read or
// trace this.
func releaseStreams(kind Kind, null int) {
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

// obeyLink follows the link until it ends, which is how the death of pawl shows
// even where the parent-death signal does not reach.
func obeyLink(kind Kind, g *groupFDs, main int) {
	var command [1]byte
	for {
		n, err := unix.Read(LinkFD, command[:])
		switch {
		case err == unix.EINTR:
		case n != 1:
			killTree(kind, g, exitLost)
		case command[0] == Term:
			// A stopped process acts on TERM only after CONT.
			_ = unix.Kill(-main, unix.SIGTERM)
			_ = unix.Kill(-main, unix.SIGCONT)
		}
	}
}

// reapUntilExit collects every child until the program itself has ended.
func reapUntilExit(main int) syscall.WaitStatus {
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

// endWithStatus ends the tree and reports the program's status.
func endWithStatus(kind Kind, g *groupFDs, status syscall.WaitStatus) {
	if kind == KindSubreaper && !noChildLeft() && !killGroup(g) {
		KillDescendants(os.Getpid())
	}
	sendReport(Report{Event: Ended, Status: status})
	code := status.ExitStatus()
	if status.Signaled() {
		code = 128 + int(status.Signal())
	}
	syscall.Exit(code)
}

// noChildLeft reaps the dead and reports whether nothing is left below a
// subreaper: a descendant without a living parent is its child by then.
func noChildLeft() bool {
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

// killGroup kills what is left through the group, and reports whether that was
// all: a privileged program can have left its group.
func killGroup(g *groupFDs) bool {
	const rounds = 500 // of a millisecond
	for range rounds {
		if !g.killMembers() {
			return false
		}
		sleepMillisecond()
		if noChildLeft() {
			return true
		}
	}
	return false
}

// killTree ends the tree without a status. In a PID namespace the kernel kills all
// that is left when PID 1 exits.
func killTree(kind Kind, g *groupFDs, code int) {
	if kind == KindSubreaper {
		g.killMembers()
		KillDescendants(os.Getpid())
	}
	syscall.Exit(code)
}

// sendReport writes r to the link. Nobody is left to be told when that fails, and
// the reader of the link notices its end.
func sendReport(r Report) {
	_, _ = unix.Write(LinkFD, r.encode())
}

// refuseAndExit reports why the program did not run, and exits.
func refuseAndExit(step Step, err error) {
	errno, ok := err.(syscall.Errno) //nolint:errorlint // The system call packages return it bare, and the imports are few on purpose.
	if !ok {
		errno = unix.EINVAL
	}
	sendReport(Report{Event: Refused, Step: step, Errno: errno})
	syscall.Exit(exitLost)
}
