package selftest

import "golang.org/x/sys/unix"

func tryOpen(path string, flags int) (bool, string) {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return answerFor(err)
}

// tryWrite writes a file in dir, reads it back and removes it.
func tryWrite(dir string) (bool, string) {
	const text = "text"
	path := dir + "/selftest"
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return answerFor(err)
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(text)); err != nil {
		return answerFor(err)
	}
	var b [8]byte
	if n, err := unix.Pread(fd, b[:], 0); err != nil || string(b[:n]) != text {
		return false, "another text came back"
	}
	return answerFor(unix.Unlink(path))
}

// writeOutside tries the canary itself and a new file beside it.
func writeOutside(t parameters) (bool, string) {
	if works, detail := tryOpen(t.value(Canary), unix.O_WRONLY); works {
		return works, detail
	}
	path := t.value(Canary) + ".new"
	works, detail := tryOpen(path, unix.O_WRONLY|unix.O_CREAT)
	_ = unix.Unlink(path)
	return works, detail
}

func tryLink(from, to string) (bool, string) {
	err := unix.Link(from, to)
	if err == nil {
		_ = unix.Unlink(to)
	}
	return answerFor(err)
}

// tryRename moves a file aside and back.
func tryRename(path string) (bool, string) {
	err := unix.Rename(path, path+".moved")
	if err == nil {
		_ = unix.Rename(path+".moved", path)
	}
	return answerFor(err)
}

// tryChange sets the mode of a file, to the one it has, or else its time.
func tryChange(path string) (bool, string) {
	err := unix.Chmod(path, 0o644)
	if err != nil {
		err = unix.UtimesNano(path, []unix.Timespec{{Sec: 1}, {Sec: 1}})
	}
	return answerFor(err)
}

func makeDevice(t parameters) (bool, string) {
	path := t.value(Tree) + "/device"
	err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3)))
	if err == nil {
		_ = unix.Unlink(path)
	}
	return answerFor(err)
}

// readProcFile reads a file of /proc of any length.
func readProcFile(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var all []byte
	for b := make([]byte, 4096); ; {
		n, err := unix.Read(fd, b)
		if err != nil || n <= 0 {
			return all, err
		}
		all = append(all, b[:n]...)
	}
}
