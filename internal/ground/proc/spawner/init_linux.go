package spawner

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/ground/proc/stage"
)

func init() {
	if len(os.Args) == 2 && os.Args[1] == Arg {
		serve()
	}
}

// serve answers requests until the link ends, and never returns.
func serve() {
	stage.SealDescriptors()
	packet, rights := make([]byte, MaxRequest), make([]byte, unix.CmsgSpace(4*MaxFiles))
	for {
		n, oobn, _, _, err := unix.Recvmsg(LinkFD, packet, rights, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			syscall.Exit(0)
		}
		files := filesOf(rights[:oobn])
		reply := Reply{Errno: unix.EBADMSG}
		if r, ok := parseRequest(packet[:n]); ok {
			reply = start(r, files)
		}
		for _, fd := range files {
			unix.Close(int(fd))
		}
		_ = unix.Send(LinkFD, reply.encode(), unix.MSG_NOSIGNAL)
	}
}

// start starts a process as a child of the parent of this one.
func start(r Request, files []uintptr) Reply {
	r.Sys.Cloneflags |= unix.CLONE_PARENT
	pid, err := syscall.ForkExec("/proc/self/exe", r.Argv, &syscall.ProcAttr{Env: r.Env, Files: files, Sys: r.Sys})
	if err == nil {
		return Reply{PID: pid}
	}
	errno, ok := err.(syscall.Errno) //nolint:errorlint // The system call packages return it bare, and the imports are few on purpose.
	if !ok {
		errno = unix.EINVAL
	}
	return Reply{Errno: errno}
}

// filesOf returns the descriptors that came along with a packet.
func filesOf(rights []byte) (files []uintptr) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil
	}
	for i := range messages {
		fds, _ := unix.ParseUnixRights(&messages[i])
		for _, fd := range fds {
			files = append(files, uintptr(fd))
		}
	}
	return files
}
