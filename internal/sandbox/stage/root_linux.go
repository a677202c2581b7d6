package stage

import "golang.org/x/sys/unix"

// scaffold is a directory that every host has, where the new root hangs until
// it is the root. What it hides there has been opened by then.
const scaffold = "/tmp"

// buildRoot makes the root, the loopback and the name of a cell.
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

// switchRoot makes the new root the only one there is.
func switchRoot(root int) {
	must("enter the new root", unix.Fchdir(root))
	must("change the root", unix.PivotRoot(".", "."))
	must("let go of the host's root", unix.Unmount(".", unix.MNT_DETACH))
	must("enter the new root", unix.Chdir("/"))
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	must("close the new root", unix.MountSetattr(unix.AT_FDCWD, "/", 0, &attr))
	unix.Close(root)
}

// closeHost makes all that is mounted read-only but what may be written, because
// Landlock keeps no program from changing the modes, owners, times and
// attributes of files. Only process 1 of a namespace has mounts that are its own;
// where the host lends none, that is not done.
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

// source is a mount that is not attached yet, or -1, and whether it is a
// directory.
type source struct {
	fd     int
	folder bool
}

// openSource opens what a mount needs of the host.
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
		// The mounts of the host are this process's own by now.
		must("mount "+m.From, unix.MoveMount(m.FD, "", unix.AT_FDCWD, m.From, unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS))
		unix.Close(m.FD)
	case Link, Again:
	}
	return source{fd: -1}
}

// cloneMount detaches a copy of what is mounted at and below path.
func cloneMount(path string) int {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	must("open "+path, err)
	return fd
}

// setMountAttributes sets the attributes of a detached mount and all below it.
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

// newTmpfs makes a tmpfs that is not attached yet. Empty files cost no bytes of
// it but memory of the kernel, so they are counted too.
func newTmpfs(size, mode int) int {
	const perFile, least = 4096, 4096
	return newMount("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV,
		"size", formatNumber(size, 10), "mode", formatNumber(mode, 8), "nr_inodes", formatNumber(max(least, size/perFile), 10))
}

// newOverlay makes a layered directory that is not attached yet. Layers are named
// by descriptor, so that no path has to be quoted or is too long.
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
			fd := cloneMount(m.Layers[0]) // The kernel makes no overlay of one layer.
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

// newMount makes a mount of a file system with options, which are names and
// values by turns. An overlay keeps its own marks in attributes that any user
// may set, and need not survive a power cut.
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
// to what is made there no symbolic link is followed: in a tree it would be an
// agent's, and until the root is changed it would lead to the host.
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

// How symbolic links are taken.
const (
	resolveStrict = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS
	// What is hidden or closed is what programs would find by the name, so links
	// lead as they will once the new root is the root.
	resolveInRoot = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS
)

// openPath finds path below the new root, or returns -1.
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

// openParent opens the directory that path lies in, and returns the rest of it.
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

// makeParents makes the directories above path that do not exist.
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
