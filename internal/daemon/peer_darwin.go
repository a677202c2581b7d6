package daemon

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerUser returns the user id of the process at the other end.
func peerUser(c *net.UnixConn) (uid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlErr := raw.Control(func(fd uintptr) {
		var cred *unix.Xucred
		if cred, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED); err == nil {
			uid = int(cred.Uid)
		}
	})
	if controlErr != nil {
		return 0, controlErr
	}
	return uid, err
}
