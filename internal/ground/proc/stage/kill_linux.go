package stage

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ID identifies a process on this host until the next reboot.
type ID struct {
	PID   int
	Start int64 // clock ticks after boot
}

// Process is the state of a process that /proc showed at one moment.
type Process struct {
	ID

	Parent  int
	Group   int // its process group
	Threads int
	Dead    bool // a zombie, or about to be one
	Stopped bool // by a signal or a debugger, until it is continued
}

// ReadProcess reads the state of one process. It reports false if there is none with
// the pid.
func ReadProcess(pid int) (Process, bool) {
	var b [1024]byte
	stat := readInto("/proc/"+formatNumber(pid)+"/stat", b[:])
	// The name is in parentheses and may hold any byte, so fields are counted from
	// the last parenthesis.
	after := len(stat) - 1
	for after >= 0 && stat[after] != ')' {
		after--
	}
	if after < 0 {
		return Process{}, false
	}
	const state, parent, group, threads, start = 1, 2, 3, 18, 20
	p := Process{ID: ID{PID: pid}}
	whole := false
	for i, fields := 0, stat[after+1:]; i <= start && len(fields) > 0; i++ {
		word := cutWord(&fields)
		switch i {
		case state:
			p.Dead = len(word) == 1 && (word[0] == 'Z' || word[0] == 'X')
			p.Stopped = len(word) == 1 && (word[0] == 'T' || word[0] == 't')
		case parent:
			p.Parent = int(parseNumber(word))
		case group:
			p.Group = int(parseNumber(word))
		case threads:
			p.Threads = int(parseNumber(word))
		case start:
			p.Start, whole = parseNumber(word), true
		}
	}
	return p, whole
}

// ListProcesses reads all processes in /proc.
func ListProcesses() []Process {
	var all []Process
	for _, name := range readDirNames("/proc") {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		if p, ok := ReadProcess(int(parseNumber([]byte(name)))); ok {
			all = append(all, p)
		}
	}
	return all
}

// readDirNames lists a directory of /proc.
func readDirNames(path string) []string {
	dir, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer dir.Close()
	all, _ := dir.Readdirnames(-1)
	return all
}

// FindDescendants returns the living processes in all that descend from one for
// which isRoot is true, without the roots themselves.
func FindDescendants(all []Process, isRoot func(Process) bool) []Process {
	children := map[int][]Process{}
	var queue, found []Process
	for _, p := range all {
		children[p.Parent] = append(children[p.Parent], p)
		if isRoot(p) {
			queue = append(queue, p)
		}
	}
	seen := map[int]bool{}
	for len(queue) > 0 {
		next := children[queue[0].PID]
		queue = queue[1:]
		for _, p := range next {
			if seen[p.PID] || isRoot(p) {
				continue
			}
			seen[p.PID] = true
			queue = append(queue, p)
			if !p.Dead {
				found = append(found, p)
			}
		}
	}
	return found
}

// KillDescendants kills everything below root, which leads a session of its own, and
// returns when two passes in a row found nothing alive. It gives up after some
// seconds on what cannot be killed, and then reports false. The caller locks its
// goroutine to its thread, as for RaisePriority.
func KillDescendants(root int) bool {
	defer RaisePriority()()
	first, _ := ReadProcess(root)
	find := func() []Process {
		// The pid may be another process's once root is dead and reaped.
		return FindDescendants(ListProcesses(), func(p Process) bool { return p.ID == first.ID })
	}
	const patience = 4000 // rounds of at least a millisecond
	rounds := 0
	h := killer{find: find, spareGroups: []int{0, root, unix.Getpgrp()}}
	_, clean := h.killUntilEmpty(func() bool { rounds++; return rounds > patience })
	return clean
}

// RaisePriority gives this thread the highest priority, if it may, until done is
// called: it has to keep up with any number of processes that it watches or kills.
// The caller locks its goroutine to the thread for that time.
func RaisePriority() (done func()) {
	const highest = -20
	before, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err == nil {
		err = unix.Setpriority(unix.PRIO_PROCESS, 0, highest)
	}
	return func() {
		if err == nil {
			// The system call counts backwards from 20.
			_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 20-before)
		}
	}
}

// KillAll kills what find returns until two calls in a row returned nothing that
// this process may signal, or stop, which is called before each round, returns
// true. It returns how many processes it killed, and whether the last two rounds
// found none. It stops all processes before it kills any: a fork bomb forks faster
// than a walk of /proc finds its processes, unless those already found are stopped.
func KillAll(find func() []Process, stop func() bool) (killed int, clean bool) {
	h := killer{find: find}
	return h.killUntilEmpty(stop)
}

// killer is the state of one KillAll.
type killer struct {
	find  func() []Process
	tried map[ID]bool // true: SIGKILL was accepted

	// spareGroups, if not nil, are the process groups with members that must live.
	// All other groups are signalled as a whole, which no fork escapes.
	spareGroups []int
}

func (h *killer) killUntilEmpty(stop func() bool) (killed int, clean bool) {
	h.tried = map[ID]bool{}
	for empty := 0; empty < 2; {
		if stop() {
			return killed, false
		}
		prey := h.stopAll()
		if len(prey) == 0 && !h.anyDying() {
			empty++
			continue
		}
		empty = 0
		for _, p := range prey {
			_, denied := p.Signal(unix.SIGKILL)
			if !denied && !h.tried[p.ID] {
				killed++
			}
			h.tried[p.ID] = !denied
		}
		sleepMillisecond()
	}
	return killed, true
}

// anyDying reports whether a process that was killed is not yet dead. If it has
// become an orphan, find may no longer return it.
func (h *killer) anyDying() bool {
	for id, accepted := range h.tried {
		if now, ok := ReadProcess(id.PID); accepted && ok && !now.Dead && now.Start == id.Start {
			return true
		}
	}
	return false
}

// stopAll stops what find returns, until it returns nothing new, and returns all of
// it, without those that this process was not allowed to kill before.
func (h *killer) stopAll() []Process {
	const passes = 64
	var frozen []Process
	seen := map[ID]bool{}
	for range passes {
		found := h.find()
		h.stopGroups(found)
		grew := false
		for _, p := range found {
			if accepted, tried := h.tried[p.ID]; seen[p.ID] || tried && !accepted {
				continue
			}
			seen[p.ID], grew = true, true
			frozen = append(frozen, p)
			_, _ = p.Signal(unix.SIGSTOP)
		}
		if !grew {
			break
		}
	}
	return frozen
}

// stopGroups stops whole process groups. A process cannot join a group of another
// session, so below a session leader all members of a group are to be killed.
func (h *killer) stopGroups(found []Process) {
	if h.spareGroups == nil {
		return
	}
	stopped := map[int]bool{}
	for _, group := range h.spareGroups {
		stopped[group] = true
	}
	for _, p := range found {
		if !stopped[p.Group] {
			stopped[p.Group] = true
			_ = unix.Kill(-p.Group, unix.SIGSTOP)
		}
	}
}

// Signal sends sig to exactly this process, never to a later one with the same pid.
// It reports whether the signal was sent and, if not, whether it was not permitted.
func (id ID) Signal(sig syscall.Signal) (sent, denied bool) {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err == unix.ESRCH {
		return false, false
	}
	stable := err == nil
	if stable {
		defer unix.Close(fd)
	}
	if now, ok := ReadProcess(id.PID); !ok || now.Start != id.Start {
		return false, false
	}
	if stable {
		err = unix.PidfdSendSignal(fd, sig, nil, 0)
	} else {
		// Old kernels and the filters of containers have no pidfd. Then the pid can be
		// reused in the microseconds between the check and the signal.
		err = unix.Kill(id.PID, sig)
	}
	return err == nil, err == unix.EPERM
}

// sleepMillisecond gives killed processes a moment to die.
func sleepMillisecond() {
	const millisecond = 1e6
	_ = unix.Nanosleep(&unix.Timespec{Nsec: millisecond}, nil)
}

// readInto reads as much of a file of /proc as fits into b.
func readInto(path string, b []byte) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, b)
	if err != nil {
		return nil
	}
	return b[:n]
}

// cutWord removes the text before the next space, and the space, from b and returns
// the text.
func cutWord(b *[]byte) []byte {
	for i, c := range *b {
		if c == ' ' {
			word := (*b)[:i]
			*b = (*b)[i+1:]
			return word
		}
	}
	word := *b
	*b = nil
	return word
}

// parseNumber parses decimal digits. It returns 0 if b has anything else.
func parseNumber(b []byte) int64 {
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

func formatNumber(n int) string {
	var b [20]byte
	i := len(b)
	for ; n > 0 || i == len(b); n /= 10 {
		i--
		b[i] = byte('0' + n%10)
	}
	return string(b[i:])
}
