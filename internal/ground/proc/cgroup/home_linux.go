package cgroup

import (
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// FindHome finds out where this process may make groups. It asks the kernel each
// time. A program may still fail to start in a group that is made there.
func FindHome() Home {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return Home{}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Home{}
	}
	visible := locateOwnGroups(string(own), string(mounts))
	h := Home{}
	h.useUnified(visible[unifiedName])
	if os.Geteuid() == 0 {
		h.processes.useVersion1(visible["pids"])
		h.memory.useVersion1(visible["memory"])
	}
	return h
}

// unifiedName is the name of the version 2 hierarchy in /proc/self/cgroup.
const unifiedName = ""

// ownGroup is the group of this process in one hierarchy.
type ownGroup struct {
	dir string // empty: not visible
	top bool   // its parent is not visible
}

// locateOwnGroups returns the groups of this process by controller. The arguments
// are the texts of /proc/self/cgroup and /proc/self/mountinfo.
func locateOwnGroups(own, mounts string) map[string]ownGroup {
	paths := map[string]string{}
	for line := range strings.Lines(own) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		for name := range strings.SplitSeq(fields[1], ",") {
			paths[name] = fields[2]
		}
	}
	found := map[string]ownGroup{}
	for line := range strings.Lines(mounts) {
		root, point, names := parseMount(line)
		for _, name := range names {
			at, ok := pathInMount(root, paths[name])
			if ok && found[name].dir == "" {
				found[name] = ownGroup{dir: path.Join(point, at), top: at == "/"}
			}
		}
	}
	return found
}

// parseMount returns what one line of mountinfo mounts: the directory root of the
// hierarchies with these controllers, at point. It returns no names for other file
// systems and for a mount point with escaped characters.
func parseMount(line string) (root, point string, names []string) {
	left, right, _ := strings.Cut(line, " - ")
	where, what := strings.Fields(left), strings.Fields(right)
	if len(where) < 5 || len(what) < 3 || strings.Contains(where[4], `\`) {
		return "", "", nil
	}
	switch what[0] {
	case "cgroup2":
		names = []string{unifiedName}
	case "cgroup":
		names = strings.Split(what[2], ",")
	}
	return where[3], where[4], names
}

// pathInMount returns the path of the group own in a mount of the directory root.
// Paths with ".." are outside the cgroup namespace and cannot be reached.
func pathInMount(root, own string) (at string, ok bool) {
	if own == "" || leavesRoot(root) || leavesRoot(own) {
		return "", false
	}
	if root == "/" {
		return own, true
	}
	rest, ok := strings.CutPrefix(own, root)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return path.Join("/", rest), true
}

func leavesRoot(p string) bool { return slices.Contains(strings.Split(p, "/"), "..") }

// useVersion1 sets s to a group of version 1 if it is not set yet.
func (s *controllerDir) useVersion1(at ownGroup) {
	if s.dir == "" && at.dir != "" && mayMakeGroupsIn(at) {
		s.dir = at.dir
	}
}

// useUnified makes own or its parent the place for groups. A group with processes
// cannot give its children controllers, so its parent is preferred if it was
// delegated.
func (h *Home) useUnified(own ownGroup) {
	if own.dir == "" {
		return
	}
	above := ownGroup{dir: path.Dir(own.dir)}
	for _, at := range []ownGroup{above, own} {
		if !isDelegated(at.dir) && (at == above || !mayMakeGroupsIn(at)) {
			continue
		}
		h.unified = at.dir
		if ensureController(at.dir, "pids") {
			h.processes = controllerDir{dir: at.dir, unified: true}
		}
		if ensureController(at.dir, "memory") {
			h.memory = controllerDir{dir: at.dir, unified: true}
		}
		return
	}
}

// mayMakeGroupsIn reports whether groups may be made in at. That root can write
// everywhere does not count: a manager may own the group and rely on its contents.
func mayMakeGroupsIn(at ownGroup) bool {
	var st unix.Stat_t
	if at.top {
		return unix.Access(at.dir, unix.W_OK) == nil
	}
	if unix.Stat(at.dir, &st) == nil && st.Uid != 0 && int(st.Uid) == os.Geteuid() {
		return true
	}
	return isDelegated(at.dir)
}

// isDelegated reports whether systemd delegated dir to the processes in it, which an
// extended attribute says.
func isDelegated(dir string) bool {
	for _, name := range []string{"trusted.delegate", "user.delegate"} {
		var value [8]byte
		n, err := unix.Getxattr(dir, name, value[:])
		if err == nil && string(value[:n]) == "1" {
			return unix.Access(dir, unix.W_OK) == nil
		}
	}
	return false
}

// ensureController enables the controller for groups in dir, and reports whether
// they have it.
func ensureController(dir, controller string) bool {
	if !hasWord(dir, "cgroup.controllers", controller) {
		return false
	}
	if hasWord(dir, "cgroup.subtree_control", controller) {
		return true
	}
	return writeControl(dir, "cgroup.subtree_control", "+"+controller) == nil
}

func hasWord(dir, file, word string) bool {
	b, _ := os.ReadFile(path.Join(dir, file))
	return slices.Contains(strings.Fields(string(b)), word)
}
