package stage

import "golang.org/x/sys/unix"

// Resident returns how many bytes of anonymous and shared memory a process has
// in main memory. What it shares with others counts fully.
func Resident(pid int) int64 {
	var b [4096]byte
	text := slurp("/proc/"+decimal(pid)+"/status", b[:])
	return kilobytes(text, "RssAnon:") + kilobytes(text, "RssShmem:")
}

// Proportional is Resident with shared memory divided among those that share it.
// Where the kernel does not tell this user or is too old, it is Resident.
func Proportional(pid int) int64 {
	var b [4096]byte
	text := slurp("/proc/"+decimal(pid)+"/smaps_rollup", b[:])
	n := kilobytes(text, "Pss_Anon:") + kilobytes(text, "Pss_Shmem:")
	if n == 0 {
		return Resident(pid)
	}
	return n
}

// kilobytes returns, in bytes, the value of a line "name   123 kB".
func kilobytes(text []byte, name string) int64 {
	for i := 0; i+len(name) < len(text); i++ {
		if i > 0 && text[i-1] != '\n' || string(text[i:i+len(name)]) != name {
			continue
		}
		rest := text[i+len(name):]
		for len(rest) > 0 && (rest[0] == ' ' || rest[0] == '\t') {
			rest = rest[1:]
		}
		return number(cut(&rest)) << 10
	}
	return 0
}

// Crowd returns how many processes and threads the host has, which costs no walk;
// 0 if that is not known.
func Crowd() int {
	var b [128]byte
	text := slurp("/proc/loadavg", b[:])
	for i, c := range text {
		if c == '/' {
			rest := text[i+1:]
			return int(number(cut(&rest)))
		}
	}
	return 0
}

// Descendants returns the living processes below root. Where the kernel lists
// the children of a process only these are read, and one that is born at that
// moment may be missed.
func Descendants(root int) []Process {
	if !listsChildren() {
		return Below(List(), func(p Process) bool { return p.PID == root })
	}
	var found []Process
	seen := map[int]bool{root: true}
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, pid := range children(queue[0]) {
			p, ok := Look(pid)
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
	return unix.Access("/proc/self/task/"+decimal(unix.Getpid())+"/children", unix.R_OK) == nil
}

// children returns the children of all threads of pid.
func children(pid int) []int {
	tasks := "/proc/" + decimal(pid) + "/task"
	var found []int
	for _, tid := range names(tasks) {
		found = append(found, numbers(readAll(tasks+"/"+tid+"/children"))...)
	}
	return found
}

// readAll reads a file of /proc whose length is not known.
func readAll(path string) []byte {
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

// numbers reads decimal numbers, each with a space behind it.
func numbers(b []byte) []int {
	var all []int
	for len(b) > 0 {
		if n := number(cut(&b)); n > 0 {
			all = append(all, int(n))
		}
	}
	return all
}
