//go:build linux || darwin

package daemon

import "net"

// peerUser returns the user id of the process at the other end.
func peerUser(c *net.UnixConn) (uid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlErr := raw.Control(func(fd uintptr) { uid, err = userBehind(int(fd)) })
	if controlErr != nil {
		return 0, controlErr
	}
	return uid, err
}
