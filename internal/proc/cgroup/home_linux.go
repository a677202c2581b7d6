package cgroup

import (
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// FindHome looks where this process may make groups. It asks the kernel each time;
// what it finds may still refuse to take a program.
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

// unifiedName is how /proc/self/cgroup calls the hierarchy of version 2.
const unifiedName = ""

// ownGroup is this process's own group in one hierarchy.
type ownGroup struct {
	dir string // empty: it cannot be seen
	top bool   // nothing above it can be seen
}

// locateOwnGroups returns the own group in each hierarchy, by controller. It reads
// /proc/self/cgroup and /proc/self/mountinfo.
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

// parseMount returns which part of which hierarchies one line of mountinfo shows,
// and where. Names are empty for other file systems, and for a mount point that
// had to be escaped.
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

// pathInMount returns where own is seen below a mount of root. The kernel writes what is
// above the cgroup namespace with "..", and that cannot be reached.
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

// useVersion1 makes a group of version 1 the place of a controller that has none.
func (s *controllerDir) useVersion1(at ownGroup) {
	if s.dir == "" && at.dir != "" && mayMakeGroupsIn(at) {
		s.dir = at.dir
	}
}

// useUnified makes a group of version 2 the home. A group that holds processes
// cannot hand controllers to its children, so the one above it comes first when
// that was delegated.
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

// mayMakeGroupsIn reports whether groups may be made below at. That root may write
// everywhere says nothing: the group may be a manager's, who counts on what is
// in it.
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

// isDelegated reports whether the host's manager left dir to whoever runs in it,
// which systemd says by an attribute.
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

// ensureController reports whether groups below dir have the controller, and makes it so
// where the kernel agrees.
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
