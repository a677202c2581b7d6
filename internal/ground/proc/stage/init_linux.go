package stage

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// exitLost is the exit status of a stage that does not know its program's status.
const exitLost = 128 + int(unix.SIGKILL)

func init() {
	if len(os.Args) == 2 && os.Args[1] == Arg {
		Serve(nil)
	}
}

// Serve runs a stage and never returns. The init of another stage calls it with a
// prepare, which is called before the program starts: it looks up the program, and
// may change the calling thread, from which the program is forked, in every way
// that a fork inherits. If prepare does not return, no program is started.
//
// Serve exits by the system call, because no exit handler of a library may run in a
// stage. Init runs on the main thread and keeps it, so that the parent-death signal
// and capabilities, which are per thread, apply to the child that is forked here.
func Serve(prepare func(Order) Order) {
	sealFrom(OrderFD)
	var order Order
	encoded, ok := ReadAll(OrderFD)
	if ok {
		order, ok = decodeOrder(encoded)
	}
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
	awaitGo()
	main := startProgram(order, g)
	sendReport(Report{Event: Started})
	releaseStreams(order.Kind, null)
	go obeyLink(order.Kind, g, main)
	endWithStatus(order.Kind, g, reapUntilExit(main))
}

// awaitGo waits until pawl has told its guard of this process. If pawl stands still
// before that, no program is started that nobody would kill.
func awaitGo() {
	var command [1]byte
	n, err := unix.Read(LinkFD, command[:])
	for err == unix.EINTR {
		n, err = unix.Read(LinkFD, command[:])
	}
	if n != 1 || command[0] != Go {
		syscall.Exit(exitLost)
	}
}

// becomeTreeRoot makes this process the root of the tree, which ends with it. With
// prepared it keeps the capabilities of the user namespace: prepare may need them,
// and drops them itself.
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
		// The other stage makes the mounts.
	case KindSubreaper:
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			refuseAndExit(StepSubreaper, err)
		}
	default:
		refuseAndExit(StepOrder, unix.EINVAL)
	}
}

// mountOwnProc mounts a /proc of this PID namespace. Mounts and unmounts of the host
// still reach this mount namespace, so that a long run keeps no file system busy,
// but nothing propagates back to the host.
func mountOwnProc() {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		refuseAndExit(StepPrivate, err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		refuseAndExit(StepProc, err)
	}
}

// dropCapabilities drops the capabilities that were needed to mount. The inheritable
// set goes too, because an exec as uid 0 would restore them from it.
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

// startProgram starts the program in a session of its own and returns its pid.
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
	if g.into != noFD {
		sys.UseCgroupFD, sys.CgroupFD = true, g.into
	}
	sendReport(Report{Event: Starting})
	pid, err := g.forkAsMember(func() (int, error) {
		return syscall.ForkExec(o.Path, o.Argv, &syscall.ProcAttr{
			Env: o.Env, Files: []uintptr{0, 1, 2}, Sys: sys,
		})
	})
	if err != nil {
		refuseAndExit(StepExec, err)
	}
	// Whoever stops pawl may signal everything that it started. This process must
	// end only when the link does: the program has a grace period, and a subreaper
	// that dies leaves orphans behind.
	IgnoreSignals(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM)
	return pid
}

// releaseStreams replaces standard input and output of this process by the null
// device, so that the other end sees when the program closes them. Standard error
// stays for a crash report. In a cell it also makes this process not dumpable,
// because the program may run as the same user and must not read or trace it.
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

// obeyLink executes the commands that arrive over the link, and kills the tree when
// it ends. This process so learns of the death of pawl even without a parent-death
// signal.
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

// reapUntilExit reaps children until the program itself has ended, and returns its
// status.
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

// endWithStatus kills what is left of the tree, reports the program's status and
// exits.
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

// noChildLeft reaps dead children and reports whether none is left. Then nothing is
// left below a subreaper, because it adopts every orphan.
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

// killGroup kills the members of the group and reports whether no child is left
// then: a privileged program can leave its group.
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

// killTree kills the tree and exits without reporting a status. In a PID namespace
// the kernel kills everything else when PID 1 exits.
func killTree(kind Kind, g *groupFDs, code int) {
	if kind == KindSubreaper {
		g.killMembers()
		KillDescendants(os.Getpid())
	}
	syscall.Exit(code)
}

// sendReport writes r to the link. If that fails, nobody is left to read an error,
// and the reader of the link sees its end.
func sendReport(r Report) {
	_, _ = unix.Write(LinkFD, r.encode())
}

// refuseAndExit reports which step failed and why, and exits. The program does not
// run.
func refuseAndExit(step Step, err error) {
	errno, ok := err.(syscall.Errno) //nolint:errorlint // The system call packages return it bare, and the imports are few on purpose.
	if !ok {
		errno = unix.EINVAL
	}
	sendReport(Report{Event: Refused, Step: step, Errno: errno})
	syscall.Exit(exitLost)
}
