//go:build unix

package credential

import (
	"io/fs"
	"os"
	"syscall"
)

// setOwner gives f the owner and group of like, if they differ. Only root may change
// the owner.
func setOwner(f *os.File, like fs.FileInfo) error {
	want, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	is, err := f.Stat()
	if err != nil {
		return err
	}
	if has, ok := is.Sys().(*syscall.Stat_t); ok && has.Uid == want.Uid && has.Gid == want.Gid {
		return nil
	}
	return f.Chown(int(want.Uid), int(want.Gid))
}
