package stage

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// What the filter answers to a system call, and where the kernel passes its parts.
const (
	allowed        = unix.SECCOMP_RET_ALLOW
	killed         = unix.SECCOMP_RET_KILL_PROCESS
	denied         = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	unknown        = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	noFamily       = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
	noProtocol     = unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)
	offsetNr       = 0
	offsetArch     = 4
	offsetArgs     = 16
	sizeOfArg      = 8
	pretendSuccess = unix.SECCOMP_RET_ERRNO // the call is not made and returns 0
	socketTypes    = 0xf                    // the rest are flags
)

// protocols are the Internet protocols that a program may need. Landlock sees only
// TCP, so that a program could use MPTCP, SMC and SCTP to get around it.
var protocols = []uint32{0, unix.IPPROTO_ICMP, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMPV6}

// openTreeAttr came with Linux 6.15; golang.org/x/sys does not have it yet.
const openTreeAttr = 467

// forbidden are system calls that fail with EPERM and do not kill the program, so
// that tools report a readable error. A list of what is denied is enough, because
// namespaces and Landlock restrict the rest.
var forbidden = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETNS, unix.SYS_UNSHARE,
	unix.SYS_OPEN_TREE, openTreeAttr, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK,
	unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_VHANGUP,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SYSLOG,
}

const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// code is a program for the kernel's classic BPF machine.
type code []unix.SockFilter

func loadWord(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// loadArgument loads the lower half of an argument. The kernel uses only that half of
// a number, but both halves of an address: see loadUpperHalf.
func loadArgument(n uint32) unix.SockFilter { return loadWord(offsetArgs + sizeOfArg*n) }

func loadUpperHalf(n uint32) unix.SockFilter { return loadWord(offsetArgs + sizeOfArg*n + sizeOfArg/2) }

func returnAction(action uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
}

// ifEqual runs then if the loaded value equals k, and skips it otherwise.
func ifEqual(k uint32, then ...unix.SockFilter) code {
	return append(code{{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: uint8(len(then))}}, then...)
}

// installFilter installs the filter for this thread and for what it forks and
// executes.
func installFilter(o Order) {
	c := compileFilter(o.Local)
	prog := unix.SockFprog{Len: uint16(len(c)), Filter: &c[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		refuseAndExit("filter system calls", errno)
	}
}

// ifAnyBit runs then if the loaded value has any bit of k, and skips it otherwise.
func ifAnyBit(k uint32, then ...unix.SockFilter) code {
	return append(code{{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: k, Jf: uint8(len(then))}}, then...)
}

// compileFilter returns the filter. Local permits sockets of the family UNIX,
// datagrams and servers, which a network namespace already confines.
func compileFilter(local bool) code {
	c := code{loadWord(offsetArch), {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: architecture, Jt: 1}, returnAction(killed), loadWord(offsetNr)}
	if otherNumbers > 0 {
		c = append(c, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: otherNumbers, Jf: 1}, returnAction(killed))
	}
	// The flags of clone3 are in memory, which a filter cannot read. The C library
	// falls back to clone.
	c = append(c, ifEqual(unix.SYS_CLONE3, returnAction(unknown))...)
	for _, nr := range forbidden {
		c = append(c, ifEqual(nr, returnAction(denied))...)
	}
	c = append(c, ifEqual(unix.SYS_CLONE, joinCode(code{loadArgument(0)}, ifAnyBit(namespaces, returnAction(denied)), code{returnAction(allowed)})...)...)
	c = append(c, ifEqual(unix.SYS_SOCKET, socketRules(local)...)...)
	c = append(c, ifEqual(unix.SYS_SOCKETPAIR, joinCode(code{loadArgument(0)}, ifEqual(unix.AF_UNIX, returnAction(allowed)), code{returnAction(noFamily)})...)...)
	c = append(c, ifEqual(unix.SYS_IOCTL, ioctlRules()...)...)
	c = append(c, rlimitRules(local)...)
	if !local {
		c = append(c, connectBypassRules()...)
	}
	return append(c, returnAction(allowed))
}

func joinCode(parts ...code) code {
	var all code
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

// ioctlRules filter ioctl(fd, request): no program may type into a terminal, and none
// may load a line discipline, because that code of the kernel is rarely used.
func ioctlRules() code {
	c := code{loadArgument(1)}
	for _, request := range []uint32{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD} {
		c = append(c, ifEqual(request, returnAction(denied))...)
	}
	return append(c, returnAction(allowed))
}

// rlimitRules keep the limit of core files as the stage set it. A program that sets
// it gets success without effect, because some end on an error. If programs can see
// processes of the host, they may not change the limits of others of the same user,
// such as pawl: a limit of CPU time can kill like a signal.
func rlimitRules(local bool) code {
	set := ifEqual(unix.SYS_SETRLIMIT, joinCode(code{loadArgument(0)}, ifEqual(unix.RLIMIT_CORE, returnAction(pretendSuccess)), code{returnAction(allowed)})...)
	ask := joinCode(code{loadArgument(2)}, code{{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0, Jf: 3}, loadUpperHalf(2)}, ifEqual(0, returnAction(allowed)), code{returnAction(pretendSuccess)})
	ask = joinCode(code{loadArgument(1)}, ifEqual(unix.RLIMIT_CORE, ask...), code{returnAction(allowed)})
	if !local {
		ask = joinCode(code{loadArgument(0), {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0, Jt: 1}, returnAction(denied)}, ask)
	}
	return append(set, ifEqual(unix.SYS_PRLIMIT64, ask...)...)
}

// connectBypassRules deny what gets around Landlock's rules for TCP: sending data in
// the first packet of a connection needs no connect, and the kernel gives a server
// that was never bound a port.
func connectBypassRules() code {
	c := ifEqual(unix.SYS_LISTEN, returnAction(denied))
	for _, call := range []struct{ nr, flags uint32 }{{unix.SYS_SENDTO, 3}, {unix.SYS_SENDMSG, 2}, {unix.SYS_SENDMMSG, 3}} {
		c = append(c, ifEqual(call.nr, joinCode(code{loadArgument(call.flags)}, ifAnyBit(unix.MSG_FASTOPEN, returnAction(denied)), code{returnAction(allowed)})...)...)
	}
	return c
}

// socketRules filter socket(family, type, protocol).
func socketRules(local bool) code {
	c := code{loadArgument(0)}
	c = append(c, ifEqual(unix.AF_NETLINK, joinCode(code{loadArgument(2)}, ifEqual(unix.NETLINK_ROUTE, returnAction(allowed)), code{returnAction(noProtocol)})...)...)
	known := code{loadArgument(2)}
	for _, p := range protocols {
		known = append(known, ifEqual(p, returnAction(allowed))...)
	}
	known = append(known, returnAction(noProtocol))
	if local {
		c = append(c, ifEqual(unix.AF_UNIX, returnAction(allowed))...)
	} else {
		c = append(c, ifEqual(unix.AF_UNIX, returnAction(denied))...)
		streams := code{loadArgument(1), {Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: socketTypes}}
		known = joinCode(streams, ifEqual(unix.SOCK_STREAM, known...), code{returnAction(denied)})
	}
	for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
		c = append(c, ifEqual(family, known...)...)
	}
	return append(c, returnAction(noFamily))
}
