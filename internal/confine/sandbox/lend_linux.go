package sandbox

import (
	"os"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pawl-run/pawl/internal/confine/sandbox/stage"
	"github.com/pawl-run/pawl/internal/ground/proc"
)

// lendSources opens the read-only binds of the box, and those layers of its views that
// belong to pawl's user, as mounts in which files of pawl's user appear as files of
// the program's user. It does so only if the two differ: a root with a strict umask
// would otherwise keep the program from reading its repositories, toolchains and
// caches. A source that the kernel or the file system cannot map is left out, and
// keeps its owners. lendSources sets FD of the mounts, from first on; the caller
// hands the files to the stage and closes them.
func (b Box) lendSources(mounts []stage.Mount, first int) (files []*os.File) {
	uid, gid := b.Tier.Owner()
	if uid == os.Geteuid() {
		return nil
	}
	owners, err := mappedOwners(uid, gid)
	if err != nil {
		return nil
	}
	for i, m := range mounts {
		bound := func(bind Bind) bool { return bind.From == m.From && bind.At(b.Tier) == m.To }
		lower := m.Kind == stage.Lower && isOwnedBy(m.From, os.Geteuid())
		if !lower && (m.Kind != stage.Bind || !m.ReadOnly || !slices.ContainsFunc(b.Binds, bound)) {
			continue
		}
		if f := cloneMapped(m.From, owners); f != nil {
			mounts[i].FD = first + len(files)
			files = append(files, f)
		}
	}
	return files
}

func isOwnedBy(path string, uid int) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && int(st.Uid) == uid
}

// cloneMapped returns a detached read-only copy of what is mounted at and below path,
// with the owners of files mapped by the user namespace owners. It returns nil if
// that is not possible.
func cloneMapped(path string, owners *os.File) *os.File {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return nil // The stage tries the same and reports the error.
	}
	attr := unix.MountAttr{
		Attr_set:  unix.MOUNT_ATTR_IDMAP | unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV,
		Userns_fd: uint64(owners.Fd()),
	}
	if unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr) != nil {
		unix.Close(fd)
		return nil
	}
	return os.NewFile(uintptr(fd), path)
}

// ownerNamespace is a user namespace that maps this user to another one. An error is
// not kept, because the host may only have been short of memory or descriptors.
var ownerNamespace struct {
	mu   sync.Mutex
	file *os.File
}

func mappedOwners(uid, gid int) (*os.File, error) {
	ownerNamespace.mu.Lock()
	defer ownerNamespace.mu.Unlock()
	if ownerNamespace.file != nil {
		return ownerNamespace.file, nil
	}
	f, err := proc.UserNamespace(swapIDs(os.Geteuid(), uid), swapIDs(os.Getegid(), gid))
	ownerNamespace.file = f
	return f, err
}

// swapIDs maps ours to theirs and every other id to itself. Files of theirs have no
// owner in the mapping.
func swapIDs(ours, theirs int) []syscall.SysProcIDMap {
	const all = 1<<32 - 1
	return []syscall.SysProcIDMap{
		{ContainerID: ours, HostID: theirs, Size: 1},
		{ContainerID: ours + 1, HostID: ours + 1, Size: theirs - ours - 1},
		{ContainerID: theirs + 1, HostID: theirs + 1, Size: all - theirs - 1},
	}
}
