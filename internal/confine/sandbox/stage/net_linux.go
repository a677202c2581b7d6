package stage

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// bringUpLoopback brings up the loopback, the only interface of a new network
// namespace.
func bringUpLoopback() {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	must("open the loopback", err)
	defer unix.Close(fd)
	var request struct {
		name  [unix.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:], "lo")
	request.flags = unix.IFF_UP | unix.IFF_RUNNING
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		refuseAndExit("bring up the loopback", errno)
	}
}

// listenAndSend listens at a port of the cell's loopback and sends the socket over
// the link. The process that receives it accepts connections from inside the cell,
// although it is outside.
func listenAndSend(port int) {
	const backlog = 128
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must("open a port", err)
	defer unix.Close(fd)
	must("reuse a port", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	must("bind a port", unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}))
	must("listen", unix.Listen(fd, backlog))
	must("hand over a port", unix.Sendmsg(LinkFD, Message{Port: port}.encode(), unix.UnixRights(fd), nil, 0))
}
