package selftest

import "golang.org/x/sys/unix"

func opens(path string, flags int) (bool, string) {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return said(err)
}

// writes makes a file, reads it back and removes it.
func writes(dir string) (bool, string) {
	const text = "text"
	path := dir + "/selftest"
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return said(err)
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(text)); err != nil {
		return said(err)
	}
	var b [8]byte
	if n, err := unix.Pread(fd, b[:], 0); err != nil || string(b[:n]) != text {
		return false, "another text came back"
	}
	return said(unix.Unlink(path))
}

// writeOutside tries the canary itself and a new file beside it.
func writeOutside(t told) (bool, string) {
	if works, detail := opens(t.get(Canary), unix.O_WRONLY); works {
		return works, detail
	}
	path := t.get(Canary) + ".new"
	works, detail := opens(path, unix.O_WRONLY|unix.O_CREAT)
	_ = unix.Unlink(path)
	return works, detail
}

func links(from, to string) (bool, string) {
	err := unix.Link(from, to)
	if err == nil {
		_ = unix.Unlink(to)
	}
	return said(err)
}

// renames moves a file aside and back.
func renames(path string) (bool, string) {
	err := unix.Rename(path, path+".moved")
	if err == nil {
		_ = unix.Rename(path+".moved", path)
	}
	return said(err)
}

// changes sets the mode that a file has, which a program that may not see it
// does not know, and its time.
func changes(path string) (bool, string) {
	err := unix.Chmod(path, 0o644)
	if err != nil {
		err = unix.UtimesNano(path, []unix.Timespec{{Sec: 1}, {Sec: 1}})
	}
	return said(err)
}

func makeDevice(t told) (bool, string) {
	path := t.get(Tree) + "/device"
	err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3)))
	if err == nil {
		_ = unix.Unlink(path)
	}
	return said(err)
}

// content reads a file of /proc.
func content(path string) ([]byte, error) {
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
