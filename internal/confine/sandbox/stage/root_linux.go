package stage

import "golang.org/x/sys/unix"

// scaffold is a directory that every host has. The new root is mounted there until
// it becomes the root. What the mount hides has been opened before.
const scaffold = "/tmp"

// buildRoot sets up the root, the host name, the loopback and the ports of a cell.
func buildRoot(o Order) {
	must("detach mounts", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	opened := make([]source, len(o.Mounts))
	for i, m := range o.Mounts {
		opened[i] = openSource(m)
	}
	b := builder{user: o.User, group: o.Group}
	root := newTmpfs(1<<20, 0o755)
	must("mount a new root", unix.MoveMount(root, "", unix.AT_FDCWD, scaffold, unix.MOVE_MOUNT_F_EMPTY_PATH))
	b.root = root
	for i, m := range o.Mounts {
		b.placeMount(m, opened[i])
	}
	switchRoot(root)
	must("name the host", unix.Sethostname([]byte(o.Host)))
	bringUpLoopback()
	for _, port := range o.Ports {
		listenAndSend(port)
	}
}

// switchRoot makes the mount the root of this process, read-only, and detaches the
// host's root.
func switchRoot(root int) {
	must("enter the new root", unix.Fchdir(root))
	must("change the root", unix.PivotRoot(".", "."))
	must("let go of the host's root", unix.Unmount(".", unix.MNT_DETACH))
	must("enter the new root", unix.Chdir("/"))
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	must("close the new root", unix.MountSetattr(unix.AT_FDCWD, "/", 0, &attr))
	unix.Close(root)
}

// closeHost makes all mounts read-only except for the paths in write, because
// Landlock does not keep a program from changing the modes, owners, times and
// attributes of files. Only process 1 has a mount namespace of its own; in any other
// process closeHost does nothing.
func closeHost(write []string) {
	if unix.Getpid() != 1 {
		return
	}
	opened := make([]int, len(write))
	for i, path := range write {
		fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if opened[i] = fd; err == unix.ENOENT {
			continue
		}
		must("open "+path, err)
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	must("close the host's root", unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &attr))
	for i, fd := range opened {
		if fd >= 0 {
			must("mount "+write[i], unix.MoveMount(fd, "", unix.AT_FDCWD, write[i], unix.MOVE_MOUNT_F_EMPTY_PATH))
			unix.Close(fd)
		}
	}
}

// source is what a Mount attaches.
type source struct {
	fd     int  // a detached mount; -1: the kind of mount needs none
	folder bool // it is a directory
}

// openSource opens or makes the source of m, while the host's paths are still there.
func openSource(m Mount) source {
	switch m.Kind {
	case Bind:
		if m.FD > 0 {
			return source{m.FD, isFolder(m.FD)}
		}
		fd := cloneMount(m.From)
		setMountAttributes(fd, m)
		return source{fd, isFolder(fd)}
	case Overlay:
		return source{newOverlay(m), true}
	case Memory:
		fd := newTmpfs(m.Size, m.Mode)
		setMountAttributes(fd, m)
		return source{fd, true}
	case Proc:
		return source{newMount("proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC), true}
	case Terminal:
		return source{newMount("devpts", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, "mode", "620", "ptmxmode", "666"), true}
	case Hide:
		return source{cloneMount("/dev/null"), false}
	case Lower:
		// The mounts of the host are private to this process by now.
		must("mount "+m.From, unix.MoveMount(m.FD, "", unix.AT_FDCWD, m.From, unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS))
		unix.Close(m.FD)
	case Link, Again:
	}
	return source{fd: -1}
}

// cloneMount returns a detached copy of what is mounted at and below path.
func cloneMount(path string) int {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	must("open "+path, err)
	return fd
}

// setMountAttributes sets the attributes of a detached mount and of those below it.
func setMountAttributes(fd int, m Mount) {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
	if m.ReadOnly {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if !m.Devices {
		attr.Attr_set |= unix.MOUNT_ATTR_NODEV
	}
	must("set attributes of "+m.To, unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr))
}

func isFolder(fd int) bool {
	var st unix.Stat_t
	must("look at a source", unix.Fstat(fd, &st))
	return st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// newTmpfs returns a detached tmpfs of size bytes. It also limits the number of files,
// because empty ones use memory of the kernel and no bytes of the tmpfs.
func newTmpfs(size, mode int) int {
	const perFile, least = 4096, 4096
	return newMount("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV,
		"size", formatNumber(size, 10), "mode", formatNumber(mode, 8), "nr_inodes", formatNumber(max(least, size/perFile), 10))
}

// newOverlay returns a detached overlay mount. Layers are named by descriptor, so that
// no path has to be quoted or is too long.
func newOverlay(m Mount) int {
	var layers []byte
	for _, dir := range m.Layers {
		layers = append(append(layers, descriptorPath(dir)...), ':')
	}
	options := []string{"lowerdir", string(layers[:max(0, len(layers)-1)])}
	if m.Upper != "" {
		options = append(options, "upperdir", descriptorPath(m.Upper), "workdir", descriptorPath(m.Work))
	}
	attributes := unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	if m.Upper == "" {
		attributes |= unix.MOUNT_ATTR_RDONLY
		if len(m.Layers) == 1 {
			fd := cloneMount(m.Layers[0]) // The kernel makes no overlay of a single layer.
			setMountAttributes(fd, Mount{To: m.To, ReadOnly: true})
			return fd
		}
	}
	return newMount("overlay", attributes, options...)
}

func descriptorPath(dir string) string {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must("open layer "+dir, err)
	return "/proc/self/fd/" + formatNumber(fd, 10)
}

// newMount returns a detached mount of a file system. Options are names and values in
// turn. An overlay stores its marks in attributes that any user may set (userxattr),
// and need not survive a power cut (volatile).
func newMount(kind string, attributes int, options ...string) int {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	must("open "+kind, err)
	for i := 0; i+1 < len(options); i += 2 {
		must("set "+options[i]+" of "+kind, unix.FsconfigSetString(fs, options[i], options[i+1]))
	}
	if kind == "overlay" {
		must("set userxattr of overlay", unix.FsconfigSetFlag(fs, "userxattr"))
		if len(options) > 2 {
			must("set volatile of overlay", unix.FsconfigSetFlag(fs, "volatile"))
		}
	}
	must("make "+kind, unix.FsconfigCreate(fs))
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attributes)
	must("mount "+kind, err)
	unix.Close(fs)
	return fd
}

// builder fills the new root.
type builder struct {
	root        int
	user, group int
}

// placeMount attaches one mount. Names are looked up below the new root. On the way
// to a path that is made there, no symbolic link is followed: in a tree an agent may
// have made it, and until the root is changed it would lead to the host.
func (b builder) placeMount(m Mount, s source) {
	switch m.Kind {
	case Lower:
		return
	case Link:
		b.makeParents(m.To)
		at, name := b.openParent(m.To)
		must("link "+m.To, unix.Symlinkat(m.From, at, name))
		unix.Close(at)
		return
	case Again:
		if at := b.openPath(m.To, resolveInRoot); at >= 0 {
			fd, err := unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
			must("open "+m.To, err)
			setMountAttributes(fd, m)
			moveMountTo(fd, at, m.To)
		}
		return
	case Hide:
		if at := b.openPath(m.To, resolveInRoot); at >= 0 {
			if isFolder(at) {
				unix.Close(s.fd)
				s.fd = newTmpfs(4096, 0o555)
			}
			setMountAttributes(s.fd, Mount{To: m.To, ReadOnly: true, Devices: true})
			moveMountTo(s.fd, at, m.To)
		}
		return
	case Bind, Overlay, Memory, Proc, Terminal:
	}
	b.makeParents(m.To)
	b.makeMountpoint(m.To, s.folder)
	at := b.openPath(m.To, resolveStrict)
	if at < 0 {
		refuseAndExit("find "+m.To, unix.ENOENT)
	}
	if m.Kind == Memory && b.user >= 0 && m.Mode&0o002 == 0 && !m.ReadOnly {
		must("own "+m.To, unix.Fchownat(s.fd, "", b.user, b.group, unix.AT_EMPTY_PATH))
	}
	moveMountTo(s.fd, at, m.To)
}

func moveMountTo(fd, at int, to string) {
	must("mount "+to, unix.MoveMount(fd, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
	unix.Close(fd)
	unix.Close(at)
}

// How openPath resolves symbolic links.
const (
	resolveStrict = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS
	// What is hidden or made read-only is what programs will find by the name, so
	// links are followed as they will be once the new root is the root.
	resolveInRoot = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS
)

// openPath opens path below the new root, or returns -1 if it cannot be found.
func (b builder) openPath(path string, resolve uint64) int {
	name := path[1:]
	if name == "" {
		name = "."
	}
	fd, err := unix.Openat2(b.root, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve})
	if err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP {
		return -1
	}
	must("find "+path, err)
	return fd
}

// openParent opens the directory of path, and returns it and the last element.
func (b builder) openParent(path string) (at int, name string) {
	last := len(path) - 1
	for path[last] != '/' {
		last--
	}
	if at = b.openPath(path[:max(last, 1)], resolveStrict); at < 0 {
		refuseAndExit("find "+path[:last]+" without a symbolic link on the way", unix.ELOOP)
	}
	return at, path[last+1:]
}

// makeParents makes the missing directories above path.
func (b builder) makeParents(path string) {
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			b.makeFolder(path[:i])
		}
	}
}

func (b builder) makeFolder(path string) {
	at, name := b.openParent(path)
	defer unix.Close(at)
	err := unix.Mkdirat(at, name, 0o755)
	if err == nil && b.user >= 0 {
		err = unix.Fchownat(at, name, b.user, b.group, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil && err != unix.EEXIST && err != unix.EROFS {
		refuseAndExit("make "+path, err)
	}
}

func (b builder) makeMountpoint(path string, folder bool) {
	if folder {
		b.makeFolder(path)
		return
	}
	at, name := b.openParent(path)
	defer unix.Close(at)
	fd, err := unix.Openat(at, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err == nil {
		unix.Close(fd)
	}
	if err != nil && err != unix.EEXIST && err != unix.EROFS {
		refuseAndExit("make "+path, err)
	}
}
