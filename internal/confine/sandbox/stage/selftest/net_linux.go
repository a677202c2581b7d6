package selftest

import "golang.org/x/sys/unix"

func loopbackAddr(port int) unix.Sockaddr {
	return &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: port}
}

func tryConnect(family, protocol int, to unix.Sockaddr) (bool, string) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return answerFor(err)
	}
	defer unix.Close(fd)
	return answerFor(unix.Connect(fd, to))
}

func connectTCP6(t parameters) (bool, string) {
	if t.value(TCP6) == "" {
		return false, "the host has no IPv6"
	}
	return tryConnect(unix.AF_INET6, 0, &unix.SockaddrInet6{Addr: [16]byte{15: 1}, Port: t.intValue(TCP6)})
}

// trySend sends a datagram. Only the host knows whether it arrived.
func trySend(to unix.Sockaddr, text string) (bool, string) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return answerFor(err)
	}
	defer unix.Close(fd)
	return answerFor(unix.Sendto(fd, []byte(text), 0, to))
}

// trySendEarly sends data without a connect, as TCP Fast Open does.
func trySendEarly(to unix.Sockaddr) (bool, string) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return answerFor(err)
	}
	defer unix.Close(fd)
	return answerFor(unix.Sendto(fd, []byte{0}, unix.MSG_FASTOPEN|unix.MSG_NOSIGNAL, to))
}

// tryFamilies reports whether a socket of any of the families can be opened.
func tryFamilies(kind, protocol int, families ...int) (works bool, detail string) {
	for _, family := range families {
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
		if err == nil {
			unix.Close(fd)
			return true, "family " + formatNumber(family)
		}
		_, detail = answerFor(err)
	}
	return false, detail
}

func tryOtherFamilies(parameters) (bool, string) {
	rare := []int{unix.AF_TIPC, unix.AF_BLUETOOTH, unix.AF_CAN, unix.AF_RDS, unix.AF_KCM, unix.AF_XDP, unix.AF_SMC, unix.AF_QIPCRTR, unix.AF_NFC, unix.AF_KEY}
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_SEQPACKET, unix.SOCK_RAW, unix.SOCK_DGRAM} {
		if works, detail := tryFamilies(kind, 0, rare...); works {
			return works, detail
		}
	}
	return false, "none"
}

// tryOtherPairs asks for a pair of sockets of a family that has none: only a filter
// of system calls keeps the kernel from loading the code of the family, which then
// answers EOPNOTSUPP.
func tryOtherPairs(parameters) (bool, string) {
	_, err := unix.Socketpair(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == unix.EOPNOTSUPP {
		return true, "reached the kernel: EOPNOTSUPP"
	}
	return answerFor(err)
}

func tryOtherProtocols(parameters) (works bool, detail string) {
	const smc, dccp = 256, 33
	for _, protocol := range []int{unix.IPPROTO_SCTP, smc, dccp, unix.IPPROTO_UDPLITE} {
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET} {
			if works, _ = tryFamilies(kind, protocol, unix.AF_INET, unix.AF_INET6); works {
				return true, "protocol " + formatNumber(protocol)
			}
		}
	}
	return false, "none"
}

func tryOtherNetlink(parameters) (works bool, detail string) {
	for _, protocol := range []int{unix.NETLINK_KOBJECT_UEVENT, unix.NETLINK_GENERIC, unix.NETLINK_AUDIT, unix.NETLINK_NETFILTER, unix.NETLINK_SOCK_DIAG, unix.NETLINK_XFRM} {
		if works, detail = tryFamilies(unix.SOCK_RAW, protocol, unix.AF_NETLINK); works {
			return true, "protocol " + formatNumber(protocol)
		}
	}
	return false, detail
}

// hasRoute reports whether there is a route to an address. It sends nothing.
func hasRoute(addr [4]byte) (bool, string) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return answerFor(err)
	}
	defer unix.Close(fd)
	return answerFor(unix.Connect(fd, &unix.SockaddrInet4{Addr: addr, Port: 53}))
}

// askResolver sends a datagram to the name server if it is on this machine, and
// otherwise only looks for a route to it.
func askResolver(t parameters) (bool, string) {
	addr := parseIPv4(t.value(Resolver))
	if addr[0] != 127 {
		return hasRoute(addr)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return answerFor(err)
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: addr, Port: 53}); err != nil {
		return answerFor(err)
	}
	_, err = unix.Write(fd, []byte{0})
	if err == nil {
		_, err = unix.Write(fd, []byte{0}) // The kernel reports the refusal of the first datagram to the second write.
	}
	return answerFor(err)
}

func parseIPv4(text string) (addr [4]byte) {
	at := 0
	for _, c := range []byte(text) {
		switch {
		case c == '.':
			at++
		case at < len(addr):
			addr[at] = addr[at]*10 + c - '0'
		}
	}
	return addr
}

// tryServe listens at a free port and connects to it.
func tryServe(parameters) (bool, string) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return answerFor(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, loopbackAddr(0)); err != nil {
		return answerFor(err)
	}
	if err := unix.Listen(fd, 1); err != nil {
		return answerFor(err)
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		return answerFor(err)
	}
	return tryConnect(unix.AF_INET, 0, at)
}

// tryServeUnbound listens without binding to a port first.
func tryServeUnbound(parameters) (bool, string) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return answerFor(err)
	}
	defer unix.Close(fd)
	return answerFor(unix.Listen(fd, 1))
}
