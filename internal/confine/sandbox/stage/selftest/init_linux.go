package selftest

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func init() {
	if len(os.Args) < 2 || os.Args[1] != Arg {
		return
	}
	if len(os.Args) == 4 && os.Args[2] == Wait {
		_, _ = os.Stdout.WriteString(formatNumber(os.Getpid()) + "\n")
		for {
			_ = unix.Pause()
		}
	}
	if len(os.Args) == 4 && os.Args[2] == Hold {
		holdMemory(parameters{Hold + "=" + os.Args[3]}.intValue(Hold))
	}
	t := parameters(os.Args[2:])
	for _, a := range actions {
		works, detail := a.try(t)
		answer := Denied
		if works {
			answer = Works
		}
		_, _ = os.Stdout.WriteString(a.name + "\t" + answer + "\t" + detail + "\n")
	}
	syscall.Exit(0)
}

// parameters are the arguments of the self-test, NAME=VALUE each.
type parameters []string

func (t parameters) value(name string) string {
	for _, kv := range t {
		if len(kv) > len(name) && kv[len(name)] == '=' && kv[:len(name)] == name {
			return kv[len(name)+1:]
		}
	}
	return ""
}

// intValue returns the value of name as a number that is not negative.
func (t parameters) intValue(name string) int {
	n := 0
	for _, c := range []byte(t.value(name)) {
		n = n*10 + int(c-'0')
	}
	return n
}

func formatNumber(n int) string {
	var b [20]byte
	at := len(b)
	for {
		at--
		b[at] = '0' + byte(n%10)
		if n /= 10; n == 0 {
			return string(b[at:])
		}
	}
}

// action is one thing that is tried. try reports whether it worked, with a detail
// such as the name of the errno.
type action struct {
	name string
	try  func(parameters) (works bool, detail string)
}

var actions = []action{
	{WriteOutside, writeOutside},
	{ReadOutside, func(t parameters) (bool, string) { return tryOpen(t.value(Canary), unix.O_RDONLY) }},
	{LinkOutside, func(t parameters) (bool, string) { return tryLink(t.value(Canary), t.value(Tree)+"/link") }},
	{RenameOutside, func(t parameters) (bool, string) { return tryRename(t.value(Canary)) }},
	{ChangeOutside, func(t parameters) (bool, string) { return tryChange(t.value(Canary)) }},
	{WriteProtected, func(t parameters) (bool, string) { return tryOpen(t.value(Protected), unix.O_WRONLY) }},
	{RenameProtected, func(t parameters) (bool, string) { return tryRename(t.value(Protected)) }},
	{ConnectTCP4, func(t parameters) (bool, string) { return tryConnect(unix.AF_INET, 0, loopbackAddr(t.intValue(TCP4))) }},
	{ConnectTCP6, connectTCP6},
	{SendUDP, func(t parameters) (bool, string) { return trySend(loopbackAddr(t.intValue(UDP)), t.value(Token)) }},
	{ConnectMPTCP, func(t parameters) (bool, string) {
		return tryConnect(unix.AF_INET, unix.IPPROTO_MPTCP, loopbackAddr(t.intValue(TCP4)))
	}},
	{ConnectEarly, func(t parameters) (bool, string) { return trySendEarly(loopbackAddr(t.intValue(TCP4))) }},
	{ServeUnbound, tryServeUnbound},
	{OtherProtocols, tryOtherProtocols},
	{ConnectPath, func(t parameters) (bool, string) {
		return tryConnect(unix.AF_UNIX, 0, &unix.SockaddrUnix{Name: t.value(Path)})
	}},
	{ConnectAbstract, func(t parameters) (bool, string) {
		return tryConnect(unix.AF_UNIX, 0, &unix.SockaddrUnix{Name: "@" + t.value(Abstract)})
	}},
	{OpenVSOCK, func(parameters) (bool, string) { return tryFamilies(unix.SOCK_STREAM, 0, unix.AF_VSOCK) }},
	{OpenPacket, func(parameters) (bool, string) { return tryFamilies(unix.SOCK_RAW, 0, unix.AF_PACKET) }},
	{OpenALG, func(parameters) (bool, string) { return tryFamilies(unix.SOCK_SEQPACKET, 0, unix.AF_ALG) }},
	{OtherFamilies, tryOtherFamilies},
	{OtherPairs, tryOtherPairs},
	{OtherNetlink, tryOtherNetlink},
	{NewUserByClone, func(parameters) (bool, string) { return answerFor(tryClone(unix.CLONE_NEWUSER)) }},
	{NewUserByUnshare, func(parameters) (bool, string) { return answerFor(callInChild(unix.SYS_UNSHARE, unix.CLONE_NEWUSER)) }},
	{NewUserByClone3, func(parameters) (bool, string) { return answerFor(tryClone3(unix.CLONE_NEWUSER)) }},
	{MountSomething, func(parameters) (bool, string) {
		return reachesKernel(unix.SYS_MOUNT, badArgument, badArgument, badArgument)
	}},
	{PivotRoot, func(parameters) (bool, string) { return reachesKernel(unix.SYS_PIVOT_ROOT, badArgument, badArgument) }},
	{Trace, func(parameters) (bool, string) {
		return reachesKernel(unix.SYS_PTRACE, badArgument, uintptr(os.Getppid()))
	}},
	{ReadMemory, readMemory},
	{IOURing, func(parameters) (bool, string) { return reachesKernel(unix.SYS_IO_URING_SETUP, 1, badArgument) }},
	{LoadBPF, func(parameters) (bool, string) { return reachesKernel(unix.SYS_BPF, 0, badArgument, 16) }},
	{FaultByUser, func(parameters) (bool, string) { return reachesKernel(unix.SYS_USERFAULTFD, badArgument) }},
	{UseKeys, func(parameters) (bool, string) { return reachesKernel(unix.SYS_KEYCTL, badArgument) }},
	{UsePerf, func(parameters) (bool, string) { return reachesKernel(unix.SYS_PERF_EVENT_OPEN, badArgument) }},
	{OpenByHandle, func(parameters) (bool, string) {
		return reachesKernel(unix.SYS_OPEN_BY_HANDLE_AT, badArgument, badArgument)
	}},
	{Type, func(parameters) (bool, string) { return reachesKernel(unix.SYS_IOCTL, 0, unix.TIOCSTI, badArgument) }},
	{MakeDevice, makeDevice},
	{SeeProcesses, func(t parameters) (bool, string) { return answerForPID(findWaitingProcess(t)) }},
	{SignalProcess, trySignal},
	{LimitProcess, tryLimit},
	{ReadEnvironment, readEnvironment},
	{ReadPID1, func(parameters) (bool, string) { return tryOpen("/proc/1/environ", unix.O_RDONLY) }},
	{GainBySetUID, gainBySetUID},
	{HoldCapability, func(parameters) (bool, string) { return hasCapabilities("CapInh:", "CapPrm:", "CapEff:", "CapAmb:") }},
	{GainCapability, func(parameters) (bool, string) { return hasCapabilities("CapBnd:") }},
	{AskResolver, askResolver},
	{ReachMetadata, func(parameters) (bool, string) { return hasRoute([4]byte{169, 254, 169, 254}) }},
	{ExceedProcesses, func(t parameters) (bool, string) { return mayExceed(unix.RLIMIT_NPROC, t.intValue(Processes)) }},
	{ExceedFileSize, func(t parameters) (bool, string) { return mayExceed(unix.RLIMIT_FSIZE, t.intValue(FileBytes)) }},
	{LeaveCore, func(parameters) (bool, string) { return mayExceed(unix.RLIMIT_CORE, 1) }},

	{WriteTree, func(t parameters) (bool, string) { return tryWrite(t.value(Tree)) }},
	{WriteHome, func(t parameters) (bool, string) { return tryWrite(t.value(Home)) }},
	{WriteTemp, func(t parameters) (bool, string) { return tryWrite(t.value(Temporary)) }},
	{ReadUsr, func(parameters) (bool, string) { return tryOpen("/usr/bin", unix.O_RDONLY|unix.O_DIRECTORY) }},
	{Fork, func(parameters) (bool, string) { return answerFor(tryClone(0)) }},
	{Serve, tryServe},
}

// answerFor turns the result of a system call into an answer.
func answerFor(err error) (works bool, detail string) {
	if err == nil {
		return true, "ok"
	}
	if errno, ok := err.(syscall.Errno); ok { //nolint:errorlint // The system call packages return it bare, and the imports are few on purpose.
		if name := unix.ErrnoName(errno); name != "" {
			return false, name
		}
	}
	return false, err.Error()
}

// badArgument is neither an address nor the number of a request nor a descriptor.
const badArgument = ^uintptr(0)

// reachesKernel makes a system call with arguments with which it cannot succeed, and
// reports whether the kernel checked the arguments or denied the call before that.
func reachesKernel(nr uintptr, args ...uintptr) (works bool, detail string) {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := syscall.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno == 0 {
		return true, "ok"
	}
	if errno == unix.EPERM || errno == unix.ENOSYS || errno == unix.EACCES {
		return answerFor(errno)
	}
	return true, "reached the kernel: " + unix.ErrnoName(errno)
}
