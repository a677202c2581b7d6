package cgroup

import (
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Find looks where this process may make groups. It asks the kernel each time;
// what it finds may still refuse to take a program.
func Find() Home {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return Home{}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Home{}
	}
	visible := locate(string(own), string(mounts))
	h := Home{}
	h.settle(visible[unifiedName])
	if os.Geteuid() == 0 {
		h.processes.take(visible["pids"])
		h.memory.take(visible["memory"])
	}
	return h
}

// unifiedName is how /proc/self/cgroup calls the hierarchy of version 2.
const unifiedName = ""

// spot is this process's own group in one hierarchy.
type spot struct {
	dir string // empty: it cannot be seen
	top bool   // nothing above it can be seen
}

// locate returns the own group in each hierarchy, by controller. It reads
// /proc/self/cgroup and /proc/self/mountinfo.
func locate(own, mounts string) map[string]spot {
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
	found := map[string]spot{}
	for line := range strings.Lines(mounts) {
		root, point, names := parseMount(line)
		for _, name := range names {
			at, ok := below(root, paths[name])
			if ok && found[name].dir == "" {
				found[name] = spot{dir: path.Join(point, at), top: at == "/"}
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

// below returns where own is seen below a mount of root. The kernel writes what is
// above the cgroup namespace with "..", and that cannot be reached.
func below(root, own string) (at string, ok bool) {
	if own == "" || climbs(root) || climbs(own) {
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

func climbs(p string) bool { return slices.Contains(strings.Split(p, "/"), "..") }

// take makes a group of version 1 the place of a controller that has none.
func (s *controllerDir) take(at spot) {
	if s.dir == "" && at.dir != "" && ours(at) {
		s.dir = at.dir
	}
}

// settle makes a group of version 2 the home. A group that holds processes
// cannot hand controllers to its children, so the one above it comes first when
// that was delegated.
func (h *Home) settle(own spot) {
	if own.dir == "" {
		return
	}
	above := spot{dir: path.Dir(own.dir)}
	for _, at := range []spot{above, own} {
		if !delegated(at.dir) && (at == above || !ours(at)) {
			continue
		}
		h.unified = at.dir
		if handsOut(at.dir, "pids") {
			h.processes = controllerDir{dir: at.dir, unified: true}
		}
		if handsOut(at.dir, "memory") {
			h.memory = controllerDir{dir: at.dir, unified: true}
		}
		return
	}
}

// ours reports whether groups may be made below at. That root may write
// everywhere says nothing: the group may be a manager's, who counts on what is
// in it.
func ours(at spot) bool {
	var st unix.Stat_t
	if at.top {
		return unix.Access(at.dir, unix.W_OK) == nil
	}
	if unix.Stat(at.dir, &st) == nil && st.Uid != 0 && int(st.Uid) == os.Geteuid() {
		return true
	}
	return delegated(at.dir)
}

// delegated reports whether the host's manager left dir to whoever runs in it,
// which systemd says by an attribute.
func delegated(dir string) bool {
	for _, name := range []string{"trusted.delegate", "user.delegate"} {
		var value [8]byte
		n, err := unix.Getxattr(dir, name, value[:])
		if err == nil && string(value[:n]) == "1" {
			return unix.Access(dir, unix.W_OK) == nil
		}
	}
	return false
}

// handsOut reports whether groups below dir have the controller, and makes it so
// where the kernel agrees.
func handsOut(dir, controller string) bool {
	if !has(dir, "cgroup.controllers", controller) {
		return false
	}
	if has(dir, "cgroup.subtree_control", controller) {
		return true
	}
	return put(dir, "cgroup.subtree_control", "+"+controller) == nil
}

func has(dir, file, word string) bool {
	b, _ := os.ReadFile(path.Join(dir, file))
	return slices.Contains(strings.Fields(string(b)), word)
}
