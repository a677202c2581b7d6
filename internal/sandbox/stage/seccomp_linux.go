package stage

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a filter of system calls does with one.
const (
	allow       = unix.SECCOMP_RET_ALLOW
	kill        = unix.SECCOMP_RET_KILL_PROCESS
	denied      = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	unknown     = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	noFamily    = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
	noProtocol  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)
	offsetNr    = 0
	offsetArch  = 4
	offsetArgs  = 16
	sizeOfArg   = 8
	done        = unix.SECCOMP_RET_ERRNO // said to have succeeded
	socketTypes = 0xf                    // the rest are flags
)

// protocols of the Internet are those that every program may need. Landlock sees
// TCP alone, and of MPTCP, SMC and SCTP a program would only make another way.
var protocols = []uint32{0, unix.IPPROTO_ICMP, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMPV6}

// openTreeAttr came with Linux 6.15, after the list of golang.org/x/sys.
const openTreeAttr = 467

// forbidden are answered with EPERM rather than death, so that tools fail with
// an error that can be read. It is a list of what to deny, because namespaces
// and Landlock bound the rest.
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

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// argument loads the lower half of an argument, which is all that the kernel
// takes of a number. Of an address there is an upperHalf too.
func argument(n uint32) unix.SockFilter { return load(offsetArgs + sizeOfArg*n) }

func upperHalf(n uint32) unix.SockFilter { return load(offsetArgs + sizeOfArg*n + sizeOfArg/2) }

func end(action uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
}

// when runs then if what is loaded equals k, and goes on behind it otherwise.
func when(k uint32, then ...unix.SockFilter) code {
	return append(code{{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: uint8(len(then))}}, then...)
}

// filter installs the filter for the calling thread and all that it becomes.
func filter(o Order) {
	c := compile(o.Local)
	prog := unix.SockFprog{Len: uint16(len(c)), Filter: &c[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		refuse("filter system calls", errno)
	}
}

// having runs then if what is loaded has a bit of k, and goes on behind it
// otherwise.
func having(k uint32, then ...unix.SockFilter) code {
	return append(code{{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: k, Jf: uint8(len(then))}}, then...)
}

// compile writes the filter. Local permits sockets of the family UNIX and, on
// the network, datagrams and servers: what a network namespace confines already.
func compile(local bool) code {
	c := code{load(offsetArch), {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: architecture, Jt: 1}, end(kill), load(offsetNr)}
	if otherNumbers > 0 {
		c = append(c, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: otherNumbers, Jf: 1}, end(kill))
	}
	// The flags of clone3 lie in memory, where a filter cannot look. The C
	// library falls back to clone.
	c = append(c, when(unix.SYS_CLONE3, end(unknown))...)
	for _, nr := range forbidden {
		c = append(c, when(nr, end(denied))...)
	}
	c = append(c, when(unix.SYS_CLONE, joined(code{argument(0)}, having(namespaces, end(denied)), code{end(allow)})...)...)
	c = append(c, when(unix.SYS_SOCKET, sockets(local)...)...)
	c = append(c, when(unix.SYS_SOCKETPAIR, joined(code{argument(0)}, when(unix.AF_UNIX, end(allow)), code{end(noFamily)})...)...)
	c = append(c, when(unix.SYS_IOCTL, terminals()...)...)
	c = append(c, limits(local)...)
	if !local {
		c = append(c, waysRoundConnect()...)
	}
	return append(c, end(allow))
}

func joined(parts ...code) code {
	var all code
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

// terminals judges ioctl(fd, request): nothing is typed for somebody else, and
// no line discipline, whose code is rarely used, is loaded.
func terminals() code {
	c := code{argument(1)}
	for _, request := range []uint32{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD} {
		c = append(c, when(request, end(denied))...)
	}
	return append(c, end(allow))
}

// limits keeps the limit of core files as the stage set it. Programs that switch
// core files off themselves take an error for a reason to end, and have what
// they want already. Where programs can name processes of the host, those of the
// same user, pawl among them, keep their limits: one of time is as good as a
// signal.
func limits(local bool) code {
	set := when(unix.SYS_SETRLIMIT, joined(code{argument(0)}, when(unix.RLIMIT_CORE, end(done)), code{end(allow)})...)
	ask := joined(code{argument(2)}, code{{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0, Jf: 3}, upperHalf(2)}, when(0, end(allow)), code{end(done)})
	ask = joined(code{argument(1)}, when(unix.RLIMIT_CORE, ask...), code{end(allow)})
	if !local {
		ask = joined(code{argument(0), {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 0, Jt: 1}, end(denied)}, ask)
	}
	return append(set, when(unix.SYS_PRLIMIT64, ask...)...)
}

// waysRoundConnect are those that Landlock does not see: data that goes with
// the first packet of a connection needs no connect, and a server that was
// never bound is given a port.
func waysRoundConnect() code {
	c := when(unix.SYS_LISTEN, end(denied))
	for _, call := range []struct{ nr, flags uint32 }{{unix.SYS_SENDTO, 3}, {unix.SYS_SENDMSG, 2}, {unix.SYS_SENDMMSG, 3}} {
		c = append(c, when(call.nr, joined(code{argument(call.flags)}, having(unix.MSG_FASTOPEN, end(denied)), code{end(allow)})...)...)
	}
	return c
}

// sockets judges socket(family, type, protocol).
func sockets(local bool) code {
	c := code{argument(0)}
	c = append(c, when(unix.AF_NETLINK, joined(code{argument(2)}, when(unix.NETLINK_ROUTE, end(allow)), code{end(noProtocol)})...)...)
	known := code{argument(2)}
	for _, p := range protocols {
		known = append(known, when(p, end(allow))...)
	}
	known = append(known, end(noProtocol))
	if local {
		c = append(c, when(unix.AF_UNIX, end(allow))...)
	} else {
		c = append(c, when(unix.AF_UNIX, end(denied))...)
		streams := code{argument(1), {Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: socketTypes}}
		known = joined(streams, when(unix.SOCK_STREAM, known...), code{end(denied)})
	}
	for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
		c = append(c, when(family, known...)...)
	}
	return append(c, end(noFamily))
}
