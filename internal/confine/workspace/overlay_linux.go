package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// opaqueKey marks a folder that hides what the layers below have at its path.
const opaqueKey = "user.overlay.opaque"

// makeWhiteout makes the entry by which an overlay hides a path of lower layers: a
// character device 0:0, which everybody may make.
func makeWhiteout(path string) error {
	if err := unix.Mknod(path, unix.S_IFCHR, 0); err != nil {
		return fmt.Errorf("hide %s: %w", path, err)
	}
	return nil
}

func isWhiteout(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().Type() == fs.ModeDevice|fs.ModeCharDevice && s.Rdev == 0
}

func setOpaque(path string) error {
	if err := unix.Lsetxattr(path, opaqueKey, []byte("y"), 0); err != nil {
		return fmt.Errorf("mark %s opaque: %w", path, err)
	}
	return nil
}

// isOpaque reports whether a folder has the mark. If that cannot be read it is an error,
// because a folder that is wrongly taken for a merged one would hide deletions.
func isOpaque(path string) (bool, error) {
	var value [4]byte
	n, err := unix.Lgetxattr(path, opaqueKey, value[:])
	switch {
	case err == nil:
		return n == 1 && value[0] == 'y', nil
	case errors.Is(err, unix.ENODATA), errors.Is(err, unix.ENOTSUP):
		return false, nil
	case errors.Is(err, unix.ERANGE): // The value is longer than the mark.
		return false, nil
	}
	return false, err
}

// setTime sets the modification time, of a link itself and not of its target.
func setTime(path string, when time.Time) error {
	at := unix.NsecToTimespec(when.UnixNano())
	return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
}
