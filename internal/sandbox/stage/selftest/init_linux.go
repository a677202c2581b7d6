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
		_, _ = os.Stdout.WriteString(digits(os.Getpid()) + "\n")
		for {
			_ = unix.Pause()
		}
	}
	if len(os.Args) == 4 && os.Args[2] == Hold {
		hold(told{Hold + "=" + os.Args[3]}.number(Hold))
	}
	t := told(os.Args[2:])
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

// told is what a self-test was told, NAME=VALUE each.
type told []string

func (t told) get(name string) string {
	for _, kv := range t {
		if len(kv) > len(name) && kv[len(name)] == '=' && kv[:len(name)] == name {
			return kv[len(name)+1:]
		}
	}
	return ""
}

// number reads one that is not negative.
func (t told) number(name string) int {
	n := 0
	for _, c := range []byte(t.get(name)) {
		n = n*10 + int(c-'0')
	}
	return n
}

func digits(n int) string {
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

// action tries one thing and returns whether it worked, and what was said.
type action struct {
	name string
	try  func(told) (bool, string)
}

var actions = []action{
	{WriteOutside, writeOutside},
	{ReadOutside, func(t told) (bool, string) { return opens(t.get(Canary), unix.O_RDONLY) }},
	{LinkOutside, func(t told) (bool, string) { return links(t.get(Canary), t.get(Tree)+"/link") }},
	{RenameOutside, func(t told) (bool, string) { return renames(t.get(Canary)) }},
	{ChangeOutside, func(t told) (bool, string) { return changes(t.get(Canary)) }},
	{WriteProtected, func(t told) (bool, string) { return opens(t.get(Protected), unix.O_WRONLY) }},
	{RenameProtected, func(t told) (bool, string) { return renames(t.get(Protected)) }},
	{ConnectTCP4, func(t told) (bool, string) { return connects(unix.AF_INET, 0, host4(t.number(TCP4))) }},
	{ConnectTCP6, tcp6},
	{SendUDP, func(t told) (bool, string) { return sends(host4(t.number(UDP)), t.get(Token)) }},
	{ConnectMPTCP, func(t told) (bool, string) { return connects(unix.AF_INET, unix.IPPROTO_MPTCP, host4(t.number(TCP4))) }},
	{ConnectEarly, func(t told) (bool, string) { return sendsEarly(host4(t.number(TCP4))) }},
	{ServeUnbound, serveUnbound},
	{OtherProtocols, otherProtocols},
	{ConnectPath, func(t told) (bool, string) { return connects(unix.AF_UNIX, 0, &unix.SockaddrUnix{Name: t.get(Path)}) }},
	{ConnectAbstract, func(t told) (bool, string) {
		return connects(unix.AF_UNIX, 0, &unix.SockaddrUnix{Name: "@" + t.get(Abstract)})
	}},
	{OpenVSOCK, func(told) (bool, string) { return sockets(unix.SOCK_STREAM, 0, unix.AF_VSOCK) }},
	{OpenPacket, func(told) (bool, string) { return sockets(unix.SOCK_RAW, 0, unix.AF_PACKET) }},
	{OpenALG, func(told) (bool, string) { return sockets(unix.SOCK_SEQPACKET, 0, unix.AF_ALG) }},
	{OtherFamilies, otherFamilies},
	{OtherPairs, otherPairs},
	{OtherNetlink, otherNetlink},
	{NewUserByClone, func(told) (bool, string) { return said(clone(unix.CLONE_NEWUSER)) }},
	{NewUserByUnshare, func(told) (bool, string) { return said(inChild(unix.SYS_UNSHARE, unix.CLONE_NEWUSER)) }},
	{NewUserByClone3, func(told) (bool, string) { return said(clone3(unix.CLONE_NEWUSER)) }},
	{MountSomething, func(told) (bool, string) { return reached(unix.SYS_MOUNT, nowhere, nowhere, nowhere) }},
	{PivotRoot, func(told) (bool, string) { return reached(unix.SYS_PIVOT_ROOT, nowhere, nowhere) }},
	{Trace, func(told) (bool, string) { return reached(unix.SYS_PTRACE, nowhere, uintptr(os.Getppid())) }},
	{ReadMemory, readMemory},
	{IOURing, func(told) (bool, string) { return reached(unix.SYS_IO_URING_SETUP, 1, nowhere) }},
	{LoadBPF, func(told) (bool, string) { return reached(unix.SYS_BPF, 0, nowhere, 16) }},
	{FaultByUser, func(told) (bool, string) { return reached(unix.SYS_USERFAULTFD, nowhere) }},
	{UseKeys, func(told) (bool, string) { return reached(unix.SYS_KEYCTL, nowhere) }},
	{UsePerf, func(told) (bool, string) { return reached(unix.SYS_PERF_EVENT_OPEN, nowhere) }},
	{OpenByHandle, func(told) (bool, string) { return reached(unix.SYS_OPEN_BY_HANDLE_AT, nowhere, nowhere) }},
	{Type, func(told) (bool, string) { return reached(unix.SYS_IOCTL, 0, unix.TIOCSTI, nowhere) }},
	{MakeDevice, makeDevice},
	{SeeProcesses, func(t told) (bool, string) { return seen(waiting(t)) }},
	{SignalProcess, signal},
	{LimitProcess, limit},
	{ReadEnvironment, readEnvironment},
	{ReadPID1, func(told) (bool, string) { return opens("/proc/1/environ", unix.O_RDONLY) }},
	{GainBySetUID, gainBySetUID},
	{HoldCapability, func(told) (bool, string) { return capabilities("CapInh:", "CapPrm:", "CapEff:", "CapAmb:") }},
	{GainCapability, func(told) (bool, string) { return capabilities("CapBnd:") }},
	{AskResolver, askResolver},
	{ReachMetadata, func(told) (bool, string) { return routes([4]byte{169, 254, 169, 254}) }},
	{ExceedProcesses, func(t told) (bool, string) { return exceeds(unix.RLIMIT_NPROC, t.number(Processes)) }},
	{ExceedFileSize, func(t told) (bool, string) { return exceeds(unix.RLIMIT_FSIZE, t.number(FileBytes)) }},
	{LeaveCore, func(told) (bool, string) { return exceeds(unix.RLIMIT_CORE, 1) }},

	{WriteTree, func(t told) (bool, string) { return writes(t.get(Tree)) }},
	{WriteHome, func(t told) (bool, string) { return writes(t.get(Home)) }},
	{WriteTemp, func(t told) (bool, string) { return writes(t.get(Temporary)) }},
	{ReadUsr, func(told) (bool, string) { return opens("/usr/bin", unix.O_RDONLY|unix.O_DIRECTORY) }},
	{Fork, func(told) (bool, string) { return said(clone(0)) }},
	{Serve, serve},
}

// said turns what the kernel said into an answer.
func said(err error) (works bool, detail string) {
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

// nowhere is not an address, no number of a request and no descriptor.
const nowhere = ^uintptr(0)

// reached reports whether a system call that cannot succeed with such arguments
// was looked at by the kernel, or turned away at the door.
func reached(nr uintptr, args ...uintptr) (works bool, detail string) {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := syscall.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno == 0 {
		return true, "ok"
	}
	if errno == unix.EPERM || errno == unix.ENOSYS || errno == unix.EACCES {
		return said(errno)
	}
	return true, "reached the kernel: " + unix.ErrnoName(errno)
}
