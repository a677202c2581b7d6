package selftest

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tryClone makes a process with clone, which ends at once.
func tryClone(flags uintptr) error {
	return awaitChild(forkAndCall(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, unix.SYS_GETPID, 0))
}

func tryClone3(flags uint64) error {
	args := struct {
		flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls uint64
	}{flags: flags, exitSignal: uint64(unix.SIGCHLD)}
	return awaitChild(forkAndCall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), unix.SYS_GETPID, 0))
}

// callInChild makes one system call in a child process and returns its error.
func callInChild(nr, argument uintptr) error {
	return awaitChild(forkAndCall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, nr, argument))
}

// forkAndCall makes a process with the system call by. The process makes the system
// call nr and exits with its errno. It has only this thread, and its Go runtime does
// not work: nothing here may grow the stack, because the runtime would then check
// whether to switch to another goroutine.
//
//go:nosplit
//go:norace
func forkAndCall(by, a, b, nr, argument uintptr) (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(by, a, b, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	_, _, errno = syscall.RawSyscall(nr, argument, 0, 0)
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
	}
}

// awaitChild waits for a child and returns its exit status as an errno.
func awaitChild(pid uintptr, errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(int(pid), &status, syscall.WALL, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return err
		case status.ExitStatus() != 0:
			return syscall.Errno(status.ExitStatus())
		default:
			return nil
		}
	}
}

// readMemory reads a word of this process with the call that reads other processes.
func readMemory(parameters) (bool, string) {
	from, to := [8]byte{1}, [8]byte{}
	local := []unix.Iovec{{Base: &to[0], Len: uint64(len(to))}}
	remote := []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&from[0])), Len: len(from)}}
	_, err := unix.ProcessVMReadv(os.Getpid(), local, remote, 0)
	return answerFor(err)
}

// listPIDs returns the pids in /proc.
func listPIDs() []string {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var pids []string
	for _, name := range names {
		if name[0] >= '1' && name[0] <= '9' {
			pids = append(pids, name)
		}
	}
	return pids
}

// findWaitingProcess returns the pid of the process that the host started to be found,
// or "" if it is not visible.
func findWaitingProcess(t parameters) string {
	for _, pid := range listPIDs() {
		if command, _ := readProcFile("/proc/" + pid + "/cmdline"); containsText(command, Wait+"\x00"+t.value(Token)) {
			return pid
		}
	}
	return ""
}

func answerForPID(pid string) (bool, string) {
	if pid == "" {
		return false, "not in /proc"
	}
	return true, "process " + pid
}

func trySignal(t parameters) (bool, string) {
	pid := findWaitingProcess(t)
	if pid == "" {
		return answerForPID(pid)
	}
	return answerFor(unix.Kill(parameters{"pid=" + pid}.intValue("pid"), unix.SIGTERM))
}

// tryLimit reads a limit of the waiting process and does not change it: whoever may
// read a limit may set it.
func tryLimit(t parameters) (bool, string) {
	pid := findWaitingProcess(t)
	if pid == "" {
		return answerForPID(pid)
	}
	var was unix.Rlimit
	return answerFor(unix.Prlimit(parameters{"pid=" + pid}.intValue("pid"), unix.RLIMIT_CPU, nil, &was))
}

// mayExceed reports whether the limit of a resource is above most, and the limit.
// Processes that this one starts inherit it.
func mayExceed(resource, most int) (bool, string) {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return true, "the limit cannot be read"
	}
	if now.Max > uint64(most) {
		return true, "the limit is " + limitText(now.Max)
	}
	return false, "the limit is " + limitText(now.Max)
}

func limitText(n uint64) string {
	if n == unix.RLIM_INFINITY {
		return "none"
	}
	return formatNumber(int(n))
}

// holdMemory fills memory, prints a line and waits for ever.
func holdMemory(bytes int) {
	memory, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		syscall.Exit(1)
	}
	for i := 0; i < len(memory); i += os.Getpagesize() {
		memory[i] = 1
	}
	_, _ = os.Stdout.WriteString("held\n")
	for {
		_ = unix.Pause()
	}
}

func readEnvironment(t parameters) (bool, string) {
	detail := "not in /proc"
	for _, pid := range listPIDs() {
		env, err := readProcFile("/proc/" + pid + "/environ")
		if err != nil {
			_, detail = answerFor(err)
		}
		if containsText(env, t.value(Token)) {
			return true, "process " + pid
		}
	}
	return false, detail
}

func gainBySetUID(parameters) (bool, string) {
	if on, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || on != 1 {
		return true, "new privileges are permitted"
	}
	return false, "no new privileges"
}

// hasCapabilities reports whether any of the sets has a capability.
func hasCapabilities(sets ...string) (bool, string) {
	status, err := readProcFile("/proc/self/status")
	if err != nil {
		return true, "the sets cannot be read"
	}
	for _, set := range sets {
		if !containsText(status, set+"\t0000000000000000\n") {
			return true, set + " is not empty"
		}
	}
	return false, "all empty"
}

// containsText reports whether text is in b. Importing bytes would delay the init of
// this package.
func containsText(b []byte, text string) bool {
	for i := 0; i+len(text) <= len(b); i++ {
		if string(b[i:i+len(text)]) == text {
			return true
		}
	}
	return false
}
