package stage

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ID identifies a process on this host until it is rebooted.
type ID struct {
	PID   int
	Start int64 // clock ticks after boot
}

// Process is what /proc says about a process at one moment.
type Process struct {
	ID

	Parent  int
	Group   int // its process group
	Threads int
	Dead    bool // a zombie, or about to be one
	Stopped bool // by a signal or a debugger, until it is continued
}

// Look reads one process. It reports false when there is none.
func Look(pid int) (Process, bool) {
	var b [1024]byte
	stat := slurp("/proc/"+decimal(pid)+"/stat", b[:])
	// The name stands in parentheses and may hold any byte, so fields are
	// counted from its end.
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
		word := cut(&fields)
		switch i {
		case state:
			p.Dead = len(word) == 1 && (word[0] == 'Z' || word[0] == 'X')
			p.Stopped = len(word) == 1 && (word[0] == 'T' || word[0] == 't')
		case parent:
			p.Parent = int(number(word))
		case group:
			p.Group = int(number(word))
		case threads:
			p.Threads = int(number(word))
		case start:
			p.Start, whole = number(word), true
		}
	}
	return p, whole
}

// List reads every process that /proc shows.
func List() []Process {
	var all []Process
	for _, name := range names("/proc") {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		if p, ok := Look(int(number([]byte(name)))); ok {
			all = append(all, p)
		}
	}
	return all
}

// names lists a directory of /proc.
func names(path string) []string {
	dir, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer dir.Close()
	all, _ := dir.Readdirnames(-1)
	return all
}

// Below returns the living processes of all that descend from one for which
// isRoot holds, without the roots.
func Below(all []Process, isRoot func(Process) bool) []Process {
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

// Sweep kills everything below root, which leads a session of its own, and
// returns when two passes in a row found nothing alive. It gives up after some
// seconds on what cannot be killed, and then reports false. The caller locks its
// goroutine to its thread, as for Hurry.
func Sweep(root int) bool {
	defer Hurry()()
	find := func() []Process {
		return Below(List(), func(p Process) bool { return p.PID == root })
	}
	const patience = 4000 // rounds of at least a millisecond
	rounds := 0
	h := hunt{find: find, spare: []int{0, root, unix.Getpgrp()}}
	_, clean := h.run(func() bool { rounds++; return rounds > patience })
	return clean
}

// Hurry lets this thread run before what it watches or hunts, where it may, until
// the result is called: it is one against as many as there are. The caller locks
// its goroutine to the thread for that time.
func Hurry() (done func()) {
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

// Hunt kills what find returns until two calls in a row returned nothing that
// this process may signal. It asks stop before every round, and reports how many
// processes it killed and whether the last rounds were empty. Everything is
// stopped before anything is killed: a fork bomb outruns a walk, but not when
// what the walk has seen no longer forks.
func Hunt(find func() []Process, stop func() bool) (killed int, clean bool) {
	h := hunt{find: find}
	return h.run(stop)
}

// hunt is one Hunt.
type hunt struct {
	find func() []Process
	done map[ID]bool // true: SIGKILL was accepted

	// spare, if not nil, are the process groups that hold others than the hunted.
	// The other groups are signalled as a whole, which no fork escapes.
	spare []int
}

func (h *hunt) run(stop func() bool) (killed int, clean bool) {
	h.done = map[ID]bool{}
	for empty := 0; empty < 2; {
		if stop() {
			return killed, false
		}
		prey := h.freeze()
		if len(prey) == 0 && !h.dying() {
			empty++
			continue
		}
		empty = 0
		for _, p := range prey {
			_, denied := p.Signal(unix.SIGKILL)
			if !denied && !h.done[p.ID] {
				killed++
			}
			h.done[p.ID] = !denied
		}
		nap()
	}
	return killed, true
}

// dying reports whether something that was killed is not yet dead. An orphan may
// no longer be found by then.
func (h *hunt) dying() bool {
	for id, accepted := range h.done {
		if now, ok := Look(id.PID); accepted && ok && !now.Dead && now.Start == id.Start {
			return true
		}
	}
	return false
}

// freeze stops what find returns, until it returns nothing new, and returns it
// all. What refused to be killed before does not count.
func (h *hunt) freeze() []Process {
	const passes = 64
	var frozen []Process
	seen := map[ID]bool{}
	for range passes {
		found := h.find()
		h.stopGroups(found)
		grew := false
		for _, p := range found {
			if accepted, tried := h.done[p.ID]; seen[p.ID] || tried && !accepted {
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

// stopGroups stops whole process groups. Nobody joins a group of another
// session, so below the leader of one every group holds the hunted alone.
func (h *hunt) stopGroups(found []Process) {
	if h.spare == nil {
		return
	}
	stopped := map[int]bool{}
	for _, group := range h.spare {
		stopped[group] = true
	}
	for _, p := range found {
		if !stopped[p.Group] {
			stopped[p.Group] = true
			_ = unix.Kill(-p.Group, unix.SIGSTOP)
		}
	}
}

// Signal sends sig to that very process, never to a later one with its pid. It
// reports whether it was sent, and if not, whether this user may not do so.
func (id ID) Signal(sig syscall.Signal) (sent, denied bool) {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err == unix.ESRCH {
		return false, false
	}
	stable := err == nil
	if stable {
		defer unix.Close(fd)
	}
	if now, ok := Look(id.PID); !ok || now.Start != id.Start {
		return false, false
	}
	if stable {
		err = unix.PidfdSendSignal(fd, sig, nil, 0)
	} else {
		// Old kernels and container filters have no pidfd; what remains is a
		// window of microseconds between the look and the signal.
		err = unix.Kill(id.PID, sig)
	}
	return err == nil, err == unix.EPERM
}

// nap gives killed processes a moment to go.
func nap() {
	const millisecond = 1e6
	_ = unix.Nanosleep(&unix.Timespec{Nsec: millisecond}, nil)
}

// slurp reads as much of a file of /proc as fits into b.
func slurp(path string, b []byte) []byte {
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

// cut takes the text before the next space off the front of b.
func cut(b *[]byte) []byte {
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

// number reads decimal digits; anything else counts as no number, zero.
func number(b []byte) int64 {
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

func decimal(n int) string {
	var b [20]byte
	i := len(b)
	for ; n > 0 || i == len(b); n /= 10 {
		i--
		b[i] = byte('0' + n%10)
	}
	return string(b[i:])
}
