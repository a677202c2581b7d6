package stage

import "golang.org/x/sys/unix"

// ResidentMemory returns how many bytes of anonymous and shared memory a process has
// in main memory. Shared memory counts fully.
func ResidentMemory(pid int) int64 {
	var b [4096]byte
	text := readInto("/proc/"+formatNumber(pid)+"/status", b[:])
	return findKilobytes(text, "RssAnon:") + findKilobytes(text, "RssShmem:")
}

// ProportionalMemory is ResidentMemory with shared memory divided among the
// processes that share it. If the kernel is too old or does not tell this user, it
// returns ResidentMemory.
func ProportionalMemory(pid int) int64 {
	var b [4096]byte
	text := readInto("/proc/"+formatNumber(pid)+"/smaps_rollup", b[:])
	n := findKilobytes(text, "Pss_Anon:") + findKilobytes(text, "Pss_Shmem:")
	if n == 0 {
		return ResidentMemory(pid)
	}
	return n
}

// findKilobytes returns the value of the line "name   123 kB" in bytes, 0 if there is
// none.
func findKilobytes(text []byte, name string) int64 {
	for i := 0; i+len(name) < len(text); i++ {
		if i > 0 && text[i-1] != '\n' || string(text[i:i+len(name)]) != name {
			continue
		}
		rest := text[i+len(name):]
		for len(rest) > 0 && (rest[0] == ' ' || rest[0] == '\t') {
			rest = rest[1:]
		}
		return parseNumber(cutWord(&rest)) << 10
	}
	return 0
}

// CountThreads returns how many threads the host has, 0 if unknown. It reads one
// file and does not walk /proc.
func CountThreads() int {
	var b [128]byte
	text := readInto("/proc/loadavg", b[:])
	for i, c := range text {
		if c == '/' {
			rest := text[i+1:]
			return int(parseNumber(cutWord(&rest)))
		}
	}
	return 0
}

// ReadDescendants returns the living processes below root. If the kernel lists the
// children of a process, it reads only these, and may miss one that is just being
// forked.
func ReadDescendants(root int) []Process {
	if !listsChildren() {
		return FindDescendants(ListProcesses(), func(p Process) bool { return p.PID == root })
	}
	var found []Process
	seen := map[int]bool{root: true}
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, pid := range readChildren(queue[0]) {
			p, ok := ReadProcess(pid)
			if !ok || seen[pid] {
				continue
			}
			seen[pid] = true
			queue = append(queue, pid)
			if !p.Dead {
				found = append(found, p)
			}
		}
	}
	return found
}

// listsChildren reports whether this kernel lists the children of a process.
func listsChildren() bool {
	return unix.Access("/proc/self/task/"+formatNumber(unix.Getpid())+"/children", unix.R_OK) == nil
}

// readChildren returns the children of all threads of pid.
func readChildren(pid int) []int {
	tasks := "/proc/" + formatNumber(pid) + "/task"
	var found []int
	for _, tid := range readDirNames(tasks) {
		found = append(found, parseNumbers(readProcFile(tasks+"/"+tid+"/children"))...)
	}
	return found
}

// readProcFile reads a file of /proc of any length.
func readProcFile(path string) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var all []byte
	for {
		var b [4096]byte
		n, err := unix.Read(fd, b[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return all
		}
		all = append(all, b[:n]...)
	}
}

// parseNumbers parses decimal numbers, each followed by a space.
func parseNumbers(b []byte) []int {
	var all []int
	for len(b) > 0 {
		if n := parseNumber(cutWord(&b)); n > 0 {
			all = append(all, int(n))
		}
	}
	return all
}
