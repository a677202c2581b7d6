package stage

import "golang.org/x/sys/unix"

// ResidentMemory returns how many bytes of anonymous and shared memory a process has
// in main memory. What it shares with others counts fully.
func ResidentMemory(pid int) int64 {
	var b [4096]byte
	text := readInto("/proc/"+formatNumber(pid)+"/status", b[:])
	return findKilobytes(text, "RssAnon:") + findKilobytes(text, "RssShmem:")
}

// ProportionalMemory is Resident with shared memory divided among those that share it.
// Where the kernel does not tell this user or is too old, it is Resident.
func ProportionalMemory(pid int) int64 {
	var b [4096]byte
	text := readInto("/proc/"+formatNumber(pid)+"/smaps_rollup", b[:])
	n := findKilobytes(text, "Pss_Anon:") + findKilobytes(text, "Pss_Shmem:")
	if n == 0 {
		return ResidentMemory(pid)
	}
	return n
}

// findKilobytes returns, in bytes, the value of a line "name   123 kB".
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

// CountThreads returns how many processes and threads the host has, which costs no walk;
// 0 if that is not known.
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

// ReadDescendants returns the living processes below root. Where the kernel lists
// the children of a process only these are read, and one that is born at that
// moment may be missed.
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

// listsChildren reports whether the kernel was built to list children.
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

// readProcFile reads a file of /proc whose length is not known.
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

// parseNumbers reads decimal numbers, each with a space behind it.
func parseNumbers(b []byte) []int {
	var all []int
	for len(b) > 0 {
		if n := parseNumber(cutWord(&b)); n > 0 {
			all = append(all, int(n))
		}
	}
	return all
}
