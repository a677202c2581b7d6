package proc

import "sync"

// Limits bound what a tree of processes may use up. A zero field means no limit.
//
// Only [Tree] keeps all of them, where Tree.EnforcedLimits says so; Plain and [Group]
// keep Output alone. A tree that passes a limit of which the kernel only refuses
// more goes on, and Result.Limit names the limit if the program then fails.
type Limits struct {
	// Processes is how many processes and threads may live at a time. A control
	// group refuses to make more; where there is none, the tree is looked at up
	// to every quarter of a second and killed when it has more.
	Processes int

	// Memory is how many bytes all of them hold together: anonymous and shared
	// memory, not the page cache. At the limit of a control group the kernel
	// kills the process that holds most; where there is no such group, the tree
	// is killed as for Processes.
	Memory int64

	// Output is how many bytes of standard output and error are passed on,
	// counted together. No more than these reach the writers; then the tree is
	// killed. What goes to an *os.File or is discarded is not counted.
	Output int64

	// FileBytes is the size of any one file that is written. A program that
	// would pass it gets SIGXFSZ, which ends it unless it ignores that.
	FileBytes int64
}

// Limit names the limit that a program ran into.
type Limit string

// The limits, each with the field of Spec that sets it. The zero Limit is none.
const (
	ProcessesLimit Limit = "processes" // Limits.Processes
	MemoryLimit    Limit = "memory"    // Limits.Memory
	OutputLimit    Limit = "output"    // Limits.Output
	FileSizeLimit  Limit = "file_size" // Limits.FileBytes
	TimeLimit      Limit = "time"      // Timeout
)

// exceeded is the cause of a context that a limit ended.
type exceeded struct{ limit Limit }

func (e exceeded) Error() string { return "limit of " + string(e.limit) + " passed" }

// limited is a child on which limits other than time and output are kept.
type limited interface {
	watchLimits(exceed func(Limit)) // looks at what the tree uses until done, and calls exceed at most once
	limitHit(end status) Limit      // which limit it ran into without being killed; after reap
}

// startWatching starts to look at c, if there is anything to look at. The caller waits
// for the group after c is done.
func startWatching(c child, exceed func(Limit)) *sync.WaitGroup {
	var looking sync.WaitGroup
	if l, ok := c.(limited); ok {
		looking.Go(func() { l.watchLimits(exceed) })
	}
	return &looking
}

// setEnd decides how a program ended, from what Run did and what the program
// itself did.
func (r *Result) setEnd(c child, end status, cut bool) {
	r.Exit = end.exit
	switch {
	case r.Ended != Exited:
		return
	case cut:
		// It ended before it could be killed, but its output is incomplete.
		r.Ended, r.Limit = Limited, OutputLimit
		return
	case end.signaled:
		r.Ended = Signaled
	}
	if l, ok := c.(limited); ok && r.Exit != 0 {
		r.Limit = l.limitHit(end)
	}
}
