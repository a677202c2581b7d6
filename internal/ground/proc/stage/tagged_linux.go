package stage

import "golang.org/x/sys/unix"

// FindTagged returns the living processes that were started with exactly the entry tag
// in their environment, as far as this user may read it, and their descendants. It
// leaves out this process and its ancestors.
func FindTagged(tag string) []Process {
	all := ListProcesses()
	ours := selfAndAncestors(all)
	has := map[int]bool{}
	var found []Process
	for _, p := range all {
		if !p.Dead && !ours[p.PID] && environHas(p.PID, tag) {
			has[p.PID] = true
			found = append(found, p)
		}
	}
	for _, p := range FindDescendants(all, func(p Process) bool { return has[p.PID] }) {
		if !ours[p.PID] {
			found = append(found, p)
		}
	}
	return found
}

// selfAndAncestors returns the pids of this process and its ancestors.
func selfAndAncestors(all []Process) map[int]bool {
	parents := map[int]int{}
	for _, p := range all {
		parents[p.PID] = p.Parent
	}
	ours := map[int]bool{}
	for pid := unix.Getpid(); pid > 0 && !ours[pid]; pid = parents[pid] {
		ours[pid] = true
	}
	return ours
}

// environHas reports whether tag is in the environment with which pid was started.
func environHas(pid int, tag string) bool {
	block := readProcFile("/proc/" + formatNumber(pid) + "/environ")
	for start, i := 0, 0; i <= len(block); i++ {
		if i == len(block) || block[i] == 0 {
			if string(block[start:i]) == tag {
				return true
			}
			start = i + 1
		}
	}
	return false
}
