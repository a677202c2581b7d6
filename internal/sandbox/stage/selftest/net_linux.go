package selftest

import "golang.org/x/sys/unix"

func host4(port int) unix.Sockaddr {
	return &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: port}
}

func connects(family, protocol int, to unix.Sockaddr) (bool, string) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return said(err)
	}
	defer unix.Close(fd)
	return said(unix.Connect(fd, to))
}

func tcp6(t told) (bool, string) {
	if t.get(TCP6) == "" {
		return false, "the host has no IPv6"
	}
	return connects(unix.AF_INET6, 0, &unix.SockaddrInet6{Addr: [16]byte{15: 1}, Port: t.number(TCP6)})
}

// sends reports what sending said. Whether it arrived, only the host knows.
func sends(to unix.Sockaddr, text string) (bool, string) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return said(err)
	}
	defer unix.Close(fd)
	return said(unix.Sendto(fd, []byte(text), 0, to))
}

// sendsEarly connects without connect, as TCP Fast Open does.
func sendsEarly(to unix.Sockaddr) (bool, string) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return said(err)
	}
	defer unix.Close(fd)
	return said(unix.Sendto(fd, []byte{0}, unix.MSG_FASTOPEN|unix.MSG_NOSIGNAL, to))
}

// sockets reports whether a socket of any of the families can be made.
func sockets(kind, protocol int, families ...int) (works bool, detail string) {
	for _, family := range families {
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
		if err == nil {
			unix.Close(fd)
			return true, "family " + digits(family)
		}
		_, detail = said(err)
	}
	return false, detail
}

func otherFamilies(told) (bool, string) {
	rare := []int{unix.AF_TIPC, unix.AF_BLUETOOTH, unix.AF_CAN, unix.AF_RDS, unix.AF_KCM, unix.AF_XDP, unix.AF_SMC, unix.AF_QIPCRTR, unix.AF_NFC, unix.AF_KEY}
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_SEQPACKET, unix.SOCK_RAW, unix.SOCK_DGRAM} {
		if works, detail := sockets(kind, 0, rare...); works {
			return works, detail
		}
	}
	return false, "none"
}

// otherPairs tries what only a filter of system calls keeps from loading the
// code of a family, which then says that it makes no pairs.
func otherPairs(told) (bool, string) {
	_, err := unix.Socketpair(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == unix.EOPNOTSUPP {
		return true, "reached the kernel: EOPNOTSUPP"
	}
	return said(err)
}

func otherProtocols(told) (works bool, detail string) {
	const smc, dccp = 256, 33
	for _, protocol := range []int{unix.IPPROTO_SCTP, smc, dccp, unix.IPPROTO_UDPLITE} {
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET} {
			if works, _ = sockets(kind, protocol, unix.AF_INET, unix.AF_INET6); works {
				return true, "protocol " + digits(protocol)
			}
		}
	}
	return false, "none"
}

func otherNetlink(told) (works bool, detail string) {
	for _, protocol := range []int{unix.NETLINK_KOBJECT_UEVENT, unix.NETLINK_GENERIC, unix.NETLINK_AUDIT, unix.NETLINK_NETFILTER, unix.NETLINK_SOCK_DIAG, unix.NETLINK_XFRM} {
		if works, detail = sockets(unix.SOCK_RAW, protocol, unix.AF_NETLINK); works {
			return true, "protocol " + digits(protocol)
		}
	}
	return false, detail
}

// routes reports whether there is a way to an address. Nothing is sent.
func routes(addr [4]byte) (bool, string) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return said(err)
	}
	defer unix.Close(fd)
	return said(unix.Connect(fd, &unix.SockaddrInet4{Addr: addr, Port: 53}))
}

// askResolver sends something to a name server of this machine, and looks for a
// way to any other.
func askResolver(t told) (bool, string) {
	addr := address(t.get(Resolver))
	if addr[0] != 127 {
		return routes(addr)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return said(err)
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: addr, Port: 53}); err != nil {
		return said(err)
	}
	_, err = unix.Write(fd, []byte{0})
	if err == nil {
		_, err = unix.Write(fd, []byte{0}) // The first one's refusal is told to the second.
	}
	return said(err)
}

func address(text string) (addr [4]byte) {
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

// serve opens a server on a free port and connects to it.
func serve(told) (bool, string) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return said(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, host4(0)); err != nil {
		return said(err)
	}
	if err := unix.Listen(fd, 1); err != nil {
		return said(err)
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		return said(err)
	}
	return connects(unix.AF_INET, 0, at)
}

// serveUnbound opens a server without asking for a port.
func serveUnbound(told) (bool, string) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return said(err)
	}
	defer unix.Close(fd)
	return said(unix.Listen(fd, 1))
}
