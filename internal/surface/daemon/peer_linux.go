package daemon

import "golang.org/x/sys/unix"

// userBehind returns the user id of the process at the other end of a socket.
func userBehind(fd int) (int, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
