package stage

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// ruleNetPort is LANDLOCK_RULE_NET_PORT, which golang.org/x/sys does not have.
const ruleNetPort = 2

// Sets of access rights. firstRights are those of the first version of Landlock, and
// fileRights those that apply to files that are not directories.
const (
	firstRights = 1<<13 - 1 // everything from execute to make_sym
	readRights  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	fileRights  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// Versions of Landlock that brought something that is used here.
const (
	versionTCP    = 4 // rules for TCP
	versionScopes = 6 // scopes for signals and abstract sockets
)

// LandlockVersion returns the version of the kernel's Landlock, 0 if it has none.
func LandlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// knownRights returns all rights on files that a version knows. The ruleset handles
// all of them, so that nothing is permitted because it was forgotten.
func knownRights(version int) uint64 {
	rights := uint64(firstRights)
	if version >= 2 {
		rights |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		rights |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 5 {
		rights |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return rights
}

type ruleset struct {
	FS, Net, Scope uint64
}

// makeRuleset makes the ruleset and returns its descriptor. It must be called while
// this process can still open all paths of the rules.
func makeRuleset(r Rules) int {
	version := LandlockVersion()
	if version < 1 {
		refuseAndExit("ask for Landlock", unix.ENOSYS)
	}
	attr := ruleset{FS: knownRights(version)}
	size := unsafe.Sizeof(attr.FS)
	if version >= versionTCP {
		size += unsafe.Sizeof(attr.Net)
	}
	if version >= versionScopes {
		size += unsafe.Sizeof(attr.Scope)
		attr.Scope = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	if r.Network {
		if version < versionTCP {
			refuseAndExit("rule over TCP", unix.ENOSYS)
		}
		attr.Net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		refuseAndExit("make a Landlock ruleset", errno)
	}
	for _, path := range r.List {
		permitPath(int(set), path, unix.LANDLOCK_ACCESS_FS_READ_DIR)
	}
	for _, path := range r.Read {
		permitPath(int(set), path, readRights)
	}
	for _, path := range r.Write {
		permitPath(int(set), path, attr.FS)
	}
	for _, port := range r.Connect {
		rule := struct{ Access, Port uint64 }{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(port)}
		addRule(int(set), ruleNetPort, unsafe.Pointer(&rule), "permit a port")
	}
	return int(set)
}

// permitPath permits rights at path and below it. A path that does not exist needs no
// rule.
func permitPath(set int, path string, rights uint64) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return
	}
	must("open "+path, err)
	defer unix.Close(fd)
	var st unix.Stat_t
	must("look at "+path, unix.Fstat(fd, &st))
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	addRule(set, unix.LANDLOCK_RULE_PATH_BENEATH, unsafe.Pointer(&attr), "permit "+path)
}

func addRule(set int, kind uintptr, attr unsafe.Pointer, step string) {
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), kind, uintptr(attr), 0, 0, 0)
	if errno != 0 {
		refuseAndExit(step, errno)
	}
}

// enforceRuleset applies the ruleset to this thread and to what it forks and
// executes, and closes set.
func enforceRuleset(set int) {
	_, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(set), 0, 0)
	if errno != 0 {
		refuseAndExit("restrict by Landlock", errno)
	}
	unix.Close(set)
}
