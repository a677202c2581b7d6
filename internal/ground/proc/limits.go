package proc

// Limits bound what a tree of processes may use. A zero field means no limit.
//
// Tree.EnforcedLimits says which of them [Tree] enforces on this host; Plain and
// [Group] enforce only Output. If the kernel enforces a limit by refusing more, the
// tree keeps running, and Result.Limit names the limit if the program then fails.
type Limits struct {
	// Processes is how many processes and threads may live at a time. A control
	// group refuses to make more. Without one, Run counts them at least every
	// quarter of a second, and kills the tree if it has more.
	Processes int

	// Memory is how many bytes of anonymous and shared memory all of them hold
	// together; the page cache does not count. At the limit of a control group the
	// kernel kills the process that holds most. Without one, Run kills the tree as
	// for Processes.
	Memory int64

	// Output is how many bytes of standard output and error together reach the
	// writers. A tree that writes more is killed. What goes to an *os.File or is
	// discarded is not counted.
	Output int64

	// FileBytes is the largest size of a file that a program writes. A program that
	// writes beyond it gets SIGXFSZ, which ends it unless it ignores the signal.
	FileBytes int64
}

// Limit names a limit that a program hit.
type Limit string

// The limits, each with the field of Spec that sets it. The zero Limit means none.
const (
	ProcessesLimit Limit = "processes" // Limits.Processes
	MemoryLimit    Limit = "memory"    // Limits.Memory
	OutputLimit    Limit = "output"    // Limits.Output
	FileSizeLimit  Limit = "file_size" // Limits.FileBytes
	TimeLimit      Limit = "time"      // Timeout
)

// exceeded is the cause of a context that ended because of a limit.
type exceeded struct{ limit Limit }

func (e exceeded) Error() string { return "limit of " + string(e.limit) + " passed" }

// limited is a child with limits other than those of time and output.
type limited interface {
	// watchLimits watches the tree until done, and calls exceed at most once.
	watchLimits(exceed func(Limit))
	// limitHit returns the limit that the program hit without being killed for it;
	// it is called after reap.
	limitHit(end status) Limit
}

// setEnd completes r from how the program itself ended. Cut means that a part of its
// output was dropped because of the limit.
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
